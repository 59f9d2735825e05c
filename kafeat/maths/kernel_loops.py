"""Compiled loops of kernels between a tile of rows and landmarks; None where NumPy has to compute."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from kafeat.compiled.library import ARRAY, FLAG, REALS, SIZE, address, aligned, loop, vector_bytes
from kafeat.types import Floats

# The numbers of these in the C file.
_PROFILES = {"gaussian": 0, "matern_1": 1, "rational_quadratic": 2, "matern_3": 3, "matern_5": 5}
_TERMS = {"harmonic": 0, "cityblock": 1, "intersection": 2}
_ACROSS = {64: 4, 32: 2}
"""Vectors of landmarks that the loop takes at a time, by the bytes of a vector, as in the C file."""

Profile = Literal["gaussian", "matern_1", "rational_quadratic", "matern_3", "matern_5"]
Term = Literal["harmonic", "cityblock", "intersection"]


def profile_loop(
    profile: Profile | None, dtype: np.dtype[Any], alpha: float = 0.0
) -> Callable[[Floats], None] | None:
    """Return what turns c·r², rounded to the wrong side of 0 or not, into a kernel in place, in C order.

    c is −γ for gaussian, γ/α for rational_quadratic, and 2νγ for matern with ν = 1/2, 3/2 and 5/2.
    """
    run = loop("profile", dtype, ARRAY, SIZE, FLAG, REALS[dtype.name])
    if run is None or profile is None:
        return None
    number = _PROFILES[profile]
    return lambda squares: run(address(squares), squares.size, number, alpha)


def sums_loop(term: Term, landmarks: Floats, dtype: np.dtype[Any]) -> Callable[[Floats, Floats], None] | None:
    """Return what writes sums over the columns of X (n, d) and of landmarks (m, d) into (n, m), all in C order.

    The terms are xl/(x + l) for harmonic, 0 where x is 0, |x − l| for cityblock, and min(x, l) for intersection.
    """
    size = vector_bytes()
    run = loop(f"sums_{size}", dtype, ARRAY, SIZE, SIZE, ARRAY, SIZE, FLAG, ARRAY) if size else None
    if run is None:
        return None
    (m, d), number, wide = landmarks.shape, _TERMS[term], _ACROSS[size] * size // dtype.itemsize
    panels = aligned(-(-m // wide) * wide * d, dtype)
    panels[...] = 0.0
    for start in range(0, m, wide):
        panel = panels[start * d : (start + wide) * d].reshape(d, wide)
        panel[:, : m - start] = landmarks[start : start + wide].T

    def write(X: Floats, out: Floats) -> None:
        X = np.ascontiguousarray(X)
        run(address(X), *X.shape, address(panels), m, number, address(out))

    return write
