"""Data that many tests share: scikit-learn's handwritten digits, read-only."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from sklearn.datasets import load_digits


@pytest.fixture(scope="session")
def configs() -> Path:
    """The folder with one config a kind."""
    return Path(__file__).parents[1] / "configs"


@pytest.fixture(scope="session")
def digits() -> np.ndarray:
    """1,797 rows of 64 values from 0 to 16, float64, read-only."""
    X = np.ascontiguousarray(load_digits().data)
    X.flags.writeable = False
    return X


@pytest.fixture(scope="session")
def digits_table(digits: np.ndarray) -> pa.Table:
    """The same with names, p00 ... p63, and the column `label`."""
    columns = {f"p{i:02}": column for i, column in enumerate(digits.T)}
    return pa.table({**columns, "label": load_digits().target})
