"""Parts on Spark in local mode and on a Ray of this machine: the same bytes. Not in the CI, as both are large."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import kafeat
from tests.jobs.parts import transform_parts


@pytest.mark.parametrize(("name", "package"), [("spark", "pyspark"), ("ray", "ray")])
def test_the_same_bytes(name: str, package: str, tmp_path: Path) -> None:
    pytest.importorskip(package)
    rng = np.random.default_rng(0)
    (tmp_path / "in").mkdir()
    for i in range(6):
        np.save(tmp_path / "in" / f"p{i}.npy", rng.normal(size=(1000, 5)))
    model = str(tmp_path / "map.joblib")
    kafeat.fit({"steps": [{"kind": "fourier", "n_components": 16}]}, rng.normal(size=(500, 5))).save(model)
    transform_parts(model, str(tmp_path / "in"), str(tmp_path / "here"))
    # by the command: it ends what these engines leave running
    words = ["transform", "--model", model, str(tmp_path / "in"), str(tmp_path / "out"), "--engine", name]
    done = subprocess.run(
        [sys.executable, "-m", "kafeat", *words], capture_output=True, text=True, timeout=250
    )
    assert done.returncode == 0, done.stderr
    for path in (tmp_path / "here").glob("*.npy"):
        assert (tmp_path / "out" / path.name).read_bytes() == path.read_bytes()
