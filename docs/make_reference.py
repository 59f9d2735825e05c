"""Write what the pages say of the code, and the schema of configs: `make reference` runs it, and a test compares.

`reference/cli.md` comes from the help, `reference/config.md` from the schema's declarations; in `kinds/*.md` the line
below the title comes from the docstring of the file, the lines between `<!-- made: … -->` and `<!-- end -->` from the
docstring of the class and its parameters.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import is_dataclass
from importlib import import_module
from inspect import cleandoc, signature
from pathlib import Path
from runpy import run_path
from textwrap import dedent, indent

import click
from click.shell_completion import get_completion_class
from pydantic.fields import FieldInfo

from kafeat.cli.command import Context
from kafeat.cli.main import kafeat
from kafeat.config.model import ColumnSelection, Config, SearchOptions
from kafeat.config.template import config_schema
from kafeat.contract.describe import headline, purpose, spell
from kafeat.maths.kernels import find_kernel, kernel_names
from kafeat.model.serialize import WITH_PREDICTOR
from kafeat.registry import accepted, kinds, predictors, samplers, scalers, step_class
from kafeat.samplers.union import UnionMember

HERE = Path(__file__).parent
SHARE = HERE.parent / "share"
COMPLETIONS = {
    "bash": "bash-completion/completions/kafeat",
    "zsh": "zsh/site-functions/_kafeat",
    "fish": "fish/vendor_completions.d/kafeat.fish",
}
"""The files of completions below `share`, which a wheel puts into the folder of that name of an environment."""
STABLE = HERE.parent / "tests/stable.txt"
MADE = "<!-- made by `make reference`: change the code and not this page -->"
MARK = re.compile(r"(<!-- made: (\w+) -->\n).*?(<!-- end -->)", flags=re.S)


def files() -> Iterator[tuple[Path, str]]:
    """Every file that is made, or has made parts, and its whole text."""
    yield HERE / "reference/cli.md", cli()
    yield HERE / "reference/config.md", config()
    yield HERE / "reference/kernels.md", kernels()
    schema = json.dumps(config_schema(), indent=2, ensure_ascii=False)
    yield HERE.parent / "configs/kafeat.schema.json", f"{schema}\n"
    for kind in (*scalers(), *samplers(), *predictors()):
        path = HERE / f"kinds/{kind}.md"
        title, _, rest = path.read_text(encoding="utf-8").split("\n\n", 2)
        text = f"{title}\n\n{prose(purpose(step_class(kind)))}\n\n{rest}"
        yield path, MARK.sub(lambda part, kind=kind: filled(part, kind), text)
    yield from (
        (SHARE / f"man/man1/{name}.1", text) for name, text in run_path(str(HERE / "make_man.py"))["pages"]()
    )
    for shell, name in COMPLETIONS.items():
        source = get_completion_class(shell)(kafeat, {}, "kafeat", "_KAFEAT_COMPLETE").source()
        yield SHARE / name, source.strip() + "\n"
    yield STABLE, "\n".join(sorted({*STABLE.read_text(encoding="utf-8").splitlines(), *promised()})) + "\n"


def filled(part: re.Match[str], kind: str) -> str:
    """A made part of the page of a kind, between its marks."""
    text = {"explanation": explanation, "parameters": parameters}[part[2]](kind)
    return f"{part[1]}\n{text}\n\n{part[3]}"


def explanation(kind: str) -> str:
    """The docstring without its first paragraph, whose formula is set on the page itself."""
    return raised(prose(cleandoc(step_class(kind).__doc__ or "").partition("\n\n")[2]))


SUBSCRIPT = re.compile(r"((?<![^\W\d_]|\\)[^\W\d_]|[²)])\\_(\{[^}]*\}|[0-9A-Za-z]{1,2}(?![0-9A-Za-z]))")


def raised(text: str) -> str:
    """Prose with the subscripts of single letters, and with superscripts, in the tags of HTML."""
    for _ in range(2):  # a subscript may have one
        text = SUBSCRIPT.sub(_lowered, text)
    return re.sub(r"\^(\{[^}]*\}|\w+)", lambda part: f"<sup>{part[1].strip('{}')}</sup>", text)


def _lowered(part: re.Match[str]) -> str:
    return f"{part[1]}<sub>{part[2].strip('{}')}</sub>"


def parameters(kind: str) -> str:
    """The keys that YAML has for a kind."""
    fields = step_class(kind).model_fields
    if not fields:
        return "It has no parameters."
    return keys(fields)


def keys(fields: dict[str, FieldInfo]) -> str:
    """A list of keys: what each means and may be, and its default."""
    entries = []
    for name, field in fields.items():
        values = prose(accepted(name, field).removeprefix("a whole number from "))
        values = values.replace(CHOSEN_BY_ERROR, f", or [target\\_error]({CHOSEN})")
        value = "Required." if field.is_required() else f"Default: `{default(field)}`."
        meaning = prose(field.description or "")
        if values.startswith("one of "):
            meaning += f" ({values.removeprefix('one of ')})"
        elif values != "true or false":
            meaning += f". {values[0].upper()}{values[1:]}"
        entries.append(f"- `{name}`: {meaning}. {value}")
    return "\n".join(entries)


CHOSEN = "../reference/config.md#values-that-the-fit-chooses"
CHOSEN_BY_ERROR = r", or {target\_error: a number above 0 and below 1}"


def default(field: FieldInfo) -> str:
    """A default as YAML has it."""
    value = field.default
    if isinstance(value, tuple):
        return f"[{', '.join(map(str, value))}]"
    return "{exclude: []}" if isinstance(value, ColumnSelection) else spell(value)


def markdown(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table."""
    names = list(head)
    top, *body = (f"| {' | '.join(line)} |" for line in [names, *rows])
    return "\n".join([top, "|" + "---|" * len(names), *body])


def cell(text: str) -> str:
    """Text for a table."""
    return prose(text).replace("|", r"\|")


def prose(text: str) -> str:
    """Text whose signs stand for themselves, but what is between backticks."""
    pieces = re.split(r"(`[^`]*`)", text)
    return "".join(
        piece if piece.startswith("`") else re.sub(r"([\\*_])", r"\\\1", piece).replace("<", "&lt;")
        for piece in pieces
    )


KERNELS = """# Kernels

The exact kernels by their names in configs, for rows x and y of d columns. The page of each kind lists its own.

- The names `chi2` and `intersection` of `homogeneous` are `additive_chi2` and `intersection` here. Those of
  `skewed` are `skewed_chi2` and `skewed_intersection`.
- With a length scale ℓ, γ is 1/(2ℓ²) for `rbf` and `rational_quadratic`, 1/ℓ² for `matern` and 1/ℓ for `laplacian`.
- `cauchy` is a product over columns, and does not depend on the distance only. `additive_chi2` is positive; the
  function of that name in scikit-learn is −Σ (x<sub>i</sub> − y<sub>i</sub>)²/(x<sub>i</sub> + y<sub>i</sub>).
- `gamma: scale` is 1/(d·Var X), and `gamma: auto` is 1/d. `gamma: median` follows from random pairs of rows of the
  sample, as below.
"""

MEDIANS = {
    "euclidean": "1/(2 median ‖x − y‖²)",
    "matern": "1/median ‖x − y‖²",
    "cityblock": "1/median ‖x − y‖₁",
    "chi2": "1/mean of the χ² distance",
    "none": "1/d",
}


def kernels() -> str:
    """Every kernel with its formula, and the rule for γ."""
    rows = []
    for name in kernel_names():
        kernel = find_kernel(name)
        formula = raised(cell(cleandoc(type(kernel).__doc__ or "").removesuffix(".")))
        rule = MEDIANS[kernel.distance] if "γ" in formula else ""
        rows.append((f"`{name}`", formula, rule))
    return f"{MADE}\n\n{KERNELS}\n{markdown(('kernel', 'k(x, y)', '`gamma: median`'), rows)}\n"


SEARCHES = """You can replace a value by a mapping with one of these keys:

- `validate`: for any parameter of any step, the value in the list whose features predict the label best (see `search`).
- `target_error`: for `n_components`, the smallest width with at most this relative error against the exact kernel."""


def config() -> str:
    """The keys of a config outside of its steps; those of a kind are on the page of the kind."""
    parts = [
        MADE,
        "# The keys of a config",
        "`kafeat config --schema` writes the same as JSON Schema, for editors; `kafeat config --kind KIND` starts a "
        "config that has every key; `kafeat config --check FILE.yaml` lists the mistakes in one.",
        "## At the top",
        keys(Config.model_fields),
    ]
    for title, model in (("`columns`", ColumnSelection), ("`search`", SearchOptions)):
        parts += [f"## {title}", prose(headline(model)), keys(model.model_fields)]
    kinds_of = "[Each kind](../index.md#which-map) has a page with its keys."
    parts += ["## Values that the fit chooses", SEARCHES, "## Steps", kinds_of]
    parts += [
        "## Entries of `maps`",
        f"For `union`; `product` has no `weight`. {prose(headline(UnionMember))}",
        keys(UnionMember.model_fields),
    ]
    return "\n\n".join(parts) + "\n"


VARIABLES = """Options have [environment variables](../shell.md#environment-variables), and all commands the same
[exit codes](../shell.md#exit-codes). `--help` has examples. An option, or a whole group such as *Input*, that several
commands have is explained at the first of them."""


def cli() -> str:
    """A section for every command; an option is described where it comes first."""
    whole = Context(kafeat, info_name="kafeat", **kafeat.context_settings)
    known: dict[tuple[str, str], str] = {}
    parts = [MADE, "# The commands", *described(kafeat, whole, known), VARIABLES]
    for name in kafeat.list_commands(whole):
        command = kafeat.get_command(whole, name)
        if command is not None:
            context = Context(command, parent=whole, info_name=name)
            parts += [f"## kafeat {name}", *described(command, context, known)]
    return "\n\n".join(parts) + "\n"


def described(
    command: click.Command, context: click.Context, known: dict[tuple[str, str], str]
) -> Iterator[str]:
    """Usage, help and options; `known` has the command that describes an option."""
    usage = " ".join(command.collect_usage_pieces(context))
    yield f"```text\n{context.command_path} {usage}\n```"
    text = command.help or ""
    yield from blocks(text.partition("\n\n")[0] if command is kafeat else text)
    groups: dict[str, list[click.Option]] = {"Options": []}
    for option in command.get_params(context):
        if isinstance(option, click.Option) and option.get_help_record(context):
            groups.setdefault(getattr(option, "group", "Options"), []).append(option)
    elsewhere = dict[str, list[str]]()
    for title, options in groups.items():
        records = {option: option.get_help_record(context) for option in options}
        new = [option for option in options if records[option] not in known]
        if new:
            lines = "\n".join(
                f"- `{records[one][0]}`: {prose(' '.join(records[one][1].split()))}" for one in new
            )
            yield lines if title == "Options" else f"**{title}**\n\n{lines}"
        places = {known[records[option]] for option in options if option not in new}
        whole = not new and len(places) == 1 and len(options) > 1 and title != "Options"
        for option in [options[0]] if whole else [one for one in options if one not in new]:
            name = f"*{title}*" if whole else f"`{max(option.opts, key=len)}`"
            elsewhere.setdefault(known[records[option]], []).append(name)
        known |= {records[option]: context.command_path for option in new}
    for path, names in elsewhere.items():
        if path != "kafeat":
            yield f"As in [{path}](#{path.replace(' ', '-')}): {', '.join(names)}."


def blocks(text: str) -> Iterator[str]:
    r"""Paragraphs; those marked by \b line by line, below their heading."""
    for block in re.split(r"\n\s*\n", cleandoc(text)):
        if not block.startswith("\b"):
            yield prose(" ".join(block.split()))
            continue
        heading, _, rest = block.removeprefix("\b\n").partition("\n")
        lines = rest if heading.endswith(":") else f"{heading}\n{rest}"
        if heading.endswith(":"):
            yield f"**{heading[:-1]}**"
        yield indent(dedent(lines.rstrip()), "    ")


def promised() -> Iterator[str]:
    """Every name that the page on stability promises, one a line; `tests/stable.txt` has those of earlier versions."""
    whole = Context(kafeat, info_name="kafeat")
    for name in ("", *kafeat.list_commands(whole)):
        command = (kafeat.get_command(whole, name) if name else None) or kafeat
        path = f"command: {f'kafeat {name}'.strip()}"
        yield path
        context = Context(command, info_name=name)
        for one in command.params:
            names = (
                [*one.opts, *one.secondary_opts]
                if isinstance(one, click.Option)
                else [one.make_metavar(context)]
            )
            yield from (f"{path} {word}" for word in names)
            if isinstance(one.type, click.Choice):
                yield from (f"{path} {max(names, key=len)} {value}" for value in one.type.choices)
    yield from (f"exit code: {code}" for code in re.findall(r"^  (\d+) ", kafeat.epilog or "", flags=re.M))
    yield from (f"config: {line}" for line in keys_of("", config_schema()))
    for section in (HERE / "reference/json.md").read_text(encoding="utf-8").split("\n## ")[1:]:
        title, _, told = section.partition("\n")
        keys = {*re.findall(r"`([a-z_0-9…]+)`", told)} - {"null", *kinds()}
        yield from (f"json: {title.replace('`', '')}: {key}" for key in keys)
    yield from (f"model file: format {number}" for number in range(1, WITH_PREDICTOR + 1))
    yield from (f"python: {name}" for name in python_names())


def keys_of(path: str, schema: object) -> Iterator[str]:
    """The keys of a JSON Schema, each with the words that it takes."""
    if isinstance(schema, list):
        for one in schema:
            yield from keys_of(path, one)
    elif isinstance(schema, dict):
        words = [*schema.get("enum", ()), schema.get("const")]
        yield from (f"{path}: {word}" for word in words if isinstance(word, str))
        for name, inner in {**schema.get("$defs", {}), **schema.get("properties", {})}.items():
            key = f"{path}.{name}".lstrip(".")
            yield key
            yield from keys_of(key, inner)
        for name in ("anyOf", "oneOf", "allOf", "items", "additionalProperties"):
            yield from keys_of(path, schema.get(name))


def python_names() -> Iterator[str]:
    """The names of the public modules and of the page of Python, and their parameters."""
    for module in ("kafeat", "kafeat.sklearn", "kafeat.onnx"):
        found = import_module(module)
        for name in found.__all__:
            yield from with_parameters(f"{module}.{name}", getattr(found, name))
    page = (HERE / "reference/python.md").read_text(encoding="utf-8")
    for path, members in re.findall(r"^::: (\S+)\n(?:    .*\n)*?      members: \[(.*)\]", page, flags=re.M):
        room, *_, name = path.split(".")[1:] * 2
        of = (
            import_module(path) if name == "errors" else getattr(import_module(path.rpartition(".")[0]), name)
        )
        public = f"kafeat.sklearn.{name}" if room == "sklearn" else f"kafeat.{name}"
        for member in members.split(", "):
            yield from with_parameters(f"{public}.{member}", getattr(of, member, None))
    for module in ("dask", "spark"):  # Spark is not everywhere
        tree = ast.parse((HERE.parent / f"kafeat/{module}.py").read_text(encoding="utf-8"))
        for one in tree.body:
            if isinstance(one, ast.FunctionDef) and not one.name.startswith("_"):
                yield f"kafeat.{module}.{one.name}"
                arguments = (*one.args.args, *one.args.kwonlyargs)
                yield from (f"kafeat.{module}.{one.name} {argument.arg}" for argument in arguments)


def with_parameters(path: str, thing: object) -> Iterator[str]:
    """A name, and those of its parameters, unless kafeat alone makes such objects."""
    yield path
    alone = is_dataclass(thing) and not hasattr(thing, "get_params")  # an estimator of scikit-learn has these
    if callable(thing) and not (alone or path.startswith("kafeat.errors.")):
        yield from (
            f"{path} {name}" for name in signature(thing).parameters if name not in ("self", "kwargs")
        )


if __name__ == "__main__":
    for path, text in files():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
