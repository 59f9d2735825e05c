"""Chunks of sparse rows: one list column `features`, stored as its entries that are not zero."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from kafeat.contract.tile import Rows, SparseRows
from kafeat.errors import InvalidValueError, UsageError
from kafeat.io.columns.columns import Columns
from kafeat.io.columns.fields import Field
from kafeat.io.columns.numbers import spell_problem
from kafeat.io.readers.base import Chunk
from kafeat.types import Array

FEATURES = "features"


@dataclass(frozen=True, eq=False)
class Entries:
    """Rows as read. `columns` count from 0 and ascend in each row; `broken` maps invalid rows to problem and text."""

    values: npt.NDArray[np.float64]
    columns: Array
    starts: Array
    broken: dict[int, tuple[str, str]] = field(default_factory=dict)


def features_field(width: int | None, spelled: str) -> Field:
    """Return the field that holds all features."""
    return Field(FEATURES, "list", width, spelled)


class SparseChunk(Chunk):
    """Some sparse rows. Their width is that of the columns, and a wider row is invalid."""

    def __init__(self, location: str, start: int, rows: int, columns: Columns, first: int = 1) -> None:
        super().__init__(location, start, rows, columns)
        self._first = first
        """The number of the first column in the format."""

    @abstractmethod
    def read(self) -> Entries:
        """Return the entries. Called once."""

    @cached_property
    def entries(self) -> Entries:
        """The entries of the rows within the width, and the problems of the other rows."""
        entries, width = self.read(), self.columns.n_features
        beyond = entries.columns >= width
        if not self.columns.features or not beyond.any():
            return entries
        row_of = np.repeat(np.arange(self.rows), np.diff(entries.starts))
        broken = dict(entries.broken)
        for row in np.unique(row_of[beyond]).tolist():
            last = int(entries.columns[entries.starts[row + 1] - 1]) + self._first
            problem = f"expected no index above {width - 1 + self._first}, the width of the map, got {last}"
            broken[row] = problem, self._spelled(entries, row)
        keep = ~np.isin(row_of, list(broken))
        counts = np.bincount(row_of[keep], minlength=self.rows)
        starts = np.concatenate([[0], np.cumsum(counts)])
        return Entries(entries.values[keep], entries.columns[keep], starts, broken)

    def decode(self, dtype: np.dtype[Any]) -> tuple[Rows, bool]:
        entries = self.entries
        with np.errstate(over="ignore", invalid="ignore"):
            values = entries.values.astype(dtype)
        X = SparseRows(values, entries.columns, entries.starts, self.columns.n_features)
        return X, not entries.broken and not self._bad(X).any()

    def _bad(self, X: SparseRows) -> Array:
        return np.isinf(X.values) if self.columns.missing else ~np.isfinite(X.values)

    def invalid_values(self, X: Rows) -> Iterator[InvalidValueError]:
        entries = self.entries
        if not isinstance(X, SparseRows):
            raise TypeError("expected what decode gave")
        bad = np.flatnonzero(self._bad(X))
        rows, first = np.unique(X.row_of[bad], return_index=True)
        entry_of = dict(zip(rows.tolist(), bad[first].tolist(), strict=True))
        for row in sorted({*entry_of, *entries.broken}):
            if row in entries.broken:
                yield InvalidValueError(row, None, entries.broken[row][0])
                continue
            entry = entry_of[row]
            problem = spell_problem(float(entries.values[entry]), None, 0, X.dtype)
            yield InvalidValueError(row, int(X.columns[entry]), problem)

    def cells(self, row: int) -> list[Any]:
        return [self._spelled(self.entries, row)] if self.columns.features else []

    def broken_text(self, row: int) -> str | None:
        broken = self.entries.broken.get(row)
        return None if broken is None else broken[1]

    def _spelled(self, entries: Entries, row: int) -> str:
        part = slice(entries.starts[row], entries.starts[row + 1])
        pairs = zip(entries.columns[part].tolist(), entries.values[part].tolist(), strict=True)
        return " ".join(f"{column + self._first}:{value!r}" for column, value in pairs)


def refuse_to_copy(location: str, names: list[str]) -> None:
    """Refuse sparse features as a passthrough column."""
    if FEATURES in names:
        raise UsageError(f"{location}: --keep: expected columns beside the sparse features, got {FEATURES}")
