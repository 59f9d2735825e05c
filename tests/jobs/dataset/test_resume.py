"""`--resume` keeps a part only where it is what a run from the beginning would have made, rejects and drift with it."""

import json
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from kafeat.errors import DataError
from kafeat.io.options import OutputOptions
from kafeat.jobs.dataset.journal import DatasetResult
from kafeat.jobs.transform.options import BadRowsLimit
from tests.jobs.files import CONFIG, contents, manifest, transform_parts, verify_file
from tests.recipes import fit_once
from tests.zygote import apart


def table(rows: int, seed: int = 0) -> pa.Table:
    X = np.random.default_rng(seed).uniform(-1.0, 1.0, size=(rows, 2))
    X[:2] = [[-1.0, -1.0], [1.0, 1.0]]  # the range of every table is the same
    return pa.table({"a": X[:, 0], "b": X[:, 1]})


def with_last(content: pa.Table, *values: float) -> pa.Table:
    """Other values at the end of the first column."""
    column = content["a"].to_numpy().copy()
    column[-len(values) :] = values
    return content.set_column(0, "a", pa.array(column))


Go = Callable[..., DatasetResult]


@pytest.fixture
def go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Go:
    """Three parts: a is sound, b has a bad row, c has two rows of a hundred out of range. What goes on with them."""
    monkeypatch.chdir(tmp_path)
    fit_once(CONFIG, table(500)).save("map.joblib")
    Path("in").mkdir()
    pq.write_table(table(100, 1), "in/a.parquet")
    pq.write_table(with_last(table(100, 2), np.nan), "in/b.parquet")
    pq.write_table(with_last(table(100, 3), 7.0, 7.0), "in/c.parquet")

    def run(max_bad_rows: str | None = None, **more: object) -> DatasetResult:
        limit = None if max_bad_rows is None else BadRowsLimit.parse(max_bad_rows)
        asked = {"on_bad_rows": "drop", "max_bad_rows": limit, "resume": True, **more}
        return transform_parts("map.joblib", "in", "out", **asked)

    return run


def test_rejects_that_were_not_asked_for_are_made(go):
    go()
    assert go(rejects="rejects").kept == 0
    assert "100,a," in Path("rejects/b.parquet.csv").read_text()
    assert go(rejects="rejects").kept == 3
    Path("rejects/b.parquet.csv").unlink()
    assert go(rejects="rejects").kept == 2
    assert "100,a," in Path("rejects/b.parquet.csv").read_text()
    assert go(rejects="elsewhere").kept == 0
    assert len(list(Path("elsewhere").iterdir())) == 3
    assert go().kept == 3


def test_drift_that_was_not_judged_is_judged(go):
    go()
    refused = go(max_drift=0.01)
    assert [failure.exit_code for failure in refused.failed] == [6]
    assert refused.failed[0].error == (
        "in/c.parquet: expected at most 1.00% of a column outside the range of the training rows "
        "(--max-drift), got 'a' 2.00%"
    )
    assert not Path("out/c.parquet").exists()


def test_drift_that_is_known_is_judged_without_making_parts_again(go):
    assert go(max_drift=0.5).largest_drift is not None
    drifts = {part["name"]: part["drift"] for part in manifest()["parts"]}
    assert drifts["c.parquet"] == {"column": "a", "share": 0.02}
    kept = go(max_drift=0.02)
    assert (kept.kept, kept.failed, kept.drifts_known) == (3, (), 3)
    assert kept.largest_drift is not None
    assert (kept.largest_drift.column, kept.largest_drift.share) == ("a", 0.02)
    refused = go(max_drift=0.01)
    assert (refused.kept, [failure.name for failure in refused.failed]) == (2, ["c.parquet"])
    assert not Path("out/c.parquet").exists()


def test_too_many_bad_rows_of_a_kept_part_are_judged(go):
    go()
    assert go(max_bad_rows="1%").kept == 3
    refused = go(max_bad_rows="0.9%")
    assert (refused.kept, [failure.exit_code for failure in refused.failed]) == (2, [3])
    assert refused.failed[0].error.startswith(
        "in/b.parquet: expected at most 0.9% bad rows (--max-bad-rows), got 1 of 100; the first is row 100 (index 99),"
    )
    assert not Path("out/b.parquet").exists()


def test_drift_of_rows_that_are_cut_names_them(go):
    content = with_last(table(300, 4), 7.0)
    pq.write_table(content, "big.parquet")
    pa_csv.write_csv(content, "big.csv")
    for suffix in ("parquet", "csv"):
        run = transform_parts(
            "map.joblib", f"big.{suffix}", f"of-{suffix}", rows_per_file=256, max_drift=0.01
        )
        [failure] = run.failed
        assert failure.error.startswith(f"big.{suffix}: rows 257 to 300: expected")


def test_a_manifest_of_an_older_kafeat_is_read(go):
    go(rejects="rejects", max_drift=0.5)
    old = manifest()
    for part in old["parts"]:
        del part["drift"], part["rejects"]
    Path("out/_kafeat.json").write_text(json.dumps(old))
    assert go().kept == 3
    assert go(max_drift=0.5).kept == 0


def test_settings_of_an_older_kafeat_are_recognised(go):
    """Older ones wrote the defaults, too."""
    go()
    old = manifest()
    assert old["settings"] == {"on_bad_rows": "drop"}
    old["settings"] = {
        "input_format": None, "delimiter": None, "header": True, "format": None, "keep": [], "layout": "columns",
        "prefix": None, "compression": None, "dtype": None, "on_bad_rows": "drop", "rows_per_file": None,
    }  # fmt: skip
    Path("out/_kafeat.json").write_text(json.dumps(old))
    assert go().kept == 3
    old["settings"] |= {"layout": "list"}
    Path("out/_kafeat.json").write_text(json.dumps(old))
    assert go().kept == 0


@dataclass(frozen=True, kw_only=True)
class LaterOptions(OutputOptions):
    """The options of a later version."""

    grain: int = 3


def test_an_option_of_a_later_version_makes_parts_again_only_if_it_is_given(go):
    go()
    assert go(writing=LaterOptions()).kept == 3
    assert go(writing=LaterOptions(grain=4)).kept == 0
    assert go(writing=LaterOptions(grain=4)).kept == 3


@pytest.mark.parametrize("name", ["rows", "rows_read", "bad_rows", "clipped", "made_by"])
def test_a_manifest_with_numbers_that_cannot_be_is_refused(name, go):
    go()
    told = manifest()
    told["parts"][1][name] = -5
    Path("out/_kafeat.json").write_text(json.dumps(told))
    with pytest.raises(DataError, match=rf"_kafeat.json: parts.1.{name}: expected a manifest of kafeat, got"):
        go()


def test_machines_of_kept_parts_stay_known(go):
    go()
    (machine,) = manifest()["machines"]
    assert go().kept == 3
    assert manifest()["machines"] == [machine]
    told = manifest()
    told["machines"][0]["processor"] = "another"
    Path("out/_kafeat.json").write_text(json.dumps(told))
    pq.write_table(table(50, 5), "in/b.parquet")
    go()
    told = manifest()
    by = {str(part["name"]): told["machines"][int(str(part["made_by"]))] for part in told["parts"]}
    other = {**machine, "processor": "another"}
    assert by == {"a.parquet": other, "b.parquet": machine, "c.parquet": other}


def test_parts_that_a_killed_run_did_not_note_are_its_own(go):
    go()
    told = manifest()
    told["parts"], told["state"] = told["parts"][:1], "running"
    told["foreign"] = ["c.parquet", "other.parquet"]
    Path("out/_kafeat.json").write_text(json.dumps(told))
    Path("out/other.parquet").write_bytes(b"of somebody")
    run = go()
    assert (run.kept, run.parts, run.unknown_files) == (1, 2, ("c.parquet", "other.parquet"))
    assert [failure.name for failure in run.failed] == ["c.parquet"]


def test_files_that_no_manifest_tells_are_not_replaced_unless_that_is_asked_for(go):
    go()
    before = contents("out")
    del before["_kafeat.json"]
    Path("out/_kafeat.json").unlink()
    for _ in range(2):  # what the first of these tells makes the files no parts of ours
        run = go()
        assert run.unknown_files == ("a.parquet", "b.parquet", "c.parquet")
        assert [failure.exit_code for failure in run.failed] == [2, 2, 2]
        assert "out/a.parquet: expected no file of that name, got one; allow" in run.failed[0].error
        assert before.items() <= contents("out").items()
    assert go(resume=False, overwrite=True).parts == 3


def test_a_part_whose_new_input_is_bad_is_not_left_from_the_old_one(go):
    go(rejects="rejects")
    sound = Path("in/a.parquet").read_bytes()
    Path("in/a.parquet").write_bytes(b"?" * len(sound))  # of the same size: only its hash tells
    Path("in/b.parquet").write_bytes(b"of another size")
    run = go(rejects="rejects")
    assert [failure.name for failure in run.failed] == ["a.parquet", "b.parquet"]
    assert [path.name for path in Path("out").glob("[!_]*")] == ["c.parquet"]
    assert [path.name for path in Path("rejects").iterdir()] == ["c.parquet.csv"]


def test_rejects_of_a_part_that_is_removed_go_with_it_and_others_stay(go):
    go(rejects="rejects")
    Path("rejects/c.parquet.csv").write_text("of somebody")
    for name in "bc":
        Path(f"in/{name}.parquet").unlink()
    assert go(rejects="rejects").removed == ("b.parquet", "c.parquet")
    assert {path.name for path in Path("rejects").iterdir()} == {"a.parquet.csv", "c.parquet.csv"}


KILLED = """
import os, signal, sys
import kafeat
from kafeat.jobs.dataset.journal import Journal

add, left = Journal.add, int(sys.argv[1])

def add_or_die(journal, outcome):
    global left
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)
    left -= 1
    add(journal, outcome)

Journal.add = add_or_die
kafeat.transform("in", "out", model="map.joblib", resume=True, on_bad_rows="drop", jobs=1)
"""


@pytest.mark.parametrize("noted", range(3))
def test_a_part_of_a_killed_run_whose_input_is_gone_is_removed(go, noted):
    assert apart(str(noted), code=KILLED).returncode == -signal.SIGKILL
    assert manifest()["pending"] == ["a.parquet", "b.parquet", "c.parquet"]
    made = [path.name for path in sorted(Path("out").glob("*.parquet"))]
    assert len(made) == noted + 1
    Path("out/other.parquet").write_bytes(b"of somebody")
    Path("in", made[-1]).unlink()
    run = go()
    assert (run.removed, run.unknown_files) == ((made[-1],), ("other.parquet",))
    Path("out/other.parquet").unlink()
    assert {path.name for path in Path("in").iterdir()} == {*contents("out")} - {"_kafeat.json"}
    assert manifest()["pending"] == []
    assert verify_file("map.joblib", "in", "out").largest_difference == 0.0


def test_a_run_that_is_killed_while_it_removes_parts_has_not_said_complete(go, monkeypatch):
    go()
    fit_once({**CONFIG, "seed": 1}, table(500)).save("map.joblib")
    Path("in/c.parquet").unlink()

    def killed(*_: object) -> bool:
        assert (manifest()["state"], manifest()["exit_code"]) == ("running", None)
        raise MemoryError("killed")

    with monkeypatch.context() as patched:
        patched.setattr("kafeat.jobs.dataset.plan.remove_part", killed)
        with pytest.raises(MemoryError, match="killed"):
            go()
    assert set(contents("out")) == {"_kafeat.json", "a.parquet", "b.parquet", "c.parquet"}
    assert go().removed == ("c.parquet",)
    assert verify_file("map.joblib", "in", "out").largest_difference == 0.0


def test_parts_whose_hashes_were_not_compared_before_the_end_stay_known(go):
    go()
    for path in Path("in").iterdir():
        path.touch()

    def stop(_done: int) -> None:
        raise KeyboardInterrupt("stop")

    with pytest.raises(KeyboardInterrupt, match="stop"):
        go(announce=lambda _parts: stop)
    assert [part["name"] for part in manifest()["parts"]] == ["a.parquet", "b.parquet", "c.parquet"]
    assert go().kept == 3
