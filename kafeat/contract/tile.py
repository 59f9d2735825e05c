"""Tiles of rows: their memory order, and rows of which most entries are zero, in compressed form (CSR)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from kafeat.types import Array, Floats


class SparseRows:
    """A matrix (n, width): row i has `values[starts[i]:starts[i + 1]]` in `columns[...]`, which ascend, and zeros."""

    def __init__(self, values: Floats, columns: Array, starts: Array, width: int) -> None:
        self.values, self.columns, self.starts, self.width = values, columns, starts, width

    @classmethod
    def stacked(cls, pieces: Sequence[SparseRows], width: int, dtype: np.dtype[Any]) -> SparseRows:
        """Return the rows of all pieces in `dtype`, with columns and starts of 64 bits."""
        ends = np.cumsum([0, *(len(piece.values) for piece in pieces)])
        starts = [piece.starts[1:] + end for piece, end in zip(pieces, ends[:-1], strict=True)]
        return cls(
            np.concatenate([np.empty(0, dtype), *(piece.values for piece in pieces)], dtype=dtype),
            np.concatenate([np.empty(0, np.int64), *(piece.columns for piece in pieces)]),
            np.concatenate([np.zeros(1, np.int64), *starts]),
            width,
        )

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns, zeros included."""
        return len(self), self.width

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the entries."""
        return self.values.dtype

    def __len__(self) -> int:
        return len(self.starts) - 1

    @cached_property
    def counts(self) -> Array:
        """The number of entries of each row, (n,)."""
        return np.diff(self.starts)

    @cached_property
    def row_of(self) -> Array:
        """The row of each entry."""
        return np.repeat(np.arange(len(self)), self.counts)

    @cached_property
    def csr(self) -> Any:
        """The same as scipy's."""
        from scipy.sparse import csr_array

        return csr_array((self.values, self.columns, self.starts), shape=self.shape, copy=False)

    def __getitem__(self, rows: slice | Array) -> SparseRows:
        """Some rows, by a slice, their numbers or a mask."""
        if isinstance(rows, slice):
            first, stop, _ = rows.indices(len(self))
            starts = self.starts[first : max(first, stop) + 1]
            entries = slice(starts[0], starts[-1])
            return SparseRows(self.values[entries], self.columns[entries], starts - starts[0], self.width)
        part = self.csr[rows]
        return SparseRows(part.data, part.indices, part.indptr, self.width)

    def dense(self, out: Floats | None = None) -> Floats:
        """The matrix with its zeros; into `out` (n, width; C order) if there is one."""
        if out is None:
            out = np.zeros(self.shape, self.dtype)
        else:
            out[...] = 0.0
        out[self.row_of, self.columns] = self.values
        return out


Rows = Floats | SparseRows


def dense(X: Rows) -> Floats:
    """Rows of either form with their zeros."""
    return X.dense() if isinstance(X, SparseRows) else X


def is_feature_major(tile: Floats) -> bool:
    """Return True if the entries of a column lie together."""
    return tile.strides[0] < tile.strides[1]


def runs(tile: Floats, feature_major: bool) -> tuple[int, int, int]:
    """Return the number of rows, or of columns if `feature_major`, their length and the step between them, in numbers.

    The order is a parameter because the strides of a tile with one row or one column tell nothing.
    """
    outer = int(feature_major)
    return tile.shape[outer], tile.shape[1 - outer], tile.strides[outer] // tile.itemsize


def shaped(flat: Array, shape: tuple[int, ...], feature_major: bool) -> Array:
    """The beginning of a flat buffer in that shape and memory order."""
    rows, columns = shape
    piece = flat[: rows * columns]
    return piece.reshape(columns, rows).T if feature_major else piece.reshape(rows, columns)
