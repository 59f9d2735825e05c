"""Model files of every format that was released stay readable, and give the same features.

tests/formats/N has a map of format N, rows, and their features by the kafeat that wrote it: a union of nine chains, so
of most kinds of state.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import kafeat
from kafeat.feature_map import FORMAT

FOLDERS = sorted((Path(__file__).parent / "formats").iterdir())


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_an_old_file_gives_the_same_features(folder):
    fm = kafeat.load(folder / "map.joblib")
    expected = np.load(folder / "features.npy")
    found = fm.transform(np.load(folder / "rows.npy"))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6 * np.abs(expected).max())


def test_every_format_has_a_file():
    assert [folder.name for folder in FOLDERS] == [str(i) for i in range(1, FORMAT + 1)]


def test_the_first_file_knows_no_range_of_its_columns():
    assert kafeat.load(FOLDERS[0] / "map.joblib").seen is None
