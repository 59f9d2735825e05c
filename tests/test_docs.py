"""The pages: what they tell to type works, what is made from the code is up to date, and the site builds.

A command line is one that is indented by four spaces, or in a fence of `sh`. Those of `kafeat` are parsed, and run as
printed, but with few trials of `tune`, in a folder with sample_data, configs and map.joblib, unless they have a
placeholder (RUNS_NOT). Of the others it is checked that there is such a target, extra or script.
"""

import ast
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import pytest

import kafeat
from kafeat import registry
from kafeat.cli.command import Context
from kafeat.cli.main import COMMANDS, _run
from kafeat.cli.main import kafeat as whole
from kafeat.config.template import config_schema
from tests.recipes import words
from tests.zygote import KAFEAT, ROOT

DOCS = ROOT / "docs"
PAGES = sorted(str(page.relative_to(ROOT)) for page in [*ROOT.glob("*.md"), *DOCS.rglob("*.md")])
KINDS = registry.kinds()

# Data of the reader, optional parts, places in a network; and what another test runs: the help's examples in
# tests/cli.
RUNS_NOT = re.compile(r"\bDATA\b|\[|://|COMMAND|\bKIND\b")
RUN_ELSEWHERE = {"docs/reference/cli.md", "CHANGELOG.md"}
# That of onnx.md is tested beside its parts.
PYTHON_RUN = {f"docs/{page}.md" for page in words("tutorial python recipes model_behind_the_map")}
PYTHON_RUN.add("README.md")
# It is large to install, and takes seconds to start; tests/engines has it.
PYTHON_NOT_RUN = {"pyspark"}
# Of every search; the number that a page prints would win over that of the environment.
TRIALS = "2"


def blocks(text, language):
    """The text between fences of that language."""
    return re.findall(rf"^```{language}\b[^\n]*\n(.*?)^```$", text, flags=re.S | re.M)


def commands(text):
    """Lines and scripts to type, in their order, without comments; a line that goes on after a backslash is one."""
    text = re.sub(r" \\\n\s+", " ", text)
    found = re.finditer(r"^```(\w*)[^\n]*\n(.*?)^```$|^ {4}(?! )(\S[^\n]*)$", text, flags=re.S | re.M)
    for one in found:
        if one[1] == "sh":
            yield one[2]
        elif one[3]:
            yield re.sub(r"\s#\s.*", "", one[3])


def of_kafeat(page):
    """The command lines and scripts with `kafeat` in them."""
    texts = commands((ROOT / page).read_text())
    return [text for text in texts if re.match(r"kafeat |eval |echo |_KAFEAT", text) or "\n" in text]


def quick(patch):
    """Leave out what takes most of the time and is tested elsewhere: the exact machine, and all but few trials."""
    patch.setenv("KAFEAT_EVALUATE_EXACT_ROWS", "100")
    patch.setenv("KAFEAT_EVALUATE_ROWS", "200")
    patch.setenv("KAFEAT_TUNE_TRIALS", TRIALS)


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """A map for all pages."""
    path = tmp_path_factory.mktemp("fitted") / "map.joblib"
    with pytest.MonkeyPatch.context() as patch:
        quick(patch)
        fm = kafeat.fit(ROOT / "configs/fourier.yaml", ROOT / "sample_data/digits.parquet", label="label")
    fm.save(path)
    return path


@pytest.fixture
def folder(fitted, tmp_path, monkeypatch):
    """The folder in which the commands of a page run."""
    quick(monkeypatch)
    for name in ("sample_data", "configs"):
        (tmp_path / name).symlink_to(ROOT / name)
    shutil.copy(fitted, tmp_path)
    (tmp_path / ".config/fish/completions").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", f"{Path(KAFEAT).parent}:{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(text, monkeypatch, capfd):
    """A line of `kafeat` and nothing else in this process, which saves its start; the rest in bash."""
    if re.search(r"[|<>&;$\n]|^(?!kafeat )", text):
        done = subprocess.run(["bash", "-ec", text], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, f"{text}\n{done.stderr}"
    else:
        monkeypatch.setattr(sys, "argv", shlex.split(text))
        code = _run()
        assert code == 0, f"{text}\n{capfd.readouterr().err}"


RUN = [page for page in PAGES if (of_kafeat(page) or page in PYTHON_RUN) and page not in RUN_ELSEWHERE]


@pytest.mark.parametrize("page", RUN)
@pytest.mark.slow
def test_commands_of_the_pages_work_as_printed(page, folder, monkeypatch, capfd):
    if page == "docs/onnx.md" or "kafeat export" in (ROOT / page).read_text():
        pytest.importorskip("onnxruntime")
    for text in of_kafeat(page):
        if not RUNS_NOT.search(text):
            run(re.sub(r"(?<=--trials )\d+", TRIALS, text), monkeypatch, capfd)
    if page in PYTHON_RUN:
        script = "\n".join(runnable(blocks((ROOT / page).read_text(), "python")))
        if not script:
            pytest.skip("the packages that the Python of the page imports are not here")
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr


def test_the_first_models_of_scikit_learn_have_the_printed_scores(folder):
    """The whole page is slow, because it searches a config for each fold."""
    for package in ("pandas", "sklearn"):
        pytest.importorskip(package)
    texts = blocks((ROOT / "docs/scikit_learn.md").read_text(), "python")[:2]
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(texts)], capture_output=True, text=True, timeout=120
    )
    assert re.findall(r"\)  # (0\.\d\d)$", texts[1], flags=re.M) == [
        f"{float(score):.2f}" for score in done.stdout.split()
    ]
    assert len(done.stdout.split()) == 2


def runnable(texts):
    """Those of the blocks whose packages are there."""
    for text in texts:
        nodes = list(ast.walk(ast.parse(text)))
        names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
        names += [node.module for node in nodes if isinstance(node, ast.ImportFrom)]
        packages = {name.split(".")[0] for name in names}
        if not packages & PYTHON_NOT_RUN and all(map(find_spec, packages)):
            yield text


@pytest.mark.parametrize("page", PAGES)
def test_every_line_with_kafeat_has_options_that_there_are(page):
    """Also those that are not run, of crontabs, Makefiles and Airflow."""
    text = re.sub(r" \\\n\s+", " ", (ROOT / page).read_text())
    for line in re.findall(rf"(?<![\w`/.-])kafeat ((?:{'|'.join(COMMANDS)}) [^\n]*)", text):
        line = re.split(r"\s#\s|[|;&`]|\d?>|<(?=\s)", line.replace("[", " ").replace("]", " "))[0]
        for name in re.findall(r"(?<=\s)(--?[a-z][a-z-]*)", line):
            command = whole.get_command(Context(whole), line.split()[0])
            known = {one for option in command.params for one in (*option.opts, *option.secondary_opts)}
            assert name in known | {"--help", "--help-all"}, line


@pytest.mark.parametrize("page", PAGES)
def test_targets_extras_and_scripts_of_the_pages_are_there(page):
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    makefile = (ROOT / "Makefile").read_text()
    text = (ROOT / page).read_text()
    for names in re.findall(r"(?:^ {4}|`|&& )make ((?!PYTHON)[a-z][a-z-]*)", text, flags=re.M):
        assert re.search(rf"^{names}:", makefile, flags=re.M), f"make {names}"
    for name in re.findall(r"pip install '[^'\[]*\[(\w+)\]'", text):
        assert name in extras, f"pip install '.[{name}]'"
    for name in re.findall(r"\b((?:benchmarks|docs|configs|tests|kafeat|sample_data)/[\w./-]+\.\w+)", text):
        assert re.search("my_(kind|name)", name) or (ROOT / name).exists(), name


def test_what_else_is_to_be_typed_is_known():
    """A program that this file does not know would be a command that nobody checks."""
    known = {"kafeat", "echo", "eval", "make", "pip", "python", "pytest", "tail"}
    for page in PAGES:
        for text in commands((ROOT / page).read_text()):
            word = text.split()[0]
            assert "\n" in text or word in known or not shutil.which(word), f"{page}: {text}"


def test_configs_of_the_pages_are_sound(tmp_path):
    from kafeat.config import load_config
    from kafeat.config.experiment import load_experiment

    texts = [text for page in PAGES for text in blocks((ROOT / page).read_text(), "yaml")]
    found = [text for text in texts if "steps:" in text]
    assert found
    for text in found:
        (tmp_path / "page.yaml").write_text(text)
        load = load_experiment if text.startswith("about:") else load_config
        load(str(tmp_path / "page.yaml"))


# Scores, shares of errors, speeds, and what a job took.
MEASURED = re.compile(
    r"(?:R² of|accuracy of|accuracy|had|have|has) 0\.\d|\b0\.\d+ of (?:the|its|that)\b[^.]*\berror|geometric mean|"
    r"\d times as (?:fast|long|many|much|slowly)|\btook \d|% (?:more|less) error|"
    r"\d (?:MB|GB) (?:per second|a second)|\d (?:s|seconds) (?:on|for)\b"
)
SOURCE = re.compile(r"benchmarks/(?:results/)?\w+\.(?:py|md)|`make \w+`|^ {4}make bench", flags=re.M)
COMMAND = re.compile(
    r"^ {4}(?:kafeat|python) |^kafeat |```python|"
    r"\((?:\.\./|docs/)*(?:accuracy|performance|experiments)\.md",
    flags=re.M,
)
CLAIMS = [page for page in PAGES if not re.match("CHANGELOG|CONTRIBUTING|DESIGN|docs/reference", page)]


@pytest.mark.parametrize("page", CLAIMS)
def test_every_measured_figure_stands_beside_the_command_that_makes_it(page):
    """Or beside the file of results, or the page that names it. The first lines of a page may name it for all of it."""
    text = (ROOT / page).read_text()
    first, *others = [text] if "decisions" in page else re.split(r"^## ", text, flags=re.M)
    for section in (first, *others):
        found = MEASURED.search(re.sub(r"^```.*?^```$", "", section, flags=re.M | re.S))
        named = SOURCE.search(first) or SOURCE.search(section) or COMMAND.search(section)
        assert not found or named, f"{page}: {found[0]}"


FIGURE = re.compile(r"(?<![\w.,])\d+(?:,\d{3})*(?:\.\d+)?(?: (?:s|%|MB|GB)(?!\w))?")
# Code, targets of links, dates, and the page's definitions of what `evaluate` shows
NO_FIGURES = (
    r"^```.*?^```|`[^`\n]*`|^ {4}.*?$|\]\([^)]*\)|\d+ November 2026|"
    r"^## (?:Try it|How `evaluate` measures)\n.*?(?=^## |\Z)"
)


@pytest.mark.parametrize("page", ["README.md", "docs/accuracy.md"])
def test_every_figure_stands_in_a_file_of_results(page):
    """With the same digits and unit, also each count of tables, rows and columns, in one that goes with the page."""
    names = ("scores", "performance" if page == "README.md" else "accuracy")
    results = "".join((ROOT / f"benchmarks/results/{name}.md").read_text() for name in names)
    figures = sorted(
        set(FIGURE.findall(re.sub(NO_FIGURES, "", (ROOT / page).read_text(), flags=re.S | re.M)))
    )
    assert len(figures) > 15
    assert [one for one in figures if not re.search(rf"(?<![\d.,]){re.escape(one)}(?![\d.])", results)] == []


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_a_page_and_is_in_the_lists(kind):
    page = DOCS / f"kinds/{kind}.md"
    assert page.is_file(), f"{kind}: expected docs/kinds/{kind}.md; CONTRIBUTING.md tells what it holds"
    text = page.read_text()
    parts = ["$$", "## Use it when", "## Use something else when"]
    assert set(parts) <= set(text.splitlines())
    assert "made: explanation" in text
    assert "made: parameters" in text
    if kind in registry.samplers():
        assert f"../pictures/kinds/{kind}.png" in text
        picture = DOCS / f"pictures/kinds/{kind}.png"
        assert picture.read_bytes().startswith(b"\x89PNG")
        assert picture.stat().st_size <= 40_000
    lists = {"docs/index.md": rf"\(kinds/{kind}\.md\)", "mkdocs.yml": rf"- kinds/{kind}\.md\n"}
    if kind in registry.map_kinds():
        lists["docs/onnx.md"] = rf"`{kind}`"
    for name, named in lists.items():
        assert re.search(named, (ROOT / name).read_text()), f"{name}: expected {kind} in its list of kinds"


def test_no_page_is_of_a_kind_that_is_gone():
    assert {page.stem for page in (DOCS / "kinds").iterdir()} == set(KINDS)
    assert {page.stem for page in (DOCS / "pictures/kinds").iterdir()} == set(registry.samplers())


@pytest.fixture(scope="module")
def made():
    if version("click") < "8.2":
        pytest.skip("the reference is made with a click that shows the types of arguments")
    # in a process of its own: click remembers the help option of a command that a test has called by itself
    program = (
        f"import json, runpy; of = runpy.run_path({str(DOCS / 'make_reference.py')!r}); "
        "files = [[str(path), text] for path, text in of['files']()]; "
        "print(json.dumps({'files': files, 'names': [*of['promised']()]}))"
    )
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, timeout=60)
    return json.loads(told.stdout)


def test_what_is_made_from_the_code_is_up_to_date(made):
    older = tuple(map(int, version("click").split(".")[:2])) < (8, 5)  # its completions are others
    for path, text in made["files"]:
        if older and "/share/" in path and not path.endswith(".1"):
            continue
        assert Path(path).read_text() == text, f"{path}: run `make reference`"


def test_no_promised_name_is_gone(made):
    gone = sorted({*(ROOT / "tests/stable.txt").read_text().splitlines()} - {*made["names"]})
    assert not gone, (
        f"docs/stability.md promises {'; '.join(gone)}: keep what is promised, beside a new name if there is one. Only "
        "a new major version may remove it: then delete the lines from tests/stable.txt, and say so in CHANGELOG.md"
    )


def test_the_references_leave_nothing_out():
    config, cli = ((DOCS / f"reference/{name}.md").read_text() for name in ("config", "cli"))
    kinds = "".join((DOCS / f"kinds/{kind}.md").read_text() for kind in KINDS)
    schema = config_schema()
    for part in [schema, *schema["$defs"].values()]:
        for key in set(part.get("properties", ())) - {"kind", "given"}:
            assert f"\n- `{key}`: " in (kinds if "kind" in part["properties"] else config), key
    for name in COMMANDS:
        assert f"\n## kafeat {name}\n" in cli
        for option in whole.get_command(Context(whole), name).params:
            assert not option.opts[0].startswith("-") or f"{max(option.opts, key=len)}" in cli


@pytest.mark.slow
def test_the_site_builds_without_a_warning_and_loads_nothing_from_elsewhere(tmp_path):
    pytest.importorskip("material")
    pytest.importorskip("mkdocstrings")
    pytest.importorskip("latex2mathml")
    # without --quiet, with which mkdocs counts no warnings and --strict means nothing
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", tmp_path]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    pages = list(tmp_path.rglob("*.html"))
    assert len(pages) >= len(KINDS) + 10
    loaded = r'<(?:script|img|iframe)[^>]* src="(?:https?:)?//[^"]*|<link[^>]*stylesheet[^>]* href="(?:https?:)?//[^"]*'
    for page in pages:
        text = page.read_text()
        assert not re.findall(loaded, text), page.name
        assert 'class="arithmatex"' not in text, page.name
    for kind in KINDS:
        formula = '<math xmlns="http://www.w3.org/1998/Math/MathML" display="block">'
        assert formula in (tmp_path / f"kinds/{kind}.html").read_text(), kind
