"""The entry that is not finite: the first by row, then by column."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kafeat.types import Array, Floats

TILE = 1 << 16


def cast_finite(source: Array, out: Floats) -> bool:
    """Write `source`, float64 or narrower, into `out`; False if an entry of `out` is not finite."""
    with np.errstate(over="ignore", invalid="ignore"):
        out[...] = source
    return all_finite(out)


def all_finite(X: Array) -> bool:
    """Whether no entry is NaN or infinite."""
    if X.flags.forc:
        flat = X.reshape(-1, order="A")
        # A dot product runs as fast as memory and makes nothing; it can overflow, and only then one has to look.
        with np.errstate(over="ignore", invalid="ignore"):
            if all(np.isfinite(np.dot(part, part)) for part in _parts(flat)):
                return True
    return bool(np.isfinite(X).all())


def _parts(flat: Array) -> list[Array]:
    return [flat[start : start + TILE] for start in range(0, flat.size, TILE)]


def first_true(bad: npt.NDArray[np.bool_]) -> tuple[int, int]:
    """Row and column of the first entry that is true; there must be one."""
    row = int(bad.any(axis=1).argmax())
    return row, int(bad[row].argmax())


def first_not_finite(matrix: Floats) -> tuple[int, int]:
    """Row and column of the first entry that is not finite; there must be one."""
    for start in range(0, len(matrix), TILE):
        bad = ~np.isfinite(matrix[start : start + TILE])
        rows = bad.any(axis=1)
        if rows.any():
            row = int(rows.argmax())
            return start + row, int(bad[row].argmax())
    raise AssertionError("every entry is finite")
