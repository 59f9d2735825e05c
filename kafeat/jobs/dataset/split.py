"""Cut one big input into parts at the borders of chunks, so that the bytes of every row stay the same."""

from __future__ import annotations

from kafeat.errors import UsageError
from kafeat.io.storage.data_set import Part, stem
from kafeat.io.storage.formats import OUTPUTS, format_of
from kafeat.io.storage.locations import entry_of
from kafeat.io.storage.uri import name_of
from kafeat.io.writers.options import OutputOptions
from kafeat.jobs.transform.options import InputOptions


def ranges(
    source: str, reading: InputOptions, writing: OutputOptions, chunk_rows: int, rows: int
) -> list[Part] | None:
    """Return parts of whole chunks and at most `rows` rows; None if the input must be read from its first row."""
    if rows < chunk_rows:
        raise UsageError(
            f"--rows-per-file: expected at least {chunk_rows:,}, the height of the map's chunks, got {rows:,}"
        )
    entry = None if source == "-" else entry_of(source)
    if entry is None:
        return None
    with reading.open(source, entry.stamp) as opened:
        if opened.rows is None or not opened.seekable:
            return None
        height = rows - rows % chunk_rows
        starts = range(0, max(1, opened.rows), height)
        return [
            Part(
                name_of_part(source, reading, writing, i, len(starts)),
                source,
                entry.bytes,
                entry.stamp,
                (start, min(start + height, opened.rows)),
            )
            for i, start in enumerate(starts)
        ]


def name_of_part(source: str, reading: InputOptions, writing: OutputOptions, number: int, parts: int) -> str:
    """Return the name of an output part by its number; `parts` is their total, for the number of digits."""
    own = format_of(source, reading.format)
    own = own if own in OUTPUTS else "parquet"
    base = "part" if source == "-" else stem(name_of(source))
    return f"{base}-{number:0{max(5, len(str(parts)))}d}.{writing.format or own}"
