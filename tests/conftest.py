"""Data that many tests share: scikit-learn's handwritten digits, read-only."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import settings
from sklearn.datasets import load_digits

from kafeat.contract.step import Sample, Step

# A machine that does something else is no fault of an example.
settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")


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


@pytest.fixture(scope="session")
def features() -> Callable[[Step, np.ndarray, int], np.ndarray]:
    """The features of X by a step fitted on X itself: no chunks, no tiles, no files."""

    def features(step: Step, X: np.ndarray, seed: int = 0) -> np.ndarray:
        state = step.fit(Sample(X, None, len(X)), np.random.default_rng(seed))
        transform = step.bind(state, X.shape[1], X.dtype)
        out = np.empty((len(X), transform.n_features_out), dtype=X.dtype)
        transform.apply(X, out, transform.scratch(len(X)))
        return out

    return features
