"""No output of any command takes the place of something that the command reads, however it is spelled."""

import os
import shutil
from itertools import combinations
from pathlib import Path

import click
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kafeat
from kafeat.cli.main import COMMANDS
from kafeat.cli.main import kafeat as command
from kafeat.cli.options import ColumnName, ColumnNames, FileName, KindName
from kafeat.errors import UsageError
from tests.jobs.files import contents
from tests.zygote import apart

CONFIG = """\
steps:
  - kind: nystroem
    n_components: 4
    landmarks: {given: landmarks.csv}
"""
GIVEN = {
    "fit": {"config": "c.yaml", "data": "x.parquet", "model": "new.joblib"},
    "transform": {
        "model": "m.joblib", "source": "x.parquet", "target": "o.csv", "rejects": "r.csv", "stats": "s.json",
        "metrics": "m.prom",
    },
    "evaluate": {
        "model": "m.joblib", "config": "c.yaml", "experiment": "x.yaml", "data": "x.parquet",
        "json": "e.json", "report": "pages",
    },
    "export": {"model": "m.joblib", "out": "o.onnx"},
    "verify": {"model": "m.joblib", "source": "x.parquet", "target": "z.csv", "stats": "s.json"},
    "diff": {"a": "m.joblib", "b": "m.joblib"},
    "inspect": {"model": "m.joblib"},
    "config": {"files": "c.yaml", "data": "x.parquet"},
    "demo": {"folder": "new"},
    "tune": {
        "data": "x.parquet", "config": "new.yaml", "base": "c.yaml", "json": "r.json", "report": "pages",
        "model": "new.joblib",
    },
}  # fmt: skip
GIVEN["predict"] = GIVEN["transform"]
"""A value for every file and folder of every command."""
DROP = ["--on-bad-rows", "drop"]
MORE = {"transform": DROP, "predict": DROP, "tune": ["--label", "a"]}
NO_FILES = {
    "null_values", "date_format", "color", "max_bad_rows", "sweep", "prefix", "delimiter", "engine", "scheduler",
    "time", "split_by", "thousands", "unit", "encoding",
}  # fmt: skip
"""Options that are text, and the name of no file."""


def all_commands() -> dict[str, click.Command]:
    context = click.Context(command)
    return {name: command.get_command(context, name) for name in COMMANDS}


def files_of(one: click.Command) -> dict[str, click.Parameter]:
    return {p.name.removesuffix("_file"): p for p in one.params if isinstance(p.type, FileName)}


def overlaps() -> list[tuple[str, str, str]]:
    """Every command with each of its outputs and each of its inputs."""
    found = []
    for name, one in all_commands().items():
        files = files_of(one)
        outputs = [key for key, p in files.items() if p.type.written]
        found += [(name, out, key) for out in outputs for key, p in files.items() if not p.type.written]
    return found


def line(name: str, **changed: str) -> list[str]:
    """The command line with all files, some of them changed."""
    words, one = [name, *MORE.get(name, [])], all_commands()[name]
    for key, parameter in files_of(one).items():
        value = changed.get(key, GIVEN[name][key])
        words += [parameter.opts[-1], value] if isinstance(parameter, click.Option) else [value]
    return words


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    X = np.random.default_rng(0).normal(size=(60, 2))
    pq.write_table(pa.table({"a": X[:, 0], "b": X[:, 1]}), "x.parquet")
    Path("landmarks.csv").write_text("a,b\n" + "".join(f"{a},{b}\n" for a, b in X[:4]))
    Path("c.yaml").write_text(CONFIG)
    Path("x.yaml").write_text("about: a\ndata: b\nmaps: {m: {steps: [{kind: projection}]}}\n")
    kafeat.fit("c.yaml", "x.parquet").save("m.joblib")
    return tmp_path


def refused(words: list[str], folder: Path, match: str) -> None:
    before = contents(folder)
    with pytest.raises(UsageError, match=match) as raised:
        command.main(words, standalone_mode=False)
    assert raised.value.exit_code == 2
    assert contents(folder) == before


def test_every_text_that_may_name_a_file_says_what_becomes_of_it():
    for name, one in all_commands().items():
        for parameter in one.params:
            if isinstance(parameter.type, click.types.StringParamType):
                text = parameter.type is click.STRING
                assert text == (parameter.name in NO_FILES), f"{name}: {parameter.name}"
                known = FileName | KindName | ColumnName | ColumnNames
                assert text or isinstance(parameter.type, known), parameter.name
        assert set(files_of(one)) == set(GIVEN.get(name, {})), name


@pytest.mark.sampled
@pytest.mark.parametrize(("name", "out", "key"), overlaps())
def test_no_output_takes_the_place_of_an_input(name, out, key, here):
    source = GIVEN[name][key]
    if out == "report":
        (here / "pages").mkdir()
        (here / "pages" / "index.html").symlink_to(here / source)
        refused(line(name), here, "pages/index.html: expected --report apart from")
        return
    refused(line(name, **{out: source}), here, rf"^{source}: expected .* apart from .*, got the same file$")


@pytest.mark.sampled
@pytest.mark.parametrize(
    "spelled",
    ["./x.parquet", "pages/../x.parquet", "file://{here}/x.parquet", "soft.parquet", "hard.parquet"],
)
@pytest.mark.parametrize("given", ["x.parquet", "{here}/x.parquet", "list.txt", "all", "all/*.parquet"])
def test_spellings_and_links(spelled, given, here):
    for folder in ("pages", "all"):
        (here / folder).mkdir()
    (here / "all" / "a.parquet").symlink_to(here / "x.parquet")
    (here / "list.txt").write_text("all/a.parquet\n")
    (here / "soft.parquet").symlink_to("x.parquet")
    os.link("x.parquet", "hard.parquet")
    words = line("evaluate", data=given.format(here=here), json=spelled.format(here=here))
    refused(words, here, "expected --json apart from the input, got the same file$")


@pytest.mark.parametrize(("command_name", "changed", "says"), [
    ("fit", {"model": "landmarks.csv"}, "a model apart from the rows that c.yaml names, got the same file"),
    ("evaluate", {"json": "landmarks.csv"}, "--json apart from the rows that c.yaml names, got the same file"),
    ("evaluate", {"data": "all", "json": "all/e.json"}, "--json apart from the input, got one inside of the other"),
    ("evaluate", {"data": "all/*.json", "json": "all/e.json"}, "--json apart from the input, got one inside"),
    ("evaluate", {"data": "all", "report": "all"}, "--report apart from the input, got one inside of the other"),
    ("evaluate", {"data": "list.txt", "json": "list.txt"}, "--json apart from the input, got the same file"),
    ("evaluate", {"json": "pages/index.html"}, "--json apart from --report, got the same file"),
    ("transform", {"stats": "r.csv"}, "--rejects apart from --stats, got the same file"),
    ("transform", {"stats": "m.prom"}, "--stats apart from --metrics, got the same file"),
    ("fit", {"config": "-", "data": "-"}, "one of the config and the input on standard input, got both"),
    ("evaluate", {"config": "-", "data": "-"}, "one of the config and the input on standard input, got both"),
])  # fmt: skip
def test_other_overlaps(command_name, changed, says, here):
    (here / "all").mkdir()
    shutil.copy("x.parquet", "all/a.parquet")
    (here / "list.txt").write_text("all/a.parquet\n")
    refused(line(command_name, **changed), here, f"expected {says}")


def pairs_of_outputs() -> list[tuple[str, str, str]]:
    """Every command with every two of its outputs that are one file."""
    return [
        (name, *pair)
        for name, one in all_commands().items()
        for pair in combinations(
            [key for key, p in files_of(one).items() if p.type.use in ("model", "output")], 2
        )
    ]


@pytest.mark.parametrize(("name", "one", "other"), pairs_of_outputs())
def test_no_two_outputs_are_one_pipe(name, one, other, here):
    os.mkfifo("pipe.csv")
    (here / "link.csv").symlink_to("pipe.csv")
    for first, second in (("pipe.csv", "link.csv"), ("./link.csv", "link.csv")):
        told = "expected .* apart from .*, got the same stream$"
        refused(line(name, **{one: first, other: second}), here, told)


@pytest.mark.parametrize("spelled", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "link"])
@pytest.mark.parametrize("other", ["rejects", "stats"])
def test_no_output_is_standard_output_beside_another(spelled, other, here, capfd):
    (here / "link").symlink_to("/dev/stdout")
    words = [*line("transform", target="-", **{other: spelled}), "--output-format", "csv"]
    refused(words, here, f"^{spelled}: expected --{other} apart from the output, got the same stream$")
    assert not capfd.readouterr().out


def test_several_outputs_may_go_to_the_null_device(here):
    words = line("transform", target="/dev/null", rejects="/dev/null", stats="/dev/null")
    command.main([*words, "--output-format", "csv"], standalone_mode=False)


def test_outputs_beside_the_input_are_fine(here):
    (here / "all").mkdir()
    shutil.copy("x.parquet", "all/a.parquet")
    for data, model in (("all", "all/_map.joblib"), ("all/*.parquet", "all/map.joblib")):
        command.main(line("fit", data=data, model=model), standalone_mode=False)
        assert Path(model).exists()


def test_standard_input_from_the_file_that_would_be_replaced(here):
    Path("x.csv").write_text("a,b\n1,2\n")
    with Path("x.csv").open() as same:
        done = apart("transform --model m.joblib - x.csv", stdin=same, text=True)
    said = "kafeat: x.csv: expected an output apart from the input, got the same file\n"
    assert (done.returncode, done.stderr) == (2, said)
    assert Path("x.csv").read_text() == "a,b\n1,2\n"
