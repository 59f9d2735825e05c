"""The sample data and configs of `kafeat demo`."""

from pathlib import Path

import pytest

import kafeat
from kafeat.errors import UsageError
from kafeat.jobs.demo import write_demo
from tests.zygote import ROOT


def test_the_files_are_those_of_the_repository_and_a_map_can_be_fitted_on_them(tmp_path):
    written = write_demo(tmp_path / "new" / "demo")
    assert written == sorted(written)
    for path in map(Path, written):
        assert path.read_bytes() == (ROOT / path.relative_to(tmp_path / "new" / "demo")).read_bytes()
    folder = tmp_path / "new" / "demo"
    assert {path.name for path in (folder / "configs").iterdir()} >= {"fourier.yaml", "kafeat.schema.json"}
    fm = kafeat.fit(
        folder / "configs" / "fourier.yaml", folder / "sample_data" / "digits.parquet", label="label"
    )
    assert fm.n_components == 512


def test_files_of_the_same_content_stay_and_others_are_not_replaced(tmp_path):
    write_demo(tmp_path)
    stamps = {path: path.stat() for path in (tmp_path / "configs").iterdir()}
    assert len(write_demo(tmp_path)) > len(stamps)
    for path, before in stamps.items():
        # a command that reads the file meanwhile would refuse a file that changes
        assert (path.stat().st_ino, path.stat().st_ctime_ns) == (before.st_ino, before.st_ctime_ns)
    mine = tmp_path / "configs" / "union.yaml"
    (tmp_path / "configs" / "clip.yaml").unlink()
    mine.write_text("mine")
    with pytest.raises(UsageError, match=r"union\.yaml: expected no such file"):
        write_demo(tmp_path)
    assert mine.read_text() == "mine"
    assert not (tmp_path / "configs" / "clip.yaml").exists()
