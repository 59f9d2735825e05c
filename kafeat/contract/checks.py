"""Refuse values of a row, and numbers of a state, that a step does not accept."""

from __future__ import annotations

from typing import Any

import numpy as np

from kafeat.contract.casts import try_cast
from kafeat.errors import InvalidValueError
from kafeat.types import Array, Floats, Mask, State


def remedy(dtype: np.dtype[Any]) -> str:
    """Advice where numbers do not fit `dtype`."""
    return "scale the input" if dtype == np.float64 else "scale the input, or fit with dtype: float64"


def refuse_where(bad: Mask, X: Floats, expected: str) -> None:
    """Refuse the first entry of X (n, d) that is `bad` (n, d), if there is one."""
    if bad.any():
        row, column = (int(i) for i in np.argwhere(bad)[0])
        raise InvalidValueError(row, column, f"expected {expected}, got {X[row, column]:g}")


def refuse_negative(X: Floats) -> None:
    """Refuse values below 0, for which histogram kernels are not defined."""
    if X.size and X.min() < 0.0:
        refuse_where(X < 0.0, X, "a value of at least 0")


def count_rows(state: State, name: str) -> int:
    """Count the rows of an array in an untrusted state: 0 if it is missing or a single number."""
    array = state.get(name)
    return 0 if array is None or not array.ndim else len(array)


def refuse_infinite(features: Floats) -> None:
    """Refuse features that overflowed in code that sets no floating-point flag, as NumPy does."""
    finite = np.isfinite(features)
    if not finite.all():
        row = int(np.argmin(finite.all(axis=1)))
        raise InvalidValueError(row, None, beyond(features[row][~finite[row]][0], features.dtype))


def beyond(value: float, dtype: np.dtype[Any], what: str = "features") -> str:
    """Return the message for numbers that have left the range of the dtype in use."""
    return f"expected {what} that {dtype} can hold, got {value:g}: {remedy(dtype)}"


def round_to(values: Floats, out: Floats) -> tuple[int, int] | None:
    """Write `values` (n, k), rounded to the dtype of `out`; the place of the first that it cannot hold."""
    if try_cast(values, out):
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        out[...] = values
    lost = np.argwhere(np.isinf(out) & np.isfinite(values))
    return (int(lost[0, 0]), int(lost[0, 1])) if len(lost) else None


def check_indices(name: str, indices: Array, size: int) -> None:
    """ValueError unless all are whole numbers in [0, size): a wrong index would read or write elsewhere."""
    if indices.dtype.kind not in "iu" or (indices.size and (indices.min() < 0 or indices.max() >= size)):
        raise ValueError(f"{name}: expected whole numbers from 0 to {size - 1}")
