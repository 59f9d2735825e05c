"""The entry that is not finite: the first by row, then by column."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kafeat.types import Array, Floats, Mask

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


def first_of_rows(bad: Mask) -> Iterator[tuple[int, int]]:
    """Row and column of the first entry that is true of each row that has one."""
    for row in np.flatnonzero(bad.any(axis=1)):
        yield int(row), int(bad[row].argmax())
