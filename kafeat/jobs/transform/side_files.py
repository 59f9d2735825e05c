"""Files beside the output of a transform: the statistics as JSON, and the bad rows as CSV."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any

from kafeat.io.columns.columns import Columns
from kafeat.io.storage.atomic import beside
from kafeat.io.storage.base import Location
from kafeat.io.writers.options import OutputOptions
from kafeat.runtime.threads import TransformedChunk


@contextmanager
def open_stats(place: Location | None, fsync: bool) -> Iterator[Callable[[dict[str, Any]], None]]:
    """Open the file of the statistics, and yield a function that writes them; without a place it does nothing.

    The file is opened before the work begins, so that a path that cannot be written to is reported at once. It appears
    when the block ends without an error.
    """
    if place is None:
        yield lambda _content: None
        return
    with beside(place, fsync) as file:

        def write(content: dict[str, Any]) -> None:
            json.dump(content, file, indent=2, ensure_ascii=False)
            file.write("\n")

        yield write


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

    def add(self, done: TransformedChunk) -> None:
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


@contextmanager
def open_rejects(
    place: Location | None, columns: Columns, keep: list[str], writing: OutputOptions
) -> Iterator[Rejects | None]:
    """Open a CSV of rejects, which appears when the block ends without an error; without a place, yield None."""
    if place is None:
        yield None
        return
    with beside(place, writing.fsync, sweep=writing.sweep, guard=writing.guard) as file:
        yield Rejects(file, columns, keep)


def _text(value: Any) -> str:
    return "" if value is None else str(value)
