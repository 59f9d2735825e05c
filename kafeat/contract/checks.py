"""What a step does not accept: values of a row, and numbers of a state."""

from __future__ import annotations

from typing import Any

import numpy as np

from kafeat.errors import InvalidValueError
from kafeat.types import Array, Floats, State


def remedy(dtype: np.dtype[Any]) -> str:
    """Advice where numbers do not fit `dtype`."""
    return "scale the input" if dtype == np.float64 else "scale the input, or fit with dtype: float64"


def refuse_negative(X: Floats) -> None:
    """Histogram kernels are defined for x ≥ 0."""
    if X.size and X.min() < 0.0:
        row, column = (int(i) for i in np.argwhere(X < 0.0)[0])
        raise InvalidValueError(row, column, f"expected a value of at least 0, got {X[row, column]:g}")


def count_rows(state: State, name: str) -> int:
    """How many rows an array of a state has that may be a stranger's; 0 if it is not there, or a single number."""
    array = state.get(name)
    return 0 if array is None or not array.ndim else len(array)


def refuse_infinite(features: Floats) -> None:
    """What is not computed by NumPy leaves no flag of the processor when it overflows: look at the result."""
    finite = np.isfinite(features)
    if not finite.all():
        row = int(np.argmin(finite.all(axis=1)))
        raise InvalidValueError(row, None, beyond(features[row][~finite[row]][0], features.dtype))


def beyond(value: float, dtype: np.dtype[Any], what: str = "features") -> str:
    """What is wrong where numbers have left the range of the dtype that is computed in."""
    return f"expected {what} that {dtype} can hold, got {value:g}: {remedy(dtype)}"


def round_to(values: Floats, out: Floats) -> tuple[int, int] | None:
    """Write `values` (n, k), rounded to the dtype of `out`; the place of the first that it cannot hold."""
    try:
        with np.errstate(over="raise"):
            out[...] = values
    except FloatingPointError:
        row, column = (int(i) for i in np.argwhere(np.abs(values) > np.finfo(out.dtype).max)[0])
        return row, column
    return None


def check_indices(name: str, indices: Array, size: int) -> None:
    """ValueError unless all are whole numbers in [0, size): a wrong index would read or write elsewhere."""
    if indices.dtype.kind not in "iu" or (indices.size and (indices.min() < 0 or indices.max() >= size)):
        raise ValueError(f"{name}: expected whole numbers from 0 to {size - 1}")
