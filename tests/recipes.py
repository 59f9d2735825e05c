"""A small recipe of every kind, rows of normal numbers, and a map of one step, which many tests fit."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import kafeat
from kafeat.compiled.library import vector_bytes
from kafeat.contract.step import N_COMPONENTS
from kafeat.io.readers.memory import reader_of
from kafeat.registry import step_class

# What a kind needs beside its defaults: tables have columns c0, c1, …, at least 20 rows, and some numbers near 100.
NEEDED: dict[str, dict[str, Any]] = {
    "one_hot": {"columns": ["c0"], "unknown": "ignore"}, "date_parts": {"columns": ["c0"]},
    "target": {"columns": ["c0"]}, "union": {"maps": [{"steps": [{"kind": "standardize"}]}]},
    "product": {"maps": [{"steps": [{"kind": "standardize"}]}]}, "projection": {"n_components": 4},
    "nystroem": {"n_components": 4}, "positive_exponential": {"gamma": 1e-3},
    "trees": {"n_components": 8, "n_trees": 10, "min_leaf_rows": 2},
}  # fmt: skip


words = str.split  # a list of words, from one text


def small(kind: str) -> dict[str, Any]:
    """The defaults of a kind, with eight outputs where the default has hundreds."""
    width = step_class(kind).model_fields.get("n_components")
    few = {"n_components": 8} if width is not None and width.default == N_COMPONENTS.default else {}
    return {"kind": kind, **few, **NEEDED.get(kind, {})}


def in_both_codes(module: str) -> Any:
    """A fixture by which all tests of a file run each of the two codes of a compiled loop that this processor has."""

    @pytest.fixture(autouse=True, params=[size for size in (32, 64) if size <= max(vector_bytes(), 32)])
    def size_of_vectors(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(f"kafeat.{module}.vector_bytes", lambda: request.param)

    return size_of_vectors


def beside(
    write: Callable[[np.ndarray], object], shape: tuple[int, int], dtype: Any, order: Any
) -> np.ndarray:
    """Return what a compiled loop writes between two columns, and check that these stay as they are."""
    out = np.full((shape[0], shape[1] + 2), 7.0, dtype, order=order)
    assert write(out[:, 1:-1])
    assert (out[:, [0, -1]] == 7.0).all()
    return out[:, 1:-1]


def check_bits_of_rows(written: Callable[[np.ndarray, str], np.ndarray], X: np.ndarray) -> None:
    """A row has its bits whatever is around it and in either order of memory."""
    whole = written(X, "C")
    for rows in (slice(None), slice(0, 1), slice(5, 22), slice(len(X) - 1, len(X))):
        for order in "CF":
            np.testing.assert_array_equal(written(X[rows], order), whole[rows])


def normal_rows(n: int, d: int) -> np.ndarray:
    """The same normal numbers every time."""
    return np.random.default_rng(7).standard_normal((n, d))


_made: dict[str, kafeat.FeatureMap] = {}


def fit_once(config: dict[str, Any], data: Any, label: str | None = None) -> kafeat.FeatureMap:
    """The map of this recipe on these rows: one that several tests only read is fitted for the first of them."""
    key = json.dumps([config, label, reader_of(data).digest()])
    if key not in _made:
        _made[key] = kafeat.fit(config, data, label)
    return _made[key]


def fit_step(X: np.ndarray, kind: str, dtype: str = "float64", **parameters: object) -> kafeat.FeatureMap:
    """A map of one step, fitted on these rows."""
    return kafeat.fit({"dtype": dtype, "steps": [{"kind": kind, **parameters}]}, X)
