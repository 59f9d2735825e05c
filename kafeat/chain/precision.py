"""Check that float32 is enough for a fitted map, by comparing its features with those of float64 on demanding rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from kafeat.chain.tiles import with_good_rows
from kafeat.contract.step import DOUBLE, Transform
from kafeat.contract.tile import InputRows, TextRows, dense, numbers_of
from kafeat.types import Floats

# The rows to check: at most 1024 and at least 64 evenly spaced rows, and the 128 rows with the most extreme entries.
_MOST_SPREAD, _LEAST_SPREAD, _FAR = 1024, 64, 128
# The largest number of entries in the rows to check, and in the rows whose extremes are searched at a time.
_MOST_NUMBERS, _AT_ONCE = 1 << 24, 1 << 21
_MOST_ROWS = 256
# The accepted error of a feature, as a norm over all rows, relative to the feature's own norm. For rows, see `agree`.
_OF_COLUMN = 0.01

Indices = npt.NDArray[np.intp]


def demanding_rows(X: InputRows) -> Indices:
    """Return row numbers of the sample X (n, d): rows spread over it, and rows with the most extreme entries."""
    X = numbers_of(X)  # texts have no extremes
    size = int(np.clip(_MOST_NUMBERS // max(1, X.shape[1]), _LEAST_SPREAD, _MOST_SPREAD))
    if len(X) <= size + _FAR:
        return np.arange(len(X))
    spread = np.linspace(0, len(X) - 1, size).astype(np.intp)
    if not X.shape[1]:
        return spread
    few = np.nan_to_num(X[spread])
    middle = np.median(few, axis=0)
    width = np.median(np.abs(few - middle), axis=0)
    far, height = np.empty(len(X)), max(1, _AT_ONCE // X.shape[1])
    with np.errstate(all="ignore"):
        for start in range(0, len(X), height):
            # if half of a column is one value, `width` is 0, and any other value is infinitely far
            away = np.abs(X[start : start + height] - middle) / width
            far[start : start + height] = np.fmax.reduce(np.nan_to_num(away), axis=1)
    return np.union1d(spread, np.argpartition(far, -_FAR)[-_FAR:])


def agree(narrow: Transform, wide: Transform, X: Floats, rows: Indices, dtype: np.dtype[Any]) -> bool:
    """Return True if the features of these rows of X agree between `narrow`, in `dtype`, and `wide`, in float64.

    A row's error may be at most √ε times the larger of its length and the median length, with the ε of `dtype`. A
    feature's error may be at most 1 % of its norm over all rows. If `dtype` cannot hold a row's features, `narrow` must
    fail.
    """
    exact, rounded = features(wide, X, rows, DOUBLE), features(narrow, X, rows, dtype)
    sound = (np.abs(exact) <= np.finfo(dtype).max).all(axis=1)
    if np.isfinite(rounded[~sound]).all(axis=1).any():
        return False
    if not sound.any():
        return True
    # The exact features are rounded to `dtype` as well, because this rounding is not an error of the computation.
    exact = exact[sound].astype(dtype).astype(np.float64)
    apart = rounded[sound].astype(np.float64) - exact
    sizes, off = (np.linalg.norm(Z, axis=1) for Z in (exact, apart))
    in_rows = off <= np.sqrt(np.finfo(dtype).eps) * np.maximum(sizes, np.median(sizes))
    in_columns = np.linalg.norm(apart, axis=0) <= _OF_COLUMN * np.linalg.norm(exact, axis=0)
    return bool(in_rows.all() and in_columns.all())


def features(transform: Transform, X: Floats, rows: Indices, dtype: np.dtype[Any]) -> Floats:
    """Return the features of these rows of X (n, d). In a row that raises an error, they are not finite."""
    height = int(np.clip(_AT_ONCE // transform.widest, 1, min(_MOST_ROWS, max(1, len(rows)))))
    out = np.empty((len(rows), transform.n_features_out), dtype=dtype)
    scratch, made = transform.scratch(height), np.empty((height, transform.n_features_out), dtype=dtype)
    for start in range(0, len(rows), height):
        # All tiles have the same height, so copies of the last row fill the last tile.
        places = np.minimum(np.arange(start, start + height), len(rows) - 1)
        _apply(transform, X[rows[places]], made, scratch)
        out[start : start + height] = made[: len(out) - start]
    return out


def _apply(transform: Transform, X: Floats, out: Floats, scratch: Any) -> None:
    """Write the features of one tile into `out`, with NaN in rows that raise an error."""
    good, reads = np.ones(len(X), dtype=bool), transform.reads(out.dtype)

    def work(rows: Indices) -> None:
        some: Any = X[rows]
        texts = isinstance(some, TextRows) and TextRows in transform.takes
        tile = some.astype(reads) if texts else np.ascontiguousarray(dense(some), dtype=reads)
        transform.apply(tile, out, scratch)

    with np.errstate(all="ignore"):
        with_good_rows(good, work)
    out[~good] = np.nan
