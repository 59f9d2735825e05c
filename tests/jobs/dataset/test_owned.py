"""Of two runs with one output one is refused, and what is left of a run that is gone changes nothing."""

import os
from pathlib import Path

import numpy as np
import pytest

from kafeat.errors import SystemRefusedError
from kafeat.io.data_set import list_parts
from kafeat.io.options import OutputOptions
from kafeat.io.storage.location import parse_location
from kafeat.io.storage.owner import NAME, Owner, Token, owning
from kafeat.jobs.dataset import part as part_module
from kafeat.jobs.dataset.manifest import read_manifest
from kafeat.jobs.dataset.part import Outcome, PartTask, kafeat_part
from kafeat.jobs.transform.transform import TransformJob
from kafeat.model.shared import shared
from kafeat.runtime.backends import _threads
from kafeat.runtime.engine import Engine, Stop
from tests.jobs.files import CONFIG, contents, transform_parts
from tests.recipes import fit_once


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two maps, and four parts of several chunks."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("kafeat.io.storage.owner._MOMENT_SECONDS", 0.1)
    X = np.random.default_rng(0).normal(size=(4, 600, 2))
    for seed in (0, 1):
        fit_once({**CONFIG, "seed": seed}, X[0]).save(f"map{seed}.joblib")
    Path("in").mkdir()
    for i, rows in enumerate(X):
        np.save(f"in/p{i}.npy", rows)


@pytest.mark.parametrize(("out", "rejects"), [("out", None), ("out", "other"), ("elsewhere", "rejects")])
def test_a_second_run_is_refused_while_the_first_is_at_work(out, rejects):
    told: list[str] = []

    def second(_done: int) -> None:
        with pytest.raises(SystemRefusedError, match="expected a folder that no run writes to") as refused:
            transform_parts("map1.joblib", "in", out, on_bad_rows="drop", rejects=rejects, overwrite=True)
        told.append(str(refused.value))

    run = transform_parts(
        "map0.joblib", "in", "out", on_bad_rows="drop", rejects="rejects", announce=lambda _parts: second
    )
    assert (run.parts, run.unknown_files) == (4, ())
    assert len(told) == 5
    owned = "rejects" if rejects == "rejects" else "out"
    says = f"{owned}: expected a folder that no run writes to, got one of a run"
    assert all(line.startswith(says) for line in told)
    assert {path.name for path in Path().iterdir()} == {"in", "out", "rejects", "map0.joblib", "map1.joblib"}
    transform_parts("map0.joblib", "in", "right")
    assert contents("out", "*.npy") == contents("right", "*.npy")


def late(known: bool = False) -> tuple[PartTask, bytes]:
    """A part of a run that was killed, whose folder another has since; and what that one made of it."""
    transform_parts("map1.joblib", "in", "out")
    made = read_manifest(parse_location("out"))
    assert made is not None
    guard = Token(Owner.new().run, (parse_location(os.path.abspath("out")),)).publishing
    (part, *_) = list_parts(parse_location("in")).parts
    record = made.parts[0].model_copy(update={"input": made.parts[1].input}) if known else None
    job = TransformJob(shared("map0.joblib"), writing=OutputOptions(guard=guard), jobs=1)
    task = PartTask(part, parse_location("out"), job, Stop(), record)
    return task, Path("out/p0.npy").read_bytes()


def refused(outcome: Outcome) -> bool:
    assert outcome.failure is not None
    owned = "out: expected this run to own the folder, got" in outcome.failure.error
    return owned and outcome.failure.exit_code == 5


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("owned", [False, True])
def test_a_part_of_a_run_that_is_gone_gets_no_name_and_takes_none_away(owned, known):
    task, right = late(known)
    if owned:
        with owning(parse_location("out")):
            assert refused(kafeat_part(task))
    else:
        assert refused(kafeat_part(task))
    assert Path("out/p0.npy").read_bytes() == right
    assert len(os.listdir("out")) == 5


def test_a_part_of_a_run_that_is_gone_ends_early(monkeypatch):
    monkeypatch.setattr(part_module, "_CHECK_SECONDS", 0.0)
    task, _ = late()
    looks: list[int] = []
    real = task.job.writing.guard

    def guard() -> object:
        looks.append(1)
        return real()

    object.__setattr__(task.job.writing, "guard", guard)
    assert refused(kafeat_part(task))
    assert looks == [1]  # of the first of three chunks, and not when the part would get its name


def test_a_run_that_has_lost_its_folder_ends_and_tells_it(monkeypatch):
    monkeypatch.setattr("kafeat.jobs.dataset.journal._SECONDS", 0.0)
    monkeypatch.setattr("kafeat.jobs.dataset.journal._SHARE", 0.0)

    def lose(done: int) -> None:
        if done:
            Path("out", NAME).unlink(missing_ok=True)

    told = f"out: expected this run to own the folder, got no owner: {NAME}"
    with pytest.raises(SystemRefusedError, match=told):
        transform_parts("map0.joblib", "in", "out", engine=Engine(jobs=1), announce=lambda _parts: lose)
    transform_parts("map1.joblib", "in", "out", resume=True)
    transform_parts("map1.joblib", "in", "right")
    assert contents("out", "*.npy") == contents("right", "*.npy")


def test_the_manifest_tells_the_stamp_of_the_file_that_was_written(monkeypatch):
    """And not of the one that has its name when somebody looks."""
    from kafeat.io.storage import atomic as output

    def replaced(target: str) -> None:
        if target.endswith("p0.npy"):
            Path(target).unlink()
            Path(target).write_bytes(b"of somebody")

    monkeypatch.setattr(output, "_sync_folder", replaced)
    transform_parts("map0.joblib", "in", "out")
    assert transform_parts("map0.joblib", "in", "out", resume=True).kept == 3


@pytest.mark.parametrize("engine", ["threads", "dask"])
@pytest.mark.parametrize("made", [False, True])
def test_a_run_that_is_ended_keeps_its_manifest_where_parts_may_be(made, engine, monkeypatch):
    monkeypatch.setattr("kafeat.runtime.backends._ENGINES", {"dask": _threads, "threads": _threads})

    def end(_done: int) -> None:
        if made:  # a worker has told nobody yet
            Path("out/p0.npy").write_bytes(b"made")
        raise RuntimeError("ended")

    with pytest.raises(RuntimeError, match="ended"):
        transform_parts(
            "map0.joblib", "in", "out", engine=Engine(engine, "tcp://x:1" if engine == "dask" else None),
            announce=lambda _parts: end,
        )  # fmt: skip
    assert Path("out").exists() == Path("out/_kafeat.json").exists() == (made or engine == "dask")
    run = transform_parts("map0.joblib", "in", "out", resume=True)
    assert (run.parts, run.failed) == (4, ())
