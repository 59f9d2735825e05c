"""Rows to try a graph on: within what the fit has seen, at its ends, and where histograms are, near the low end."""

from __future__ import annotations

import numpy as np

from kafeat.feature_map import FeatureMap
from kafeat.io.columns import Columns
from kafeat.onnx.columns import coded, numbers_of
from kafeat.types import Floats

_ROWS = 240
_MISSING = 0.05


def probe_rows(fm: FeatureMap) -> Floats:
    """Rows (n, d), in the dtype that the map reads: categories are codes. The same for the same map."""
    rng = np.random.default_rng(0)
    X = _within(fm, rng)
    plain = np.ones(fm.n_features_in, dtype=bool)
    for j, categories in coded(fm.columns).items():
        plain[j] = False
        X[:, j] = rng.integers(-1 if categories.lenient else 0, len(categories.values), size=len(X))
    if fm.columns.missing:
        X[(rng.random(X.shape) < _MISSING) & plain] = np.nan
    return X


def _within(fm: FeatureMap, rng: np.random.Generator) -> Floats:
    shape = (_ROWS, fm.n_features_in)
    if fm.seen is None:  # older than that: of both signs, and of one
        X = rng.standard_normal(shape)
        X[::2] = np.abs(X[::2])
        return X.astype(fm.input_dtype)
    highest = float(np.finfo(fm.input_dtype).max)
    low, high = (np.clip(np.nan_to_num(end), -highest, highest) for end in (fm.seen.low, fm.seen.high))
    share = rng.random(shape)
    share[1::3] **= 8
    share[2::3] = np.rint(share[2::3])
    share[0], share[1] = 0.0, 1.0
    # not low + share·(high − low), which may be more than the dtype holds
    return ((1.0 - share) * low + share * high).astype(fm.input_dtype)


def as_given(columns: Columns, codes: Floats) -> Floats:
    """The same rows as the graph is given them: categories by their numbers, an unknown one by another."""
    X = codes.copy()
    for j, categories in coded(columns).items():
        numbers = numbers_of(categories)
        known = codes[:, j] >= 0.0
        X[~known, j] = numbers.max() + 1.0
        X[known, j] = numbers[codes[known, j].astype(np.intp)]
    return X
