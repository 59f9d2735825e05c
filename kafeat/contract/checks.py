"""Check the values of rows and the arrays of states, and cast arrays to other types.

Casts and scalers run as one compiled pass over whole rows, where NumPy needs several.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from kafeat.compiled.library import ARRAY, FLAG, SIZE, Loop, address, function
from kafeat.contract.step import DOUBLE, Scaler, ScalerTransform
from kafeat.errors import InvalidValueError
from kafeat.types import Array, ArrayOf, Floats, Mask, Shapes, State

_LETTERS = {"bool": "b8", "float16": "f16", "float32": "f32", "float64": "f64"} | {
    f"{kind}{bits}": f"{kind[0]}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)
}
_FLOATS = ("f32", "f64")
_RUNS = (ARRAY, SIZE, SIZE, SIZE, SIZE)
"""The C types of an array: its address, the number and length of runs, and the strides between and within runs."""


def cast_finite(values: Array, out: Floats) -> bool:
    """Cast `values`, float64 or narrower, into `out`. Return false if an entry of `out` is not finite.

    Whole numbers are rounded to float64 first, so that all formats agree to the bit.
    """
    sound = try_cast(values, out)
    if sound is None:
        whole = values.dtype.kind in "iu"
        with np.errstate(over="ignore", invalid="ignore"):
            out[...] = values.astype(np.float64) if whole else values
        sound = all_finite(out)
    return sound


def try_cast(values: Array, out: Floats) -> bool | None:
    """Cast `values` (n, k) or (n,) into `out` by the compiled loop, with rounding to nearest.

    Returns
    -------
    bool or None
        True if all numbers are finite. False if a number is not finite; float16 numbers in `out` are then invalid. None
        if nothing was written, because there is no loop for these types.
    """
    run = _cast_loop(values.dtype, out.dtype)
    if run is None or not values.flags.aligned:
        return None
    shape, steps, to = _runs(values, out)
    return not run(address(values), *shape, *steps, address(out), *to)


def all_finite(X: Array) -> bool:
    """Return true if no entry of X (n, k) or (n,) is NaN or infinite."""
    run = _check_loop(X.dtype) if X.dtype.kind == "f" else None
    if run is None or not X.flags.aligned:
        return bool(np.isfinite(X).all())
    shape, steps, _ = _runs(X, X)
    return not run(address(X), *shape, *steps)


def _runs(values: Array, out: Array) -> tuple[tuple[int, int], tuple[int, int], tuple[int, int]]:
    """Return number and length of runs (such as rows), and for each array the strides between and within runs."""
    flags, of_out = values.flags, out.flags
    if (flags.c_contiguous and of_out.c_contiguous) or (flags.f_contiguous and of_out.f_contiguous):
        return (1, out.size), (0, values.itemsize), (0, out.itemsize)
    if out.ndim == 1:
        return (1, out.size), (0, values.strides[0]), (0, out.strides[0])
    (rows, columns), (by_row, by_column), (to_row, to_column) = out.shape, values.strides, out.strides
    if to_row < to_column:
        return (columns, rows), (by_column, by_row), (to_column, to_row)
    return (rows, columns), (by_row, by_column), (to_row, to_column)


@cache
def _cast_loop(source: np.dtype[Any], target: np.dtype[Any]) -> Loop | None:
    """Return the compiled loop that casts `source` to `target`, or None if there is none for these dtypes."""
    names = [_LETTERS.get(dtype.name) if dtype.isnative else None for dtype in (source, target)]
    made = names[1] in _FLOATS or (names[1] == "f16" and names[0] in _FLOATS)
    if None in names or names[0] in (names[1], "f16") or not made:
        return None
    return function(f"cast_{names[0]}_{names[1]}", *_RUNS, ARRAY, SIZE, SIZE, result=FLAG)


@cache
def _check_loop(dtype: np.dtype[Any]) -> Loop | None:
    name = _LETTERS.get(dtype.name) if dtype.isnative else None
    return function(f"check_{name}", *_RUNS, result=FLAG) if name in _FLOATS else None


class ScalerLoop(ScalerTransform):
    """A scaler whose float64 rows go through the compiled loop `run`, called as run(X, n, d, *between, output).

    If the loop returns 1, NumPy computes the rows again, and raises an error for values that overflow.
    """

    def __init__(
        self, scaler: Scaler, state: State, n_features: int, run: Loop, *between: Array | float
    ) -> None:
        super().__init__(scaler, state, n_features, DOUBLE)
        self._run, self._between = run, between
        self._arguments = [address(one) if isinstance(one, np.ndarray) else one for one in between]

    def scratch(self, rows: int) -> Floats:
        return np.empty((rows, self.n_features_out))

    def apply(self, X: Floats, out: Floats, scratch: Floats) -> None:
        target = out if out.flags.c_contiguous and out.dtype == DOUBLE else scratch[: len(X)]
        X = np.ascontiguousarray(X, dtype=DOUBLE)
        if self._run(address(X), *X.shape, *self._arguments, address(target)):
            super().apply(X, out, scratch)
        elif target is not out:
            out[...] = target


def remedy(dtype: np.dtype[Any]) -> str:
    """Return advice for numbers that do not fit `dtype`."""
    return "scale the input" if dtype == np.float64 else "scale the input, or fit with dtype: float64"


def refuse_where(bad: Mask, X: Floats, expected: str) -> None:
    """Raise InvalidValueError for the first entry of X (n, d) at which the mask `bad` (n, d) is true, if any."""
    if bad.any():
        row, column = (int(i) for i in np.argwhere(bad)[0])
        raise InvalidValueError(row, column, f"expected {expected}, got {X[row, column]:g}")


def refuse_negative(X: Floats) -> None:
    """Raise InvalidValueError for values below 0, for which histogram kernels are not defined."""
    if X.size and X.min() < 0.0:
        refuse_where(X < 0.0, X, "a value of at least 0")


_SIGNS = {"above 0": np.greater, "of at least 0": np.greater_equal, "of at most 0": np.less_equal}


def arrays_of(state: object, place: str) -> State:
    """Return `state`, which is untrusted, or raise ValueError if it is not a dict of arrays."""
    kinds = np.ndarray, np.generic  # NumPy returns scalars for sums and products of 0-d arrays
    if not isinstance(state, dict) or not all(isinstance(value, kinds) for value in state.values()):
        raise ValueError(f"{place}: expected a dict of arrays")
    return state


def check_arrays(state: State, shapes: Shapes, place: str) -> None:
    """Raise ValueError unless an untrusted state has exactly the declared arrays, with valid dtypes and values."""
    every = {name: one if isinstance(one, ArrayOf) else ArrayOf(one) for name, one in shapes.items()}
    expected = {name: one for name, one in every.items() if name in state or not one.optional}
    if set(state) != set(expected):
        raise ValueError(f"{place}: expected {sorted(expected)}, got {sorted(state)!s:.200}")
    for name, one in expected.items():
        values, allowed = state[name], ("float32", "float64") if one.dtype is None else (one.dtype,)
        if values.dtype not in allowed:
            raise ValueError(
                f"{place}.{name}: expected numbers of {' or '.join(allowed)}, got {values.dtype}"
            )
        if values.shape != tuple(one.shape):
            raise ValueError(f"{place}.{name}: expected the shape {tuple(one.shape)}, got {values.shape}")
        if not (np.isfinite(values) | (np.isnan(values) if one.missing else False)).all():
            raise ValueError(f"{place}.{name}: expected finite numbers")
        if one.below is not None:
            check_indices(f"{place}.{name}", values, one.below)
        sound = _SIGNS[one.sign](values, 0.0) if one.sign else np.True_
        if not sound.all():
            what = "numbers" if values.ndim else "a number"
            raise ValueError(f"{place}.{name}: expected {what} {one.sign}, got {values[~sound][0]:g}")


def count_rows(state: State, name: str) -> int:
    """Return the number of rows of an array in an untrusted state, or 0 if it is missing or a single number."""
    array = state.get(name)
    return 0 if array is None or not array.ndim else len(array)


def refuse_infinite(features: Floats) -> None:
    """Raise InvalidValueError for features that overflowed in C code, which does not warn of overflow."""
    finite = np.isfinite(features)
    if not finite.all():
        row = int(np.argmin(finite.all(axis=1)))
        raise InvalidValueError(row, None, beyond(features[row][~finite[row]][0], features.dtype))


def beyond(value: float, dtype: np.dtype[Any], what: str = "features") -> str:
    """Return the message for a value that is outside the range of `dtype`."""
    return f"expected {what} that {dtype} can hold, got {value:g}: {remedy(dtype)}"


def round_to(values: Floats, out: Floats) -> tuple[int, int] | None:
    """Cast `values` (n, k) into `out`. Return the row and column of the first value that overflows, or None."""
    if try_cast(values, out):
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        out[...] = values
    lost = np.argwhere(np.isinf(out) & np.isfinite(values))
    return (int(lost[0, 0]), int(lost[0, 1])) if len(lost) else None


def whole_numbers(classes: Sequence[int]) -> Array:
    """Return ascending whole numbers as an int64 or uint64 array. By default, NumPy turns [1, 2⁶³] into floats."""
    return np.array(classes, dtype=np.uint64 if classes[-1] > np.iinfo(np.int64).max else np.int64)


def check_indices(name: str, indices: Array, size: int) -> None:
    """Raise ValueError unless all indices are whole numbers in [0, size): C code uses them unchecked."""
    if indices.dtype.kind not in "iu" or (indices.size and (indices.min() < 0 or indices.max() >= size)):
        raise ValueError(f"{name}: expected whole numbers from 0 to {size - 1}")
