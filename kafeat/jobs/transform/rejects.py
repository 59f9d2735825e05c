"""The rows that were set aside, and why, as a CSV."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

from kafeat.io.columns.columns import Columns
from kafeat.io.storage.atomic import beside
from kafeat.jobs.transform.options import OutputOptions
from kafeat.runtime.threads import Transformed

_OURS = ("row", "column", "problem", "text")


class Rejects:
    """A line for each row: its number (from 1), the column and what is wrong, then its cells as they were read.

    A row of too few or too many fields has no cells: it is in the column `text` as it stood. An input column with the
    name of one of these stands as `input.` and that name.
    """

    def __init__(self, file: IO[str], columns: Columns, keep: list[str]) -> None:
        self._writer = csv.writer(file, lineterminator="\n")
        self._names = columns.names
        cells = [column.name for column in columns.features]
        self._kept = [name for name in keep if name not in cells]
        self._width = len(cells) + len(self._kept)
        self._writer.writerow([*_OURS, *(f"input.{n}" if n in _OURS else n for n in (*cells, *self._kept))])

    def add(self, done: Transformed) -> None:
        """The rows of a chunk."""
        chunk = done.chunk
        for refused in done.aside:
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
    """What the rejects of a part are called: by its whole name, as `a.csv` and `a.parquet` may both be parts."""
    return f"{part}.csv"


@contextmanager
def open_rejects(path: str, columns: Columns, keep: list[str], writing: OutputOptions) -> Iterator[Rejects]:
    """A file that appears when the block ends without an error."""
    with beside(path, writing.fsync, sweep=writing.sweep, guard=writing.guard) as file:
        yield Rejects(file, columns, keep)


def _text(value: Any) -> str:
    return "" if value is None else str(value)
