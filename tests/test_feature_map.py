"""A map applied: the same bytes however the rows are cut."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import kafeat
from kafeat.jobs.transform import transform_file


@pytest.mark.parametrize("chunk_rows", [1000, 2560, 8192])
def test_bytes_do_not_depend_on_how_rows_in_memory_are_shared(tmp_path: Path, chunk_rows: int) -> None:
    """One, three and eight threads get chunks of different heights; a file is cut into chunks of full height."""
    X = np.random.default_rng(0).standard_normal((9001, 7)).astype(np.float32)
    step = {"kind": "fourier", "n_components": 300, "frequencies": "iid", "weights": "uniform"}
    fm = kafeat.fit({"chunk_rows": chunk_rows, "steps": [step]}, X)
    np.save(tmp_path / "x.npy", X)
    transform_file(fm, str(tmp_path / "x.npy"), str(tmp_path / "z.npy"))
    want = np.load(tmp_path / "z.npy")
    assert len({fm._height(len(X), jobs) for jobs in (1, 3, 8)}) == (1 if chunk_rows == 1000 else 3)
    for jobs in (1, 3, 8):
        assert (fm.transform(X, jobs=jobs) == want).all()
