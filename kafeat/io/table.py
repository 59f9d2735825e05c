"""Chunks of Arrow tables, cut without copying from whatever pieces a format hands over."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from kafeat.errors import ValueRefused
from kafeat.io.columns import Column, Columns
from kafeat.io.finite import cast_finite, first_not_finite
from kafeat.io.numbers import lists_to_doubles, spell_problem, to_doubles
from kafeat.io.source import Chunk
from kafeat.types import Floats

Keeper = Callable[[pa.Table, int], pa.Table]


def cut(pieces: Iterable[pa.RecordBatch], height: int) -> Iterator[tuple[int, pa.Table]]:
    """Tables of `height` rows, the last shorter, each with the number of its first row."""
    start, waiting, rows = 0, [], 0
    for piece in pieces:
        if not piece.num_rows:
            continue
        waiting.append(piece)
        rows += piece.num_rows
        if rows < height:
            continue
        table = pa.Table.from_batches(waiting)
        whole = rows - rows % height
        for first in range(0, whole, height):
            yield start + first, table.slice(first, height)
        start, rows = start + whole, rows - whole
        waiting = table.slice(whole).to_batches() if rows else []
    if rows:
        yield start, pa.Table.from_batches(waiting)


class TableChunk(Chunk):
    """A chunk whose feature columns come first in `table`, in the order of `columns`."""

    def __init__(
        self, place: str, start: int, table: pa.Table, columns: Columns, keeper: Keeper | None
    ) -> None:
        super().__init__(place, start, table.num_rows)
        self._table, self._columns, self._keeper = table, columns, keeper

    @cached_property
    def kept(self) -> pa.Table | None:
        return None if self._keeper is None else self._keeper(self._table, self.start)

    def matrix(self, dtype: np.dtype[Any]) -> Floats:
        # A single list column is row-major in Arrow; scalar columns are feature-major.
        lists = len(self._columns.features) == 1 and self._columns.features[0].width is not None
        out = np.empty((self.rows, self._columns.n_features), dtype, order="C" if lists else "F")
        finite, at = True, 0
        for index, column in enumerate(self._columns.features):
            finite &= self._read(index, column, out[:, at : at + column.n_features])
            at += column.n_features
        if not finite:
            raise self._refusal(out, dtype)
        return out

    def _read(self, index: int, column: Column, out: Floats) -> bool:
        finite, row = True, 0
        for piece in self._table.column(index).chunks:
            below = row + len(piece)
            if column.width is None:
                finite &= cast_finite(to_doubles(piece), out[row:below, 0])
            else:
                finite &= cast_finite(lists_to_doubles(piece, column.width), out[row:below])
            row = below
        return finite

    def _refusal(self, out: Floats, dtype: np.dtype[Any]) -> Exception:
        row, feature = first_not_finite(out)
        index, element = 0, feature
        while element >= self._columns.features[index].n_features:
            element -= self._columns.features[index].n_features
            index += 1
        value = self._table.column(index)[row].as_py()
        problem = spell_problem(value, self._columns.features[index].width, element, dtype)
        return ValueRefused(self.start + row, feature, problem).located(self.place, self._columns.names)
