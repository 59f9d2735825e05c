"""A data set of many files through a map: each part as it would be by itself, done or not there."""

import getpass
import json
import os
import re
import signal
import socket
import time
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import kafeat
from kafeat.errors import DataError, PartsError, SystemRefusedError, UsageError
from kafeat.io.options import OutputOptions
from kafeat.io.storage.location import parse_location
from kafeat.jobs.dataset import api, journal
from kafeat.jobs.dataset import part as one_part
from kafeat.jobs.dataset.manifest import PartFailure
from kafeat.jobs.transform.transform import TransformJob
from kafeat.model.shared import SharedMap
from kafeat.runtime.engine import Engine, Pool, Stop
from tests.jobs.files import manifest, transform_file, transform_parts
from tests.recipes import fit_once
from tests.sizes import sampled
from tests.zygote import Process

CONFIG = {
    "chunk_rows": 256,
    "steps": [{"kind": "standardize"}, {"kind": "fourier", "n_components": 8, "frequencies": "orthogonal"}],
}
SIZES = {"year=2023/a.parquet": 700, "year=2023/b.parquet": 0, "year=2024/a.parquet": 300}


def table(rows: int, seed: int = 0) -> pa.Table:
    X = np.random.default_rng(seed).normal(size=(rows, 4))
    names = pa.array([f"r{i}" for i in range(rows)], pa.string())
    return pa.table({f"x{j}": X[:, j] for j in range(4)} | {"id": names})


@pytest.fixture
def model(tmp_path: Path) -> str:
    path = str(tmp_path / "map.joblib")
    fit_once(CONFIG, table(500, seed=9).drop(["id"])).save(path)
    return path


@pytest.fixture
def data(tmp_path: Path) -> str:
    for seed, (name, rows) in enumerate(SIZES.items()):
        place = tmp_path / "in" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table(rows, seed), place)
    (tmp_path / "in" / "_SUCCESS").touch()
    (tmp_path / "in" / ".hidden").mkdir()
    (tmp_path / "in" / ".hidden" / "x.parquet").write_bytes(b"no Parquet")
    return str(tmp_path / "in")


def files(folder: str | Path) -> dict[str, bytes]:
    """All files of a folder but the manifest, hidden ones too."""
    found = (path for path in Path(folder).rglob("*") if path.is_file() and path.name != "_kafeat.json")
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def test_every_part_is_what_a_run_of_its_own_makes(model, data, tmp_path):
    out = str(tmp_path / "out")
    run = transform_parts(model, data, out, keep=["id"])
    assert (run.parts, run.rows, run.columns, run.failed) == (3, 1000, 8, ())
    for name in SIZES:
        alone = str(tmp_path / "alone.parquet")
        transform_file(model, f"{data}/{name}", alone, keep=["id"])
        assert files(out)[name] == Path(alone).read_bytes()
    assert set(files(out)) == set(SIZES)
    seen = ds.dataset(out, partitioning="hive").to_table()
    assert seen.num_rows == 1000
    assert set(seen["year"].to_pylist()) == {2023, 2024}


def test_the_manifest_tells_rows_bytes_hashes_and_machine(model, data, tmp_path):
    out = str(tmp_path / "out")
    transform_parts(model, data, out)
    told = manifest(out)
    assert (told["state"], told["rows"], told["map"]) == ("complete", 1000, kafeat.load(model).digest)
    from hashlib import sha256

    for part in told["parts"]:
        read, written = Path(data, part["name"]), Path(out, part["name"])
        assert part["rows"] == SIZES[part["name"]]
        assert part["input"]["sha256"] == sha256(read.read_bytes()).hexdigest()
        assert part["output"]["sha256"] == sha256(written.read_bytes()).hexdigest()
        assert part["output"]["bytes"] == written.stat().st_size
    assert told["machines"][0]["kafeat"] == kafeat.__version__


@pytest.mark.parametrize("engine", [Engine(jobs=1), Engine(jobs=5), Engine("processes", jobs=2)])
def test_engines_and_their_jobs_move_no_byte(engine, model, data, tmp_path):
    transform_parts(model, data, tmp_path / "out")
    transform_parts(model, data, tmp_path / "other", engine=engine)
    assert files(tmp_path / "out") == files(tmp_path / "other")


@pytest.mark.parametrize("pattern", ["year=*/a.parquet", "**/a.parquet", "year=202[34]/a.*"])
def test_a_glob_keeps_the_names_below_its_fixed_part(pattern, model, data, tmp_path):
    transform_parts(model, f"{data}/{pattern}", tmp_path / "out", output_format="npy")
    assert set(files(tmp_path / "out")) == {"year=2023/a.npy", "year=2024/a.npy"}


def test_parts_with_the_suffix_of_a_list_are_tables(model, tmp_path):
    (tmp_path / "texts").mkdir()
    pa_csv.write_csv(table(100), tmp_path / "texts/a.txt")
    run = transform_parts(model, tmp_path / "texts", tmp_path / "out", input_format="csv")
    assert (run.rows, run.failed) == (100, ())


def test_a_list_of_names_and_the_manifest_of_a_run_are_inputs(model, data, tmp_path):
    (tmp_path / "in" / "some.txt").write_text("# these\nyear=2024/a.parquet\n\nyear=2023/b.parquet\n")
    transform_parts(model, f"{data}/some.txt", tmp_path / "out", keep=None)
    assert set(files(tmp_path / "out")) == {"year=2024/a.parquet", "year=2023/b.parquet"}
    transform_parts(model, tmp_path / "out" / "_kafeat.json", tmp_path / "again", prefix="g")  # fmt: skip
    assert manifest(tmp_path / "again")["rows"] == 300


@pytest.mark.parametrize(("text", "says"), [
    (r'["a.parquet\u0000"]', r"expected names that a file can have, got 'a.parquet\\x00'"),
    (r'["s3://bucket/\u0000.parquet"]', r"expected names that a file can have, got 's3://"),
    (r'["\ud800.parquet"]', r"expected a list of names, .*, got: unexpected end of hex escape at line 1"),
    ('{"a": 1}', "expected a list of names, or the manifest of a run, got other JSON"),
    ('["in.parquet", 1]', "expected a list of names, or the manifest of a run, got other JSON"),
    ('["no.parquet"]', "expected a file, got none of the name 'no.parquet'"),
])  # fmt: skip
def test_a_list_that_names_no_files_is_refused(text, says, model, tmp_path):
    (tmp_path / "list.json").write_text(text)
    with pytest.raises(DataError, match=rf"list.json: {says}"):
        transform_parts(model, tmp_path / "list.json", tmp_path / "out")


@pytest.mark.parametrize("suffix", ["parquet", "npy", "csv"])
def test_one_file_is_cut_where_chunks_begin(suffix, model, tmp_path):
    whole = table(1000).drop(["id"])
    source = str(tmp_path / f"big.{suffix}")
    if suffix == "parquet":
        pq.write_table(whole, source, row_group_size=300)  # groups that fit neither chunks nor parts
    elif suffix == "csv":
        pa_csv.write_csv(whole, source)
    else:
        np.save(source, np.column_stack([column.to_numpy() for column in whole.columns]))
    transform_file(model, source, tmp_path / "whole.npy")
    out = tmp_path / "out"
    transform_parts(model, source, out, output_format="npy", rows_per_file=600)
    parts = [np.load(out / f"big-{i:05d}.npy") for i in range(2)]
    assert [len(part) for part in parts] == [512, 488]
    assert np.array_equal(np.concatenate(parts), np.load(tmp_path / "whole.npy"))
    assert set(files(out)) == {"big-00000.npy", "big-00001.npy"}


@pytest.mark.parametrize("rows", [0, 512])
def test_whole_chunks_leave_no_empty_part_behind_them(rows, model, tmp_path):
    pa_csv.write_csv(table(rows).drop(["id"]), tmp_path / "big.csv")
    transform_parts(model, tmp_path / "big.csv", tmp_path / "out", rows_per_file=256)
    assert len(files(tmp_path / "out")) == max(1, rows // 256)


def test_parts_lower_than_a_chunk_are_refused(model, data, tmp_path):
    with pytest.raises(UsageError, match="at least 256, the rows of one chunk of the map, got 100"):
        transform_parts(model, f"{data}/year=2023/a.parquet", tmp_path / "out", rows_per_file=100)
    assert not (tmp_path / "out").exists()


def test_a_bad_row_of_a_text_fails_its_own_part(model, tmp_path):
    lines = ["x0,x1,x2,x3"] + ["1,2,3,4"] * 600
    lines[300] = "1,2,three,4"
    (tmp_path / "big.csv").write_text("\n".join(lines) + "\n")
    run = transform_parts(model, tmp_path / "big.csv", tmp_path / "out", rows_per_file=256)
    assert [failure.name for failure in run.failed] == ["big-00001.csv"]
    assert "row 300 (index 299)" in run.failed[0].error
    assert set(files(tmp_path / "out")) == {"big-00000.csv", "big-00002.csv"}


def test_an_output_that_holds_something_is_refused(model, data, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "precious.parquet").write_bytes(b"something")
    with pytest.raises(UsageError, match="expected an empty folder or none, got 1 file; --resume"):
        transform_parts(model, data, out)
    assert files(out) == {"precious.parquet": b"something"}
    run = transform_parts(model, data, out, overwrite=True)
    assert run.unknown_files == ("precious.parquet",)
    assert files(out)["precious.parquet"] == b"something"


@pytest.mark.parametrize("hidden", [False, True])
def test_resume_makes_again_what_has_changed_and_nothing_else(hidden, model, data, tmp_path):
    out, place = str(tmp_path / "out"), Path(data, "year=2024/a.parquet")
    transform_parts(model, data, out)
    before = {name: parse_location(f"{out}/{name}").entry() for name in SIZES}
    assert transform_parts(model, data, out, resume=True).kept == 3
    was, content = place.stat(), bytearray(place.read_bytes())
    at = content.index(table(300, 2)["x0"].to_numpy()[:4].tobytes())
    content[at : at + 8] = np.float64(0.25).tobytes()
    place.write_bytes(content)
    if hidden:
        os.utime(place, ns=(was.st_atime_ns, was.st_mtime_ns))
    assert transform_parts(model, data, out, resume=True).kept == 2
    after = {name: parse_location(f"{out}/{name}").entry() for name in SIZES}
    assert [name for name in SIZES if before[name] != after[name]] == ["year=2024/a.parquet"]
    transform_parts(model, data, tmp_path / "fresh")
    assert files(out) == files(tmp_path / "fresh")


def test_a_touched_or_copied_part_is_proven_by_its_hash(model, data, tmp_path):
    out = str(tmp_path / "out")
    transform_parts(model, data, out)
    for place in (f"{data}/year=2024/a.parquet", f"{out}/year=2023/a.parquet"):
        copied = Path(place).read_bytes()
        os.unlink(place)
        Path(place).write_bytes(copied)
    assert transform_parts(model, data, out, resume=True).kept == 3
    # the stamps of today are noted: nothing is hashed the next time
    assert transform_parts(model, data, out, resume=True).kept == 3


@pytest.mark.parametrize("damage", ["cut", "flip", "gone"])
def test_a_damaged_output_is_made_again(damage, model, data, tmp_path):
    out = str(tmp_path / "out")
    transform_parts(model, data, out)
    good, place = files(out), Path(out, "year=2023/a.parquet")
    content = bytearray(place.read_bytes())
    if damage == "gone":
        place.unlink()
    else:
        content[40] ^= 1
        place.write_bytes(content[:-9] if damage == "cut" else content)
    assert transform_parts(model, data, out, resume=True).kept == 2
    assert files(out) == good


def test_resume_of_a_text_that_is_cut(model, tmp_path):
    place, out = str(tmp_path / "big.csv"), str(tmp_path / "out")
    pa_csv.write_csv(table(600).drop(["id"]), place)
    transform_parts(model, place, out, rows_per_file=256)
    assert transform_parts(model, place, out, rows_per_file=256, resume=True).kept == 3
    pa_csv.write_csv(table(300, 4).drop(["id"]), place)
    # parts are no files that --no-clobber protects
    run = transform_parts(
        model, place, out, rows_per_file=256, resume=True, writing=OutputOptions(overwrite=False)
    )
    assert (run.kept, run.failed) == (0, ())
    assert len(files(out)) == 2


def test_a_text_that_is_cut_takes_no_file_s_place(model, tmp_path):
    pa_csv.write_csv(table(600).drop(["id"]), tmp_path / "big.csv")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "big-00001.csv").write_bytes(b"something")
    run = transform_parts(model, tmp_path / "big.csv", tmp_path / "out", rows_per_file=256, resume=True)
    assert [failure.name for failure in run.failed] == [*run.unknown_files] == ["big-00001.csv"]
    assert files(tmp_path / "out")["big-00001.csv"] == b"something"
    assert len(files(tmp_path / "out")) == 3


def test_a_text_that_changes_while_it_is_cut_gives_no_part(model, tmp_path, monkeypatch):
    from kafeat.jobs.transform.transform import OpenTransform

    def changed(*arguments: object, **more: object) -> object:
        os.utime(tmp_path / "big.csv")
        return real(*arguments, **more)

    real = OpenTransform.write_chunks
    monkeypatch.setattr(OpenTransform, "write_chunks", changed)
    pa_csv.write_csv(table(600).drop(["id"]), tmp_path / "big.csv")
    run = transform_parts(model, tmp_path / "big.csv", tmp_path / "out", rows_per_file=256)
    assert "expected a file that stays as it is, got one that changed while it was" in run.failed[0].error
    assert run.failed[0].retry
    assert (len(run.failed), files(tmp_path / "out")) == (3, {})
    with pytest.raises(DataError, match="expected the manifest of a finished run"):
        transform_parts(model, tmp_path / "out" / "_kafeat.json", tmp_path / "again")


@pytest.mark.parametrize(
    ("out", "source"), [("in/out", "in"), ("in", "in"), (".", "in"), ("in/x", "in/**/a.parquet")]
)
def test_an_output_among_the_inputs_is_refused(out, source, model, data, tmp_path):
    with pytest.raises(UsageError, match="expected an output apart from the input|expected an empty folder"):
        transform_parts(model, tmp_path / source, tmp_path / out)
    assert len(files(data)) == 5


def test_parts_that_would_have_one_name_are_refused(model, data, tmp_path):
    pa_csv.write_csv(table(5), f"{data}/year=2024/a.csv")
    with pytest.raises(UsageError, match=r"different names in the output, got 'year=2024/a.parquet'"):
        transform_parts(model, data, tmp_path / "out", output_format="parquet")


def test_files_of_no_known_format_are_told_with_the_pattern_of_the_others(in_process, run, model, tmp_path):
    (tmp_path / "in/sub").mkdir(parents=True)
    pa_csv.write_csv(table(5), tmp_path / "in/a.csv")
    for skipped in (".DS_Store", "_SUCCESS", "sub/.hidden"):
        (tmp_path / "in" / skipped).write_text("")
    assert transform_parts(model, tmp_path / "in", tmp_path / "out").parts == 1
    command = ("transform", "--model", model, "--overwrite")
    rest = "in quotes, or name the format of all with --input-format\n"
    (tmp_path / "in/README.md").write_text("hello")
    done = run(*command, "in", "out", cwd=tmp_path, code=3)
    assert done.stderr == (
        f"kafeat: in: expected data files, got 'README.md'; choose the others with the pattern 'in/*.csv' {rest}"
    )
    for name in ("notes.xlsx", "sub/a.log", "sub/b.log"):
        (tmp_path / "in" / name).write_text("")
    done = in_process(*command, "in", "out", cwd=tmp_path)
    assert done.stderr.endswith(
        "got 'README.md', 'notes.xlsx', 'sub/a.log' and 1 more; choose the others with the pattern "
        f"'in/**/*.csv' {rest}"
    )
    run(*command, "in/**/*.csv", "out", cwd=tmp_path)
    pq.write_table(table(5), tmp_path / "in/b.parquet")  # no pattern: it would leave out the part a or b
    done = in_process(*command, "in", "out", cwd=tmp_path)
    assert (
        "1 more; move it elsewhere, or begin its name with _, as such files are left out, or" in done.stderr
    )
    (tmp_path / "list.txt").write_text("in/a.csv\nin/README.md\n")
    done = in_process(*command, "list.txt", "out", cwd=tmp_path)
    assert "got 'in/README.md'; leave it out of the list, or name the format" in done.stderr


def test_a_broken_link_is_a_part_that_fails(in_process, model, tmp_path):
    (tmp_path / "in").mkdir()
    pa_csv.write_csv(table(5), tmp_path / "in/a.csv")
    for name, target in (("b", "nothing"), ("c", "c.csv")):  # the second leads to itself
        (tmp_path / f"in/{name}.csv").symlink_to(tmp_path / "in" / target)
    command = ("transform", "--model", model, "in", "out", "--resume")
    done = in_process(*command, cwd=tmp_path)
    assert done.returncode == 5
    assert [line.partition(": ")[2] for line in done.stderr.splitlines()] == [
        "in/b.csv: No such file or directory",
        "in/c.csv: Too many levels of symbolic links",
        "out: expected every part to be done, got 2 that failed and 1 that are done; fix what each message names and "
        "run again with --resume",
    ]
    assert list(files(tmp_path / "out")) == ["a.csv"]
    for name in "bc":
        (tmp_path / f"in/{name}.csv").unlink()
    (tmp_path / "out/d.csv").symlink_to("nothing")
    done, told = in_process(*command, cwd=tmp_path), "1 file is not a part, but will be read as one: d.csv"
    assert (done.returncode, done.stderr) == (0, f"note: out: {told}\n")


def test_a_folder_that_contains_itself_is_refused(model, data, tmp_path):
    os.symlink(data, f"{data}/loop")
    with pytest.raises(SystemRefusedError, match="a link to a folder that it lies in"):
        transform_parts(model, data, tmp_path / "out")


def test_a_map_that_changes_while_it_is_used_is_refused(model, data, tmp_path):
    from kafeat.io.data_set import list_parts
    from kafeat.jobs.dataset.part import PartTask, kafeat_part

    (part, *_) = list_parts(parse_location(data)).parts
    travelling = SharedMap("0" * 64, parse_location(model))
    task = PartTask(part, parse_location(tmp_path), TransformJob(travelling), Stop())
    outcome = kafeat_part(task)
    assert outcome.failure is not None
    assert "every machine has to see the same file, and it must not change" in outcome.failure.error


def test_the_command_says_what_was_removed_and_what_is_strange(in_process, model, data, tmp_path):
    out = str(tmp_path / "out")
    for i in range(4):
        pq.write_table(table(2), f"{data}/p{i}.parquet")
    transform_parts(model, data, out)
    for i in range(4):
        os.unlink(f"{data}/p{i}.parquet")
    Path(out, "one.txt").touch()
    words = ["transform", "--model", model, data, out, "--resume", "--log-format", "json"]
    gone = "p0.parquet, p1.parquet, p2.parquet, …"
    told = [json.loads(line) for line in in_process(*words).stderr.splitlines()]
    assert [(line["level"], line["message"]) for line in told if line["level"] != "info"] == [
        ("warning", f"{out}: 1 file has no good row: year=2023/b.parquet"),
        ("warning", f"{out}: 4 files were removed, as their inputs are gone: {gone}"),
        ("warning", f"{out}: 1 file is not a part, but will be read as one: one.txt"),
    ]


def test_the_manifest_is_renewed_during_a_long_part(model, data, tmp_path, monkeypatch):
    monkeypatch.setattr(journal, "_MINUTE", 0.02)
    monkeypatch.setattr(journal, "_SECONDS", 1e6)  # so that no end of a part renews it
    work, place, versions = one_part.transform_file, tmp_path / "out/_kafeat.json", set[int]()

    def long(*given, **more):
        until = time.monotonic() + 20.0
        while len(versions) < 3 and time.monotonic() < until:
            versions.add(place.stat().st_mtime_ns)
            assert manifest(tmp_path / "out")["state"] == "running"
        return work(*given, **more)

    monkeypatch.setattr(one_part, "transform_file", long)
    transform_parts(model, data, tmp_path / "out", engine=Engine(jobs=1))
    assert len(versions) == 3
    assert manifest(tmp_path / "out")["state"] == "complete"


_JOURNAL = "kafeat.jobs.dataset.journal.Journal"
PHASES = {
    "the list of files": "kafeat.jobs.dataset.api plan_parts 1",
    "the folder": "kafeat.io.storage.owner check 1",
    "the first manifest": f"{_JOURNAL} write 1",
    "a part": "kafeat.jobs.dataset.part transform_file 3",
    "the name of a part": "os replace 4",
    "another manifest": f"{_JOURNAL} add 3",
    "the last manifest": f"{_JOURNAL} end 1",
    "the metrics": "kafeat.jobs.dataset.api metrics 1",
}
"""For each phase of a run, the function that begins it, and at which of its calls."""
ENDS_ITSELF = """
import os, pkgutil, sys
where, name, call, number = sys.argv.pop(1).split()
place = pkgutil.resolve_name(where)
work, calls = getattr(place, name), []
def ends(*given, **named):
    calls.append(1)
    if len(calls) == int(call):
        os.kill(os.getpid(), int(number))
    return work(*given, **named)
setattr(place, name, ends)
from kafeat.cli.main import main
main()
"""


SIGNALS = [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow), *sampled(signal.SIGKILL)]
MADE_AT_ONCE: dict[str, bytes] = {}


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("phase", PHASES)
def test_a_run_that_is_ended_in_any_phase_tells_it_and_goes_on(phase, number, model, data, tmp_path):
    out, jobs = tmp_path / "out", 2 if number == signal.SIGINT else 1
    run = Process(
        "", f"{PHASES[phase]} {int(number)}", "transform", "--model", model, data, out, "--resume", f"--jobs={jobs}",
        "--log-format=json", "--metrics", tmp_path / "m.prom", "--stats", tmp_path / "s.json",
        code=ENDS_ITSELF, text=True,
    )  # fmt: skip
    lines = [json.loads(line) for line in run.communicate(timeout=60)[1].splitlines()]
    state = manifest(out) if (out / "_kafeat.json").exists() else {}
    done = phase == "the metrics"
    known = (state.get("state"), state.get("exit_code"))
    if number == signal.SIGKILL:
        assert run.returncode == -9
        assert [line["event"] for line in lines] in ([], ["start"])  # there is no last line
        assert known in ([("complete", 0)] if done else [(None, None), ("running", None)])
        assert not (tmp_path / "m.prom").exists()
    else:
        last, ended = lines[-1], "complete" if done else "interrupted"
        assert run.returncode == last["exit_code"] == 128 + number
        assert (last["event"], last["retry"]) == ("failed", True)
        assert known in ([("complete", 0)] if done else [(None, None), ("interrupted", 128 + number)])
        assert done or metrics(tmp_path / "m.prom")["state=interrupted"] == 1.0
        assert json.loads((tmp_path / "s.json").read_text())["state"] == ended
        assert not list(out.glob(".*"))
    if known == ("interrupted", 128 + number):
        what = "interrupted" if number == signal.SIGINT else "terminated"
        parts = len(state["parts"])
        rest = f"; {parts} of 3 parts are done: --resume goes on with the others" if parts else ""
        assert last["message"] == what + rest
        assert parts or phase != "the last manifest"
        assert (state["pid"], state["user"]) == (run.pid, getpass.getuser())
        assert state["start"] <= state["renewed"] == state["end"]
    assert transform_parts(model, data, out, resume=True).unknown_files == ()
    if not MADE_AT_ONCE:
        transform_parts(model, data, tmp_path / "fresh")
        MADE_AT_ONCE.update(files(tmp_path / "fresh"))
    assert files(out) == MADE_AT_ONCE


@pytest.mark.parametrize(("moment", "number"), [
    ("kafeat.model.shared load_from 1", signal.SIGTERM), ("kafeat.jobs.dataset.api transform_file 1", signal.SIGTERM),
    ("kafeat.io.writers.npy.NpyWriter _end 1", signal.SIGINT), ("os replace 1", signal.SIGTERM),
])  # fmt: skip
def test_one_file_that_a_signal_ends_leaves_its_record(moment, number, model, data, tmp_path):
    record, told = tmp_path / "s.json", tmp_path / "m.prom"
    (tmp_path / "out.npy").write_bytes(b"previous")
    words = [f"{data}/year=2023/a.parquet", tmp_path / "out.npy", "--stats", record, "--metrics", told]
    ended = Process("", f"{moment} {int(number)}", "transform", "--model", model, *words, code=ENDS_ITSELF)
    ended.communicate(timeout=60)
    assert ended.returncode == 128 + number
    stats, numbers = json.loads(record.read_text()), metrics(told)
    assert stats["error"] == "interrupted"  # a signal has no words
    assert (stats["state"], stats["exit_code"]) == ("interrupted", 128 + number)
    assert stats["input"]["path"] == words[0]
    assert (numbers["state=interrupted"], numbers["exit_code"]) == (1.0, 128 + number)
    assert not [*tmp_path.glob(".*")]
    assert (tmp_path / "out.npy").read_bytes() == b"previous"


def test_an_engine_for_one_file_is_refused_unless_it_is_a_default(in_process, run, model, data, tmp_path):
    words = ["transform", "--model", model, f"{data}/year=2023/a.parquet", str(tmp_path / "out.parquet")]
    told = in_process(*words, "--engine", "processes").stderr
    assert "--engine: expected an input of many files, or --rows-per-file, got one" in told
    run(*words, KAFEAT_ENGINE="processes")


def test_failed_parts_and_what_they_had_before_are_told(in_process, run, model, tmp_path):
    (tmp_path / "in").mkdir()
    for name in "abc":
        pa_csv.write_csv(table(5), tmp_path / f"in/{name}.csv")
    command = ("transform", "--model", model, "in", "out", "--resume")
    run(*command, cwd=tmp_path)
    for name in "abe":
        (tmp_path / f"in/{name}.csv").write_text("x\n")
    done = in_process(*command, "--log-format", "json", cwd=tmp_path)
    start, warning, summary, *failed, last = map(json.loads, done.stderr.splitlines())
    assert (done.returncode, start["level"], warning["level"]) == (3, "info", "warning")
    assert summary["message"].startswith("out: 1 part (1 of them kept), 5 rows x ")
    removed = "out: 2 files of an earlier run were removed, as their parts failed: a.csv, b.csv"
    assert warning["message"] == removed
    assert [(one["level"], one["part"], one["exit_code"]) for one in failed] == [
        ("error", f"{name}.csv", 3) for name in "abe"
    ]
    assert failed[0]["message"].startswith("in/a.csv: expected the column")
    assert last["message"].startswith("out: expected every part to be done, got 3 that failed and 1 that")
    assert "fix the inputs and run again with --resume" in last["message"]
    again = in_process(*command, cwd=tmp_path).stderr.splitlines()
    assert [line.partition(": ")[0] for line in again] == ["kafeat"] * 4


@pytest.mark.parametrize(("most", "failed", "why"), [
    ([], 11, "the first 11 parts failed alike; --max-failures N goes on until more than N fail"),
    (["--max-failures", "1"], 2, "2 parts failed, more than --max-failures 1"),
    (["--max-failures", "99"], 12, None),
])  # fmt: skip
def test_a_run_stops_when_too_many_parts_fail(most, failed, why, in_process, model, tmp_path):
    (tmp_path / "in").mkdir()
    for i in range(13):  # the last one is good, and the numbers of the rows differ
        good = tmp_path / f"in/{i:02}.csv"
        pa_csv.write_csv(table(i + 1), good)
        good.write_text(good.read_text() + ("x,0,0,0,r\n" if i < 12 else ""))
    command = ("transform", "--model", model, "in", "out", "--resume", "--jobs", "1")
    told = in_process(*command, *most, cwd=tmp_path)
    state = manifest(tmp_path / "out")
    assert (told.returncode, state["exit_code"]) == (3, 3)
    assert (state["state"], state["stopped"], len(state["failed"])) == ("incomplete", why, failed)
    assert [one["name"] for one in state["parts"]] == ([] if why else ["12.csv"])
    assert f"got {failed} that failed and {0 if why else 1} that are done" in told.stderr
    assert (f"the others were not tried, because {why}" in told.stderr) == (why is not None)
    for i in range(12):
        pa_csv.write_csv(table(i + 1), tmp_path / f"in/{i:02}.csv")
    assert in_process(*command, *most, cwd=tmp_path).returncode == 0
    again = manifest(tmp_path / "out")
    assert (again["state"], again["stopped"], len(again["parts"])) == ("complete", None, 13)


def test_a_part_whose_worker_is_lost_is_made_again_and_named(in_process, model, data, tmp_path, monkeypatch):
    lost: list[str] = []

    def submit(work, task):
        future = Future()
        if not lost:
            lost.append(task.part.name)
            future.set_exception(BrokenProcessPool("killed"))
        else:
            future.set_result(work(task))
        return future

    monkeypatch.setattr(api, "start_engine", lambda _engine: nullcontext(Pool(submit, 1)))
    out = tmp_path / "out"
    done = in_process("transform", "--model", model, data, out, "--resume")
    assert f"{out}: 1 file was made again, as a worker was lost: {lost[0]}" in done.stderr
    again = {one["name"]: (one["lost_workers"], one["made_again_by"]) for one in manifest(out)["parts"]}
    here = f"process {os.getpid()} on {socket.gethostname()}"
    assert again == dict.fromkeys(SIZES, ([], None)) | {lost[0]: (["BrokenProcessPool: killed"], here)}
    assert "made again" not in in_process("transform", "--model", model, data, out, "--resume").stderr


def metrics(path: Path) -> dict[str, float]:
    """The numbers of a file in Prometheus' text format."""
    form = r'kafeat_(\w+){output="/[^"]*"(?:,state="(\w+)")?} (\S+)'
    found = [re.fullmatch(form, line).groups() for line in path.read_text().splitlines()]
    return {name if state is None else f"state={state}": float(number) for name, state, number in found}


@pytest.mark.parametrize(("source", "more", "state", "code"), [
    ("a.csv", "--on-bad-rows drop", "complete", 0), ("a.csv", "--on-bad-rows drop --max-bad-rows 1", "refused", 3),
    ("gone.csv", "", "refused", 5), ("a.csv", "", "refused", 3), ("[ab].csv", "", "incomplete", 3),
])  # fmt: skip
def test_metrics_tell_how_a_run_ended(source, more, state, code, in_process, model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pa_csv.write_csv(table(20), "b.csv")
    Path("a.csv").write_text(Path("b.csv").read_text() + "1,2,x,3,r\n" * 2)
    words = ["out.csv", *more.split(), "--metrics", "run.prom", "--stats", "run.json"]
    assert in_process("transform", "--model", model, source, *words).returncode == code
    told = metrics(Path("run.prom"))
    assert (told["exit_code"], told[f"state={state}"]) == (code, 1.0)
    assert sum(value for name, value in told.items() if name.startswith("state")) == 1.0
    assert abs(told["end_time_seconds"] - time.time()) < 60.0
    stats = json.loads(Path("run.json").read_text())
    assert (stats["state"], stats["exit_code"], stats["input"]["path"]) == (state, code, source)
    assert ("rows" in stats["input"]) == ("input_rows" in told) == bool(more or state == "incomplete")
    if "input_rows" not in told:
        return
    known = {"input_rows": stats["input"]["rows"], "bad_rows_count": stats["bad_rows"]["count"],
             "output_rows": stats["output"]["rows"], "drift_largest": stats["drift"]["largest"]}  # fmt: skip
    assert {name: told[name] for name in known} == known


def test_metrics_leave_what_is_not_theirs(model, data, tmp_path):
    with pytest.raises(UsageError, match="--metrics: expected a name that ends in .prom, because the node"):
        kafeat.transform(f"{data}/gone.npy", tmp_path / "z.npy", model=model, metrics=model)


def test_a_message_lists_some_failures_and_counts_the_rest():
    failures = [PartFailure(name=f"p{i}", error=f"p{i}: bad", exit_code=3 + i % 2) for i in range(30)]
    error = PartsError("out", 5, failures)
    lines = str(error).splitlines()
    assert (error.exit_code, len(lines)) == (4, 22)
    assert lines[20] == "out: and 10 more, which _kafeat.json lists"


def test_a_name_that_no_manifest_can_hold_is_refused(model, data, tmp_path):
    os.link(f"{data}/year=2024/a.parquet", os.fsencode(data) + b"/\xff.parquet")
    with pytest.raises(DataError, match="expected names of printable UTF-8, got"):
        transform_parts(model, data, tmp_path / "out")
