"""Blocks of rows (tiles): their memory order, sparse rows (CSR), and rows with texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from kafeat.contract.ngrams import BUCKETS, count_ngrams
from kafeat.types import Array, Floats


class SparseRows:
    """A sparse matrix (n, width) in CSR format: row i has `values[starts[i]:starts[i + 1]]` in `columns[...]`."""

    def __init__(self, values: Floats, columns: Array, starts: Array, width: int) -> None:
        self.values, self.columns, self.starts, self.width = values, columns, starts, width

    @classmethod
    def of(cls, X: Any) -> SparseRows:
        """Convert a dense matrix, a sparse matrix of SciPy or other sparse rows to sparse rows."""
        from scipy.sparse import csr_array

        csr = X.csr if isinstance(X, cls) else csr_array(X)
        return cls(csr.data, csr.indices, csr.indptr, csr.shape[1])

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
        """The number of rows and of columns, including columns that have no entries."""
        return len(self), self.width

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the entries."""
        return self.values.dtype

    def __len__(self) -> int:
        return len(self.starts) - 1

    @cached_property
    def counts(self) -> Array:
        """The number of entries of each row, (n,)."""
        return np.diff(self.starts)

    @cached_property
    def row_of(self) -> Array:
        """The row number of each entry, in the order of `values`."""
        return np.repeat(np.arange(len(self)), self.counts)

    @cached_property
    def csr(self) -> Any:
        """The same rows as a matrix of SciPy."""
        from scipy.sparse import csr_array

        return csr_array((self.values, self.columns, self.starts), shape=self.shape, copy=False)

    def __getitem__(self, rows: slice | Array) -> SparseRows:
        """Return some rows, by a slice, their numbers or a mask."""
        if isinstance(rows, slice):
            first, stop, _ = rows.indices(len(self))
            starts = self.starts[first : max(first, stop) + 1]
            entries = slice(starts[0], starts[-1])
            return SparseRows(self.values[entries], self.columns[entries], starts - starts[0], self.width)
        from scipy.sparse import csr_array

        # SciPy can select rows of uint16, but not of float16.
        values = self.values.view(np.uint16) if self.dtype == np.float16 else self.values
        part = csr_array((values, self.columns, self.starts), shape=self.shape, copy=False)[rows]
        return SparseRows(part.data.view(self.dtype), part.indices, part.indptr, self.width)

    def dense(self, out: Floats | None = None) -> Floats:
        """Return the rows as a dense matrix, in `out` (n, width; C order) if that is given."""
        if out is None:
            out = np.zeros(self.shape, self.dtype)
        else:
            out[...] = 0.0
        out[self.row_of, self.columns] = self.values
        return out


@dataclass(frozen=True, eq=False)
class TextRows:
    """Rows with columns of numbers and of text. Their features are numbers and counts of n-grams.

    The features at the positions `plain` (p,) are `numbers` (n, p). All other features are counts of the n-grams of
    `texts` (n, k). The counts of text column j begin at position starts[j]. Texts need less memory than counts, so the
    step that reads the texts counts the n-grams tile by tile.
    """

    numbers: Floats
    texts: Array
    plain: Array
    starts: Array

    @property
    def width(self) -> int:
        """The number of features, including those of texts."""
        return len(self.plain) + BUCKETS * len(self.starts)

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows and of features."""
        return len(self), self.width

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the numbers."""
        return self.numbers.dtype

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, rows: slice | Array) -> TextRows:
        """Return some rows, by a slice, their numbers or a mask."""
        return replace(self, numbers=self.numbers[rows], texts=self.texts[rows])

    def __setitem__(self, rows: Array, others: TextRows) -> None:
        self.numbers[rows], self.texts[rows] = others.numbers, others.texts

    def copy(self) -> TextRows:
        """Return a copy that shares no memory."""
        return replace(self, numbers=self.numbers.copy(), texts=self.texts.copy())

    def astype(self, dtype: Any) -> TextRows:
        """Return the same rows with numbers in `dtype`."""
        return replace(self, numbers=self.numbers.astype(dtype))

    def blank(self, rows: int) -> TextRows:
        """Return `rows` rows of the same features, to be filled."""
        numbers = np.empty((rows, len(self.plain)), self.dtype)
        return replace(self, numbers=numbers, texts=np.empty((rows, len(self.starts)), object))

    def columns(self, places: Array) -> Floats | TextRows:
        """Return the features at `places` (of each text column, all or none), as an array if there are no texts."""
        kept = np.isin(self.starts, places)
        numbers = self.numbers[:, np.searchsorted(self.plain, places[np.isin(places, self.plain)])]
        if not kept.any():
            return numbers
        starts = [int(np.flatnonzero(places == start)[0]) for start in self.starts[kept]]
        plain = np.flatnonzero(np.isin(places, self.plain))
        return TextRows(numbers, self.texts[:, kept], plain, np.array(starts))

    def counts(self, start: int) -> SparseRows:
        """Return the counts (n, BUCKETS) of the column of text whose features begin at `start`."""
        [column] = np.flatnonzero(self.starts == start)
        return SparseRows(*count_ngrams(self.texts[:, column].tolist()), BUCKETS)

    def dense(self, out: Floats | None = None) -> Floats:
        """Return the matrix of all features, in `out` (n, width) if that is given."""
        out = np.empty(self.shape, self.dtype) if out is None else out
        out[:, self.plain] = self.numbers
        for start in self.starts:
            out[:, start : start + BUCKETS] = self.counts(start).dense()
        return out


Rows = Floats | SparseRows
InputRows = Rows | TextRows


def dense(X: InputRows) -> Floats:
    """Return dense, sparse or text rows as a dense matrix."""
    return X if isinstance(X, np.ndarray) else X.dense()


def numbers_of(X: InputRows) -> Floats:
    """Return the features of rows, dense, without those of text columns."""
    return X.numbers if isinstance(X, TextRows) else dense(X)


def columns_of(X: Any, places: Array) -> Any:
    """Return the features at `places`. A column of text must be selected as a whole or not at all."""
    return X.columns(places) if isinstance(X, TextRows) else X[:, places]


def stacked(parts: Sequence[InputRows]) -> InputRows:
    """Stack blocks of rows, which are all dense, all sparse or all with texts."""
    first, every = parts[0], list[Any](parts)
    if isinstance(first, SparseRows):
        return SparseRows.stacked(every, first.width, first.dtype)
    if isinstance(first, TextRows):
        numbers, texts = (
            np.concatenate([getattr(one, name) for one in every]) for name in ("numbers", "texts")
        )
        return replace(first, numbers=numbers, texts=texts)
    return np.concatenate(every)


def contiguous(X: Any) -> Any:
    """Return an array in C order. Return sparse rows and rows with texts unchanged."""
    return X if isinstance(X, TextRows | SparseRows) else np.ascontiguousarray(X)


def is_feature_major(tile: Floats) -> bool:
    """Return True if the entries of a column are adjacent in memory."""
    return tile.strides[0] < tile.strides[1]


def runs(tile: Floats, feature_major: bool) -> tuple[int, int, int]:
    """Return the number, length and stride (counted in numbers) of rows, or of columns if `feature_major`.
    The order is a parameter because the strides of a tile with one row or one column do not show it.
    """
    outer = int(feature_major)
    return tile.shape[outer], tile.shape[1 - outer], tile.strides[outer] // tile.itemsize


def shaped(flat: Array, shape: tuple[int, ...], feature_major: bool) -> Array:
    """Return a view of the beginning of a flat buffer with this shape and memory order."""
    rows, columns = shape
    piece = flat[: rows * columns]
    return piece.reshape(columns, rows).T if feature_major else piece.reshape(rows, columns)
