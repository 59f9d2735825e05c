"""The bad rows of a transform, as a CSV beside its output."""

from __future__ import annotations

import csv
from typing import IO, Any

from kafeat.io.columns.columns import Columns
from kafeat.runtime.run import Done

_OWN_COLUMNS = ("row", "column", "problem", "text")


class Rejects:
    """A CSV with a line for each bad row: its number (from 1), the column and the problem, then its cells.

    A row with too few or too many fields has no cells; the column `text` holds its line. An input column with one of
    these names gets the prefix `input.`.
    """

    def __init__(self, file: IO[str], columns: Columns, keep: list[str]) -> None:
        self._writer = csv.writer(file, lineterminator="\n")
        self._names = columns.names
        cells = [column.name for column in columns.features]
        self._kept = [name for name in keep if name not in cells]
        self._width = len(cells) + len(self._kept)
        self._writer.writerow(
            [*_OWN_COLUMNS, *(f"input.{n}" if n in _OWN_COLUMNS else n for n in (*cells, *self._kept))]
        )

    def add(self, done: Done) -> None:
        """Write the bad rows of a chunk."""
        chunk = done.chunk
        for refused in done.bad_rows:
            column = refused.named(self._names)
            start = [chunk.start + refused.row + 1, "" if column is None else column, refused.problem]
            text = chunk.broken_text(refused.row)
            if text is not None:
                self._writer.writerow([*start, text, *[""] * self._width])
                continue
            cells = chunk.cells(refused.row)
            cells += (
                [chunk.passthrough.column(name)[refused.row].as_py() for name in self._kept]
                if chunk.passthrough
                else []
            )
            self._writer.writerow([*start, "", *map(_text, cells)])


def rejects_name(part: str) -> str:
    """Return the name for the rejects of a part. It has the suffix too, as a.csv and a.parquet may both be parts."""
    return f"{part}.csv"


def _text(value: Any) -> str:
    return "" if value is None else str(value)
