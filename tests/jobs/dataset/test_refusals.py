"""What no part can give is refused once and before anything is written; a part that differs fails alone."""

import re
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

import kafeat
from kafeat.errors import DataError, KafeatError, SystemRefusedError, UsageError
from tests.recipes import fit_once
from tests.sizes import sampled

STEPS = [{"kind": "standardize"}]
PARTS = 6
PART = pa.table({"x": [1.0, 2.0], "id": ["a", "b"], "f0": [1, 2], "n": [{"q": 1}, {"q": 2}]})


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a model, the folders `csv` and `parquet` of equal parts, and an output of an earlier run."""
    monkeypatch.chdir(tmp_path)
    fit_once({"columns": {"include": ["x"]}, "steps": STEPS}, PART).save("m.joblib")
    for name in ("csv", "parquet"):
        Path(name).mkdir()
    for i in range(PARTS):
        pa_csv.write_csv(PART.drop(["n"]), f"csv/p{i}.csv")
        pq.write_table(PART, f"parquet/p{i}.parquet")
    kafeat.transform("parquet", "before", model="m.joblib")
    return tmp_path


def names(folder: str) -> list[str]:
    return sorted(path.name for path in Path(folder).iterdir())


@pytest.mark.parametrize(("source", "options", "error", "message"), [
    ("csv", {"keep": ["nope"]}, DataError, "^csv/p0.csv: --keep: expected .* 'nope', got x, id, f0$"),
    ("parquet", {"keep": ["nope"]}, DataError, "^parquet/p0.parquet: --keep: expected the column 'nope'"),
    ("parquet", {"keep": ["n"]}, DataError, "column 'n': expected a passthrough column of plain values"),
    ("csv", {"keep": ["id", "id"]}, UsageError, "expected every passthrough column once, got id, id"),
    ("csv", {"keep": ["id"], "output_format": "libsvm"}, UsageError, "the label of LIBSVM, got string"),
    ("csv", {"delimiter": "ab"}, UsageError, "--delimiter: expected one character, got 'ab'"),
    ("csv", {"no_header": True}, DataError, "expected 1 feature columns, got 2"),
    ("csv/p0.csv", {"keep": ["nope"], "rows_per_file": 8192}, DataError, "--keep: expected the column"),
])  # fmt: skip
@pytest.mark.parametrize("target", ["new", *sampled("before")])
def test_a_request_that_no_part_can_meet_is_refused_once(place, source, options, error, message, target):
    before = names("before")
    with pytest.raises(error, match=message):
        kafeat.transform(source, target, model="m.joblib", overwrite=True, **options)
    assert not Path("new").exists()
    assert names("before") == before


@pytest.mark.parametrize("part", [0, PARTS - 1])
@pytest.mark.parametrize("content", ["x,f0\n1,2\n", 'x,id\n1,"\n'])
def test_a_part_that_differs_fails_alone(place, run, part, content):
    Path(f"csv/p{part}.csv").write_text(content)
    done = run("transform --model m.joblib csv new --keep id", code=3)
    first, last = done.stderr.splitlines()
    assert first.startswith(f"kafeat: csv/p{part}.csv: ")
    assert f"got 1 that failed and {PARTS - 1} that are done" in last
    assert len(list(Path("new").glob("*.csv"))) == PARTS - 1


MISSING = ["in/[site].csv", "in/a?.csv", "in/*.parquet", "no/[x].csv", "no/**/x.csv", "no.csv", "no/", "no"]


@pytest.mark.sampled
@pytest.mark.parametrize("source", MISSING)
@pytest.mark.parametrize(("target", "options"), [
    *((target, {}) for target in ("out.csv", "there.csv", "out", "-")),
    *(
        ("out", one)
        for one in ({"rows_per_file": 8192}, {"engine": "processes"}, {"limit": 1}, {"resume": True})
    ),
])  # fmt: skip
def test_a_missing_input_is_said_to_be_missing(place, source, target, options):
    """Brackets and question marks may be wildcards, or of the name of one file."""
    Path("in").mkdir()
    Path("there.csv").touch()
    told = f"^{re.escape(source)}: (expected .* got nothing of|No such file)"
    with pytest.raises(SystemRefusedError, match=told):
        kafeat.transform(source, target, model="m.joblib", **options)
    assert not Path("out").exists()


@pytest.mark.parametrize("source", [name for name in MISSING if name not in ("no.csv", "no")])
def test_every_command_says_that_a_pattern_matches_nothing(place, run, source):
    Path("c.yaml").write_text("columns: {include: [x]}\nsteps: [{kind: standardize}]\n")
    for command in (
        ("fit", "--config", "c.yaml", source, "m2.joblib"),
        ("verify", "--model", "m.joblib", source, "before"),
        ("verify", "--model", "m.joblib", "parquet", source),
        ("evaluate", "--config", "c.yaml", "--label", "y", source),
        ("tune", source, "new.yaml", "--label", "y"),
        ("config", "--for", source),
    ):
        done = run(*command, code=5)
        assert "got nothing of that name" in done.stderr


def test_a_file_whose_name_has_wildcards_is_read(place):
    Path("p[1]?.csv").write_text("x\n1\n2\n")
    assert kafeat.transform("p[1]?.csv", "out.csv", model="m.joblib").rows == 2
    Path("empty").mkdir()
    with pytest.raises(KafeatError, match="^empty: expected at least one file, got none$") as caught:
        kafeat.transform("empty", "out", model="m.joblib")
    assert caught.value.exit_code == 3
