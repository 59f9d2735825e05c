"""transform --dry-run over many files: what the run would make, and that nothing is written."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest
from click.testing import CliRunner

import kafeat
from kafeat.cli.main import kafeat as command
from kafeat.errors import SystemRefusedError, UsageError
from kafeat.io.options import InputOptions
from kafeat.io.storage.location import parse_location
from kafeat.jobs.dataset.dry_run import DryRun, dry_run_parts
from kafeat.jobs.dataset.request import DatasetRequest
from kafeat.runtime.backends import Engine
from tests.jobs.parts import transform_parts

ROWS, WIDTH = (400, 800, 1200), 8


def table(rows: int) -> pa.Table:
    X = np.random.default_rng(rows).normal(size=(rows, 2))
    return pa.table({"a": X[:, 0], "b": X[:, 1]})


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    for i, rows in enumerate(ROWS):
        np.save(f"in/p{i}.npy", np.column_stack([*table(rows).to_pydict().values()]))
    step = {
        "kind": "fourier",
        "n_components": WIDTH,
        "gamma": 1.0,
        "frequencies": "iid",
        "weights": "uniform",
    }
    kafeat.fit({"chunk_rows": 256, "steps": [step]}, np.load("in/p0.npy")).save("map.joblib")
    kafeat.fit({"chunk_rows": 256, "steps": [step]}, table(400)).save("named.joblib")
    return tmp_path


def plan(source: str, model: str = "map.joblib", target: str = "out", **more: object) -> DryRun:
    asked = {"engine": Engine(jobs=1), **more}
    return dry_run_parts(
        DatasetRequest(parse_location(model), parse_location(source), parse_location(target), **asked)
    )  # type: ignore[arg-type]


def everything(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_plan_is_what_the_run_makes_and_writes_nothing(folder: Path) -> None:
    before = everything(folder)
    found = plan("in")
    assert everything(folder) == before
    assert not (folder / "out").exists()
    assert (found.parts, found.exact_parts, found.kept, found.columns) == (3, True, 0, WIDTH)
    transform_parts("map.joblib", "in", "out")
    written = sum(path.stat().st_size for path in (folder / "out").glob("*.npy"))
    # a header of 128 bytes in every file, of input and output: the largest part stands for the share that it takes
    assert found.rows == pytest.approx(sum(ROWS), rel=0.02)
    assert found.bytes == pytest.approx(written, rel=0.02)


def test_parts_that_resume_would_keep_are_not_planned(folder: Path) -> None:
    transform_parts("map.joblib", "in", "out")
    found = plan("in", resume=True)
    assert (found.parts, found.kept, found.rows, found.bytes) == (0, 3, 0, 0)
    (folder / "out/p1.npy").unlink()
    before = everything(folder)
    found = plan("in", resume=True)
    assert everything(folder) == before
    assert (found.parts, found.kept, found.rows, found.exact_rows) == (1, 2, ROWS[1], True)


def test_one_file_that_is_cut(folder: Path) -> None:
    found = plan("in/p2.npy", rows_per_file=300)  # of whole chunks: 256 rows
    assert (found.parts, found.exact_parts, found.rows) == (5, True, 1200)
    assert found.bytes == pytest.approx(1200 * WIDTH * 4, rel=0.02)
    transform_parts("map.joblib", "in/p2.npy", "out", rows_per_file=300)
    (folder / "out/p2-00004.npy").unlink()  # the last one, of 1,200 - 4·256 rows
    found = plan("in/p2.npy", rows_per_file=300, resume=True)
    assert (found.parts, found.kept, found.rows) == (1, 4, 1200 - 4 * 256)


def test_text_that_is_cut(folder: Path) -> None:
    pa_csv.write_csv(table(1200), "big.csv")
    found = plan("big.csv", "named.joblib", rows_per_file=300)
    assert (found.parts, found.rows, found.columns) == (5, 1200, WIDTH)
    transform_parts("named.joblib", "big.csv", "out", rows_per_file=300)
    assert len(list((folder / "out").glob("*.csv"))) == 5
    found = plan("big.csv", "named.joblib", rows_per_file=300, resume=True)
    assert (found.parts, found.kept) == (0, 5)


def test_a_disk_that_is_too_small_is_told_before_the_run(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kafeat.io.storage.local_path.LocalPath.free_bytes", lambda place: 1000)
    with pytest.raises(SystemRefusedError, match=r"out: expected room for .* KiB, got 1000 B free"):
        plan("in")


@pytest.mark.parametrize(
    ("source", "more", "said"),
    [
        ("-", {"rows_per_file": 300}, "-: expected files for --dry-run, got standard input"),
        ("in", {"target": "in/out"}, "expected an output apart from the input"),
        ("in", {"target": "full"}, "full: expected an empty folder or none, got 1 file"),
        ("in", {"reading": InputOptions(limit=5)}, "--limit: expected one file"),
        ("in", {"resume": True, "overwrite": True}, "--resume: expected --resume or --overwrite, got both"),
    ],
)
def test_what_the_run_would_refuse_is_refused(
    folder: Path, source: str, more: dict[str, object], said: str
) -> None:
    (folder / "full").mkdir()
    (folder / "full/x").touch()
    with pytest.raises(UsageError, match=said):
        plan(source, **more)


def test_the_command_tells_the_plan(folder: Path) -> None:
    words = ["transform", "--model", "map.joblib", "in", "out", "--dry-run", "-j", "1"]
    lines = CliRunner().invoke(command, words, catch_exceptions=False).stdout.splitlines()
    assert lines[0] == "parts:   3"
    assert lines[1].startswith("rows:    about 2,4")
    assert lines[2] == "columns: 8"
    assert lines[3].startswith("bytes:   about 7")
    assert not (folder / "out").exists()
    transform_parts("map.joblib", "in", "out")
    lines = CliRunner().invoke(command, [*words, "--resume"], catch_exceptions=False).stdout.splitlines()
    assert lines[:2] == ["parts:   0 (3 more are kept)", "rows:    0"]
