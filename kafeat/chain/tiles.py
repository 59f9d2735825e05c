"""Apply a transform to a chunk, tile by tile.

Every tile has the same height, and the last one is padded, so that a product always has the same shape and a row's
bytes do not depend on later rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar

import numpy as np

from kafeat.contract.checks import beyond, round_to
from kafeat.contract.step import Transform
from kafeat.contract.threads import check
from kafeat.contract.tile import InputRows, Rows, SparseRows, TextRows, dense, is_feature_major, shaped
from kafeat.errors import InvalidValueError
from kafeat.types import Array, Floats, Mask

R = TypeVar("R")

# A tile has 256, 512 or 1024 rows: the largest height for which its widest array has at most `_MOST_NUMBERS` numbers.
# Higher tiles of wide maps would not fit into the cache. Calls for lower tiles of narrow maps would be so short that
# threads mostly wait for the interpreter.
LEAST_ROWS, MOST_ROWS = 256, 1024
_MOST_NUMBERS = 1 << 18
# Rows are multiplied as sparse rows if at most one entry in 32 is nonzero: with more, dense products were faster.
# Narrow rows are always dense, so that LIBSVM files give the same bytes as other formats.
THIN, LEAST_SPARSE = 32, 256


def tile_rows(transform: Transform) -> int:
    """Return the height of all tiles of a transform. It depends only on widths, so that bytes are reproducible."""
    rows = LEAST_ROWS
    while rows < MOST_ROWS and 2 * rows * transform.widest <= _MOST_NUMBERS:
        rows *= 2
    return rows


def tiles(rows: int, height: int, above: int = 0) -> Iterator[tuple[slice, int]]:
    """Yield the slice of each tile's rows, and the index in the tile of its first row: `above` in tile 0, then 0."""
    for start in range(-above, rows, height) if rows else ():
        yield slice(max(0, start), min(rows, start + height)), max(0, -start)


class Made(NamedTuple):
    """Features of rows, and the number of clipped values in each row, (n,), or None if the steps clip nothing."""

    features: Rows
    clipped: Array | None


class TileLoop:
    """Applies a transform tile by tile, with buffers for one thread. Threads share the arrays of the transform."""

    def __init__(self, transform: Transform, dtype: np.dtype[Any]) -> None:
        self._transform = transform
        self.rows = tile_rows(transform)
        self._scratch = transform.scratch(self.rows)
        self._input = np.empty((self.rows, transform.n_features_in), dtype=transform.reads(dtype))
        self._spare = np.empty(self.rows * transform.n_features_out, dtype=dtype)

    def __call__(self, X: InputRows, out: Floats, above: int = 0) -> Made:
        """Write the features of chunk `X` (n, n_features_in) into `out` (n, n_features_out), in C or F order.

        `out` may have another dtype, to which the features are rounded. `above` is the position of the first row in its
        tile, because a product's last bit may depend on it.
        """
        clipped = None
        for tile, place in tiles(len(X), self.rows, above):
            check()
            rows = X[tile]
            if place:  # copies of the first row fill the places above it
                rows = rows[np.maximum(np.arange(-place, len(rows)), 0)]
            try:
                counts = self._tile(rows, out[tile], place)
            except InvalidValueError as refused:
                raise refused.at(refused.row + tile.start - min(place, refused.row)) from None
            if counts is not None:
                clipped = np.zeros(len(X), np.int64) if clipped is None else clipped
                clipped[tile] = counts[place : len(rows)]
        return Made(out, clipped)

    def _tile(self, X: InputRows, out: Floats, place: int) -> Array | None:
        rows = len(X)
        if len(out) == self.rows and out.dtype == self._spare.dtype:
            target = out
        else:
            target = shaped(self._spare, (self.rows, out.shape[1]), is_feature_major(out))
        if isinstance(X, SparseRows):
            counts = self._sparse(X, target)
        elif isinstance(X, TextRows) and TextRows in self._transform.takes:
            counts = self._apply(X[np.minimum(np.arange(self.rows), rows - 1)], target)
        else:
            X = dense(X)
            if rows != self.rows or not X.flags.c_contiguous or X.dtype != self._input.dtype:
                # All inputs get one memory order and dtype, because a product's last bit may depend on them.
                self._input[:rows] = X
                self._input[rows:] = X[-1]
                X = self._input
            counts = self._apply(X, target)
        if target is not out:
            _copy(target[place:rows], out, place)
        return counts

    def _sparse(self, X: SparseRows, out: Floats) -> Array | None:
        """Transform each row as sparse if it has few entries (see `THIN`), and as dense if it has more."""
        thin = X.counts * THIN <= X.width
        if SparseRows not in self._transform.takes or X.width < LEAST_SPARSE:
            thin[:] = False
        ways = [way for way in (thin, ~thin) if way.any()]
        merged: Array | None = None
        for number, way in enumerate(ways):
            # The pass over sparse rows has copies of its first row in place of dense rows and padding, and vice versa.
            which = np.full(self.rows, int(way.argmax()))
            which[: len(X)] = np.where(way, np.arange(len(X)), which[0])
            target = out if number == 0 else np.empty_like(out)
            part = X if way.all() and len(X) == self.rows else X[which]
            try:
                counts = self._apply(part if way is thin else part.dense(self._input), target)
            except InvalidValueError as refused:
                raise refused.at(int(which[refused.row])) from None
            if number == 0:
                merged = counts
                continue
            rows = np.flatnonzero(way)
            out[rows] = target[rows]
            if merged is not None and counts is not None:
                merged[rows] = counts[rows]
        return merged

    def _apply(self, X: InputRows, out: Floats) -> Array | None:
        try:
            with np.errstate(over="raise", divide="raise", invalid="raise"):
                return self._transform.apply(X, out, self._scratch)
        except FloatingPointError:
            # Check the result, because floating-point flags may be set although a product is finite.
            with np.errstate(all="ignore"):
                counts = self._transform.apply(X, out, self._scratch)
            finite = np.isfinite(out)
            if not finite.all():
                row = int(np.argmin(finite.all(axis=1)))
                raise InvalidValueError(row, None, beyond(out[row][~finite[row]][0], out.dtype)) from None
            return counts


def with_good_rows(good: Mask, work: Callable[[Array], R]) -> tuple[R | None, list[InvalidValueError]]:
    """Return `work(rows)` for the good rows, and the errors of bad rows, which are removed from the mask `good`.

    `rows` are the row numbers 0, 1, … but each bad row is replaced by a good row. The good rows thus keep their places
    in the tile, and their bytes. The result is None if no row is good.
    """
    refusals = list[InvalidValueError]()
    while good.any():
        try:
            return work(np.where(good, np.arange(len(good)), good.argmax())), refusals
        except InvalidValueError as refused:
            # If a copy of the first good row raises the error, the first good row is bad after all.
            row = refused.row if good[refused.row] else int(good.argmax())
            good[row] = False
            refusals.append(refused.at(row))
    return None, refusals


def _copy(features: Floats, out: Floats, above: int) -> None:
    """Copy features into `out`, in its dtype. An error names the row in the tile, where the first row is `above`."""
    place = round_to(features, out)
    if place is not None:
        raise InvalidValueError(
            place[0] + above,
            None,
            f"expected features that {out.dtype} can hold, got {features[place]:g}: "
            "choose a wider --output-dtype, or scale the input",
        )


def run_tiles(transform: Transform, X: InputRows, dtype: np.dtype[Any]) -> Floats:
    """Return the features of rows X (n, d), computed by the calling thread."""
    out = np.empty((len(X), transform.n_features_out), dtype=dtype)
    TileLoop(transform, dtype)(X, out)
    return out
