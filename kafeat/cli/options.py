"""Options that several commands share."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import MISSING, Field
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from kafeat.cli import log
from kafeat.cli.command import GroupedOption
from kafeat.cli.overlaps import FileName
from kafeat.io import formats
from kafeat.io.options import InputOptions, Option, declared
from kafeat.jobs.transform.options import TransformOptions

F = TypeVar("F", bound=Callable[..., Any])

INPUTS = click.Choice(formats.NAMES)


class ColumnName(click.types.StringParamType):
    """The name of a column. An environment variable holds one name, which may have spaces."""

    def split_envvar_value(self, rv: str) -> list[str]:
        return [rv]


class KindName(click.types.StringParamType):
    """The kind of a step, which a shell completes."""

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        # Kinds are the names of files. Importing the registry to list them would take most of a second.
        from pkgutil import iter_modules

        from kafeat import predictors, samplers, scalers

        packages = (scalers, samplers, predictors)
        names = [module.name for package in packages for module in iter_modules(package.__path__)]
        return [
            CompletionItem(name) for name in names if name.startswith(incomplete) and not name.startswith("_")
        ]


class ColumnNames(click.types.StringParamType):
    """Names of columns, separated by commas, or `all`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str) or value == "all":
            return value
        return [name for name in value.split(",") if name]


def finite(context: click.Context, option: click.Parameter, number: float | None) -> float | None:
    """Refuse infinity and NaN. Click accepts NaN within any bounds."""
    if number is not None and not math.isfinite(number):
        raise click.BadParameter(f"{number} is not a finite number.", context, option)
    return number


_LARGEST = 1 << 53


class _Number(click.IntRange):
    """A whole number with bounds. The help omits the upper bound if it is the largest number that any option accepts.

    Larger numbers are refused before memory is allocated for them.
    """

    def _describe_range(self) -> str:
        return f"x>={self.min}" if self.max == _LARGEST else super()._describe_range()

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if str(value).isdecimal() and int(value) > _LARGEST:
            self.fail(f"{value} is not in the range {self.min}<=x<={self.max}.", param, ctx)
        return super().convert(value, param, ctx)


if TYPE_CHECKING:
    _TextChoice = click.Choice[str]
else:
    _TextChoice = click.Choice  # click 8.1 has no Choice[str]


class _Choice(_TextChoice):
    """One of the values of an option. The list of values is computed when it is needed."""

    def __init__(self, says: Option) -> None:
        self._says, self.case_sensitive = says, True

    @property
    def choices(self) -> tuple[str, ...]:  # type: ignore[override]  # nobody sets it
        return self._says.allowed


KIND, COLUMN = KindName(), ColumnName()
DATA, CONFIG, MODEL = (
    FileName("data", "the input"), FileName("config", "the config"), FileName("file", "the model"),
)  # fmt: skip
FILE = FileName("file", "the input")
NEW_MODEL, OUTPUT, SEARCHED, PAGES = (
    FileName("model", "a model"), FileName("output", "an output"), FileName("search", "an output"),
    FileName("pages", "pages"),
)  # fmt: skip


option = partial(click.option, cls=GroupedOption)


_USES: dict[str | None, click.ParamType[Any]] = {
    "column": COLUMN, "config": CONFIG, "file": FILE, "model": MODEL, "output": OUTPUT, "pages": PAGES,
}  # fmt: skip


def _type_of(kind: str, says: Option) -> click.ParamType[Any] | None:
    """Return click's type for an option whose field has this type. None means click's default."""
    if says.choices:
        return _Choice(says)
    match kind.removesuffix(" | None"):
        case "int":
            return _Number(int(says.least), _LARGEST if says.most is None else int(says.most))
        case "float" | "float | Sequence[float]":
            return click.FloatRange(says.least, says.most, min_open=says.least_open, max_open=says.most_open)
        case "str | Sequence[str]" if not says.multiple:
            return ColumnNames()
    return _USES.get(says.use)


def _made_from(one: Field[Any], says: Option) -> Callable[[F], F]:
    names = says.names or (f"--{one.name.replace('_', '-')}",)
    required, flag = one.default is MISSING, one.type == "bool"
    number = str(one.type).removesuffix(" | None") == "float"  # for a sequence, the job checks the bounds
    return option(
        one.name,
        *names,
        group=says.group,
        rare=says.rare,
        type=_type_of(str(one.type), says),
        is_flag=True if flag and "/" not in names[0] else None,
        multiple=says.multiple,
        required=required,
        default=None if required or says.multiple else one.default,
        show_default=isinstance(one.default, str | float | int) and not flag and "default" not in says.help,
        callback=finite if number else None,
        metavar=says.metavar,
        allow_from_autoenv=says.variable,
        help=says.help,
    )


def made_from(options: type[Any]) -> Callable[[F], F]:
    """Return a decorator that adds the options declared by the fields of a dataclass."""

    def add(command: F) -> F:
        for one, says in reversed(declared(options)):
            command = _made_from(one, says)(command)
        return command

    return add


fsync = next(_made_from(one, says) for one, says in declared(TransformOptions) if one.name == "fsync")
overwrite_model = option(
    "--overwrite/--no-clobber",
    default=True,
    help="Replace an existing MODEL (default), or fail if it exists.",
)


def _set(_context: click.Context, option: click.Parameter, value: Any) -> None:
    setattr(log.settings, str(option.name), value)


_message = partial(option, group="Messages", expose_value=False, callback=_set)
quiet = _message("--quiet", "-q", is_flag=True, help="Write nothing to stderr except errors.")
log_format = _message(
    "--log-format", rare=True, type=click.Choice(["text", "json"]), default="text", show_default=True, is_eager=True,
    help="Format of stderr: text, or one JSON object per line.",
)  # fmt: skip
verbose = _message(
    "--verbose",
    "-v",
    is_flag=True,
    rare=True,
    help="Write a summary, the versions and the machine to stderr.",
)


def given(names: Iterable[str]) -> list[str]:
    """Return which of these options are given on the command line, and not only by environment variables."""
    source_of = click.get_current_context().get_parameter_source
    return [name for name in names if source_of(name) is ParameterSource.COMMANDLINE]


def messages(command: F) -> F:
    """Add --log-format, --quiet and --verbose, which set up the log."""
    return log_format(quiet(verbose(command)))


model = option("--model", required=True, type=MODEL, metavar="MODEL", help="Map made by `kafeat fit`.")


def reading(command: F) -> F:
    """Add the options for reading a file, such as --delimiter, which the command receives as `reading`."""
    names = [one.name for one, _ in declared(InputOptions)]

    @wraps(command)
    def with_reading(*args: Any, **values: Any) -> Any:
        given = {name: values.pop(name) for name in names}
        return command(*args, reading=InputOptions(**given), **values)

    add: Callable[[Any], Any] = made_from(InputOptions)
    return cast("F", add(with_reading))
