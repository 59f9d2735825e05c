"""Faults of the machine: a disk that fails or is full, a process that is killed, memory that is not there."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import kafeat
from kafeat.errors import SystemRefusedError
from tests.jobs.files import transform_file, transform_parts, transform_with_files_of
from tests.zygote import KAFEAT, Process

N, D = 40_000, 8
RNG = np.random.default_rng(5)
X = RNG.normal(size=(N, D)).astype(np.float32)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A map, and the same rows in every format."""
    path = tmp_path_factory.mktemp("faults")
    table = pa.table({f"x{i}": X[:, i] for i in range(D)})
    step = {"kind": "fourier", "n_components": 64, "frequencies": "iid"}
    kafeat.fit({"chunk_rows": 1000, "steps": [step]}, table.slice(0, 500)).save(path / "m.joblib")
    (path / "fit.yaml").write_text(
        "steps: [{kind: fourier, n_components: 64, frequencies: iid, weights: uniform}]\n"
    )
    np.save(path / "in.npy", X)
    pq.write_table(table, path / "in.parquet", row_group_size=5000)
    pa.csv.write_csv(table, path / "in.csv")
    (path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    return path


@pytest.mark.parametrize("name", ["in.npy", "in.csv", "in.jsonl"])
def test_a_disk_that_fails_half_way(folder, tmp_path, monkeypatch, name):
    calls = []

    def broken(real):
        def read(*arguments):
            calls.append(1)
            if len(calls) > 3:
                raise OSError(5, "Input/output error")
            return real(*arguments)

        return read

    if name == "in.npy":
        monkeypatch.setattr("kafeat.io.readers.npy.os.preadv", broken(os.preadv))
    else:
        from kafeat.io.readers import text_stream as bytestream

        monkeypatch.setattr(bytestream, "read_full", broken(bytestream.read_full))
    (tmp_path / "out.npy").write_bytes(b"previous")
    with pytest.raises(SystemRefusedError, match=f"{name}: Input/output error"):
        transform_file(folder / "m.joblib", folder / name, tmp_path / "out.npy")
    assert os.listdir(tmp_path) == ["out.npy"]
    assert (tmp_path / "out.npy").read_bytes() == b"previous"


def test_a_parquet_file_that_cannot_be_read_is_not_taken_for_damaged(folder, tmp_path, monkeypatch):
    def broken(*_, **__):
        raise OSError(5, "Error reading bytes from file")

    monkeypatch.setattr("kafeat.io.readers.parquet.pq.ParquetFile", broken)
    with pytest.raises(SystemRefusedError, match=r"in\.parquet: Input/output error$"):
        transform_file(folder / "m.joblib", folder / "in.parquet", tmp_path / "out.npy")


@pytest.mark.parametrize("again", ["resume", "overwrite"])
def test_a_part_whose_folder_cannot_be_flushed_is_made_again(folder, tmp_path, monkeypatch, again):
    """It has its name by then, and no record: the next run must not take it for a file of the user."""
    model, source, out = str(folder / "m.joblib"), str(tmp_path / "in"), tmp_path / "out"
    os.mkdir(source)
    np.save(tmp_path / "in" / "a.npy", X[:10])

    def broken(target):
        if target.endswith("a.npy"):
            raise OSError(5, "Input/output error")

    with monkeypatch.context() as failing:
        failing.setattr("kafeat.io.storage.atomic._sync_folder", broken)
        assert transform_parts(model, source, out).failed[0].error == f"{out}/a.npy: Input/output error"
    (out / "mine.npy").write_bytes(b"another's")
    assert transform_parts(model, source, out, **{again: True}).unknown_files == ("mine.npy",)
    assert sorted(os.listdir(out)) == ["_kafeat.json", "a.npy", "mine.npy"]


def test_a_manifest_that_cannot_be_read_now_is_not_replaced(folder, tmp_path, monkeypatch):
    model, source, out = str(folder / "m.joblib"), str(tmp_path / "in"), tmp_path / "out"
    os.mkdir(source)
    np.save(tmp_path / "in" / "a.npy", X[:10])
    transform_parts(model, source, out)
    before = (out / "_kafeat.json").read_bytes()

    def broken(_folder):
        raise SystemRefusedError("out/_kafeat.json: Input/output error")

    monkeypatch.setattr("kafeat.jobs.dataset.plan.read_manifest", broken)
    with pytest.raises(SystemRefusedError, match="Input/output error"):
        transform_parts(model, source, out, overwrite=True)
    assert (out / "_kafeat.json").read_bytes() == before


@pytest.mark.parametrize("jobs", [1, 4])
def test_the_first_error_in_row_order_surfaces_and_no_other_is_begun(folder, tmp_path, monkeypatch, jobs):
    from kafeat.runtime import run as running

    begun = []
    real = running._Worker._done

    def faulty(worker, chunk, *rest):
        begun.append(chunk.start)
        if chunk.start == 5000:
            time.sleep(0.3)  # later chunks fail first
            raise RuntimeError("of chunk 5")
        if chunk.start > 5000:
            raise RuntimeError("of a later chunk")
        return real(worker, chunk, *rest)

    monkeypatch.setattr(running._Worker, "_done", faulty)
    with pytest.raises(RuntimeError, match="of chunk 5"):
        transform_file(folder / "m.joblib", folder / "in.npy", tmp_path / "out.npy", jobs=jobs)
    assert max(begun) <= 5000 + 1000 * (jobs + 1)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("out", ["out.npy", "out.parquet", "out.csv", "out.csv.gz", "out.npz", "out.svm"])
@pytest.mark.slow
def test_a_disk_that_is_full_at_any_moment(folder, tmp_path, out):
    """A limit on the size of files stands for it: the system refuses the write that would cross it."""
    (tmp_path / out).write_bytes(b"previous")
    for limit in (0, 100, 5_000, 300_000, 3_000_000):
        done = transform_with_files_of(limit, folder / "m.joblib", folder / "in.npy", tmp_path / out)
        assert done.stdout.strip() == f"{tmp_path / out}: File too large", (limit, done.stdout, done.stderr)
        assert done.stderr == ""
        assert (tmp_path / out).read_bytes() == b"previous"
        assert os.listdir(tmp_path) == [out]


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 4 MiB; only root may have one."""
    place = tmp_path / "disk"
    place.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", place], capture_output=True)
    if made.returncode:
        pytest.skip("no mount here")
    yield place
    subprocess.run(["umount", place], check=True)


@pytest.mark.parametrize("out", ["out.npy", "out.parquet", "out.csv", "out.csv.gz", "fit"])
@pytest.mark.slow
def test_a_small_disk_at_every_stage(folder, small_disk, monkeypatch, out):
    """From no room at all to room for nearly everything: the writes of the beginning, the middle and the end fail."""
    monkeypatch.setattr("kafeat.jobs.transform.transform.require_space", lambda *_: None)
    target = small_disk / out
    target.write_bytes(b"previous")
    small = kafeat.load(folder / "m.joblib")
    plain = {"kind": "fourier", "n_components": 20_000, "frequencies": "iid", "weights": "uniform"}
    large = kafeat.fit({"steps": [plain]}, X[:500])
    rows = {"out.npy": 12_000, "out.parquet": 12_000, "out.csv": 5_000, "out.csv.gz": 10_000, "fit": 0}[out]
    np.save(folder / "some.npy", X[:rows])

    def write():
        if out == "fit":
            large.save(target)
        else:
            transform_file(small, folder / "some.npy", target)

    write()
    need = target.stat().st_size
    target.write_bytes(b"previous")
    room = os.statvfs(small_disk).f_bavail * os.statvfs(small_disk).f_frsize
    for left in (0, 4096, need // 3, need - 65_536 if need > 100_000 else 4096, need - 4096 - need % 4096):
        (small_disk / "filler").write_bytes(bytes(room - max(0, left)))
        with pytest.raises(SystemRefusedError, match=f"{out}: No space left on device"):
            write()
        assert target.read_bytes() == b"previous"
        assert sorted(os.listdir(small_disk)) == sorted(["filler", out])
        (small_disk / "filler").unlink()


def test_an_output_that_the_disk_cannot_hold_is_refused_before_the_work(folder, tmp_path, monkeypatch):
    monkeypatch.setattr("kafeat.io.storage.local_path.LocalPath.free_bytes", lambda _place: 1_000_000)
    for out in ("out.npy", "out.parquet"):
        told = rf"{out}: expected room for 9.8 MiB, got 976.6 KiB free"
        with pytest.raises(SystemRefusedError, match=told):
            transform_file(folder / "m.joblib", folder / "in.npy", tmp_path / out)
    assert os.listdir(tmp_path) == []


def test_memory_that_is_not_there_ends_with_5_and_a_remedy(folder, tmp_path):
    (tmp_path / "wide.yaml").write_text(
        "steps: [{kind: nystroem, n_components: 30000, landmarks: uniform}]\nfit_rows: all\n"
    )
    command = (
        f"ulimit -v 3000000; OPENBLAS_NUM_THREADS=1 {KAFEAT} fit --config {tmp_path}/wide.yaml "
        f"{folder}/in.npy {tmp_path}/m.joblib"
    )
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=300)
    assert done.returncode == 5, (done.returncode, done.stderr)
    assert done.stderr.splitlines()[-1].startswith("kafeat: out of memory")
    assert "lower chunk_rows" in done.stderr
    assert os.listdir(tmp_path) == ["wide.yaml"]


def rss_mib():
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    raise AssertionError("no VmRSS")


@pytest.mark.slow
def test_a_hundred_runs_in_one_process_do_not_grow(folder, tmp_path):
    if not os.path.exists("/proc/self/status"):
        pytest.skip("no /proc here")
    seen = []
    for i in range(100):
        for name, out in (("in.npy", "o.parquet"), ("in.parquet", "o.npy")):
            transform_file(folder / "m.joblib", folder / name, tmp_path / out, jobs=2)
        if i in (39, 99):
            seen.append(rss_mib())
    # a chunk of the input or the output kept by each run would be some 15 MiB in sixty of them
    assert seen[1] - seen[0] < 10, seen


def test_two_interrupts_are_as_calm_as_one(folder, tmp_path):
    big = tmp_path / "big.npy"
    np.save(big, np.tile(X, (30, 1)))
    (tmp_path / "out.csv").write_bytes(b"previous")
    process = Process("transform --model", folder / "m.joblib", big, tmp_path / "out.csv")
    until = time.monotonic() + 60
    while not list(tmp_path.glob(".*kafeat*")):
        assert time.monotonic() < until
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (130, b"kafeat: interrupted\n")
    assert (tmp_path / "out.csv").read_bytes() == b"previous"
    assert sorted(os.listdir(tmp_path)) == ["big.npy", "out.csv"]
