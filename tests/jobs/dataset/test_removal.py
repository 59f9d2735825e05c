"""A run removes files that runs have written, and no others, whatever the manifest and its folders say."""

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kafeat.jobs.dataset.journal import DatasetResult
from tests.jobs.files import CONFIG, manifest, transform_parts
from tests.recipes import fit_once

Go = Callable[..., DatasetResult]


@pytest.fixture
def go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Go:
    """Two parts that a run has made, one of them without an input any more. What runs again, with rejects."""
    monkeypatch.chdir(tmp_path)
    X = np.random.default_rng(0).normal(size=(300, 2))
    table = pa.table({"a": X[:, 0], "b": X[:, 1]})
    fit_once(CONFIG, table).save("map.joblib")
    Path("in").mkdir()
    for name in ("old", "new"):
        pq.write_table(table, f"in/{name}.parquet")

    def run(resume: bool = True) -> DatasetResult:
        asked = {"on_bad_rows": "drop", "rejects": "rejects", "resume": resume, "overwrite": not resume}
        return transform_parts("map.joblib", "in", "out", **asked)

    run()
    Path("in/old.parquet").unlink()
    return run


def edit(change: Callable[[list[dict[str, Any]]], object]) -> None:
    told = manifest()
    change(told["parts"])
    Path("out/_kafeat.json").write_text(json.dumps(told))


def told(name: str, content: bytes, **more: object) -> dict[str, Any]:
    """A part as a hostile hand would add it."""
    file = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest(), "stamp": "1-2-3"}
    return {"name": name, "rows": 1, "rows_read": 1, "input": file, "output": file, "seconds": 1.0, **more}


@pytest.mark.parametrize("resume", [True, False])
def test_what_a_run_has_written_is_removed(resume, go):
    assert go(resume).removed == ("old.parquet",)
    assert not Path("out/old.parquet").exists()
    assert not Path("rejects/old.parquet.csv").exists()


@pytest.mark.parametrize("resume", [True, False])
@pytest.mark.parametrize("sha256", [None, "0" * 64])
def test_a_file_of_somebody_that_the_manifest_names_stays(sha256, resume, go):
    Path("out/precious.txt").write_bytes(b"precious")
    Path("rejects/precious.txt.csv").write_bytes(b"precious")
    part = told("precious.txt", b"precious")
    part["output"] = {**part["output"], "sha256": sha256}
    edit(lambda parts: parts.append({**part, "rejects": part["output"]}))
    run = go(resume)
    assert run.removed == ("old.parquet",)
    assert run.unknown_files == ("precious.txt",)
    assert Path("out/precious.txt").read_bytes() == b"precious"
    assert Path("rejects/precious.txt.csv").read_bytes() == b"precious"


@pytest.mark.parametrize("name", ["../precious.txt", "sub/../../precious.txt", "{here}/precious.txt"])
@pytest.mark.parametrize("resume", [True, False])
def test_a_name_that_leads_out_of_the_folder_removes_nothing(name, resume, go):
    Path("precious.txt").write_bytes(b"precious")
    Path("precious.txt.csv").write_bytes(b"precious")
    Path("out/sub").mkdir()
    part = told(name.format(here=os.getcwd()), b"precious")
    edit(lambda parts: parts.append({**part, "rejects": part["output"]}))
    go(resume)
    assert Path("precious.txt").read_bytes() == b"precious"
    assert Path("precious.txt.csv").read_bytes() == b"precious"


@pytest.mark.parametrize("link", ["folder", "file"])
@pytest.mark.parametrize("resume", [True, False])
def test_what_a_link_leads_to_stays(link, resume, go):
    Path("elsewhere").mkdir()
    Path("elsewhere/precious.txt").write_bytes(b"precious")
    name = "link/precious.txt" if link == "folder" else "precious.txt"
    Path("out", name.split("/")[0]).symlink_to(
        Path(f"elsewhere/{'' if link == 'folder' else name}").absolute()
    )
    edit(lambda parts: parts.append(told(name, b"precious")))  # with the right hash
    assert go(resume).unknown_files == (name,)
    assert Path("elsewhere/precious.txt").read_bytes() == b"precious"
    assert Path("out", name).exists()


@pytest.mark.parametrize("resume", [True, False])
def test_a_part_that_somebody_has_changed_stays(resume, go):
    size = Path("out/old.parquet").stat().st_size
    Path("out/old.parquet").write_bytes(bytes(size))
    run = go(resume)
    assert (run.removed, run.unknown_files) == ((), ("old.parquet",))
    assert Path("out/old.parquet").read_bytes() == bytes(size)


def test_a_part_that_was_copied_back_is_known_by_its_hash(go):
    content = Path("out/old.parquet").read_bytes()
    Path("out/old.parquet").unlink()
    Path("out/old.parquet").write_bytes(content)
    assert go().removed == ("old.parquet",)


def test_a_changed_part_whose_new_input_is_bad_stays(go):
    sound = Path("in/new.parquet").read_bytes()
    Path("in/new.parquet").write_bytes(b"?" * len(sound))
    changed = bytes(Path("out/new.parquet").stat().st_size)
    Path("out/new.parquet").write_bytes(changed)
    run = go()
    assert [failure.name for failure in run.failed] == ["new.parquet"]
    assert run.unknown_files == ("new.parquet",)
    assert Path("out/new.parquet").read_bytes() == changed


def test_folders_that_were_there_stay_when_a_run_fails(go, monkeypatch):
    Path("mine/empty").mkdir(parents=True)
    monkeypatch.setattr("kafeat.jobs.dataset.api.remove_stale_below", lambda _: 1 / 0)
    for out in ("mine", "new"):
        with pytest.raises(ZeroDivisionError, match="division"):
            transform_parts("map.joblib", "in", out)
    assert [str(path) for path in sorted(Path("mine").rglob("*"))] == ["mine/empty"]
    assert not Path("new").exists()
