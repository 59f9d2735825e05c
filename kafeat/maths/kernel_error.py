"""The size of the error of an approximate kernel matrix."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from kafeat.errors import DataError
from kafeat.types import Floats


def power_of_two(sizes: ArrayLike) -> Floats:
    """The largest power of two at most each size, and 1 for 0: dividing by it changes no digit, only the exponent."""
    sizes = np.asarray(sizes, dtype=np.float64)
    return np.where(sizes > 0.0, np.ldexp(1.0, np.frexp(sizes)[1] - 1), 1.0)


def relative_frobenius(K: Floats, Z: Floats) -> float:
    """Return ‖K − ZZᵀ‖_F/‖K‖_F for the exact kernel K (n, n) and features Z (n, D)."""
    error, K, _ = error_in_units(K, Z)
    return relative_size(float(np.linalg.norm(error)), float(np.linalg.norm(K)))


def error_in_units(K: Floats, Z: Floats) -> tuple[Floats, Floats, float]:
    """Return K̂ − K and K divided by the size of their largest entry, so that squares fit float64, and this size."""
    with np.errstate(over="ignore", invalid="ignore"):
        error = Z @ Z.T
        error -= K
    if not np.isfinite(error).all():
        raise DataError(
            "expected features whose dot products float64 can hold, got larger ones: scale the input"
        )
    unit = float(power_of_two(max(np.abs(error).max(), np.abs(K).max())))
    return error / unit, K / unit, unit


def relative_size(error: float, size: float) -> float:
    """Return error / size. If the kernel is 0 on these rows, a map without error has the relative error 0."""
    return error / size if size > 0.0 else (0.0 if error == 0.0 else float("inf"))
