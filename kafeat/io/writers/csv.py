"""Writer of CSV files and standard output.

RFC 4180: only a value that holds the delimiter, a quote, CR or LF is quoted, whatever its neighbours hold. Both a null
and an empty text become an empty field.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from kafeat.errors import UsageError
from kafeat.io.writers.arrow_columns import columns_of, nulls_of
from kafeat.io.writers.base import Layout, Writer
from kafeat.io.writers.byte_output import TextOutput
from kafeat.types import Floats, Mask


class CsvWriter(Writer):
    """A writer of one line for each row. Every number has the shortest form that reads back to the same value."""

    order = "F"

    def __init__(self, location: str, path: str, layout: Layout) -> None:
        super().__init__(layout)
        if layout.layout != "columns":
            raise UsageError(
                f"{location}: expected the columns layout for CSV, got {layout.layout}; Parquet, Arrow and JSON lines "
                "hold lists"
            )
        self._out = TextOutput(location, path, layout.compression, "CSV")

    def begin(self) -> None:
        names = [*self.layout.passthrough_names, *self.layout.names]
        self._out.write(header(names, self.layout.delimiter))

    def _write(self, block: Floats, passthrough: pa.Table | None, good: Mask | None) -> None:
        block = block if good is None else block[good]
        features = columns_of(block, nulls_of(block) if self.layout.nullable else None)
        for text in lines(
            [] if passthrough is None else passthrough.columns, features, self.layout.delimiter
        ):
            self._out.write(text)

    def _end(self) -> None:
        self._out.end()

    def close(self) -> None:
        self._out.close()


TEXT = pa.large_string()
ROWS = 1024
"""Rows that are formatted at a time."""


def lines(
    passthrough: Sequence[pa.ChunkedArray], numbers: Sequence[pa.Array], delimiter: str
) -> Iterator[pa.Buffer]:
    """Yield the text of the rows, some rows at a time. `numbers` need no quotes.

    A null is an empty field. In a single column it is quoted: many readers skip blank lines.
    """
    rows = len(numbers[0])
    null = "" if len(passthrough) + len(numbers) > 1 else '""'
    for start in range(0, rows, ROWS):
        columns = [quoted(_one_array(column.slice(start, ROWS)), delimiter) for column in passthrough]
        columns += [_digits(column.slice(start, ROWS), null) for column in numbers]
        yield _joined(columns, delimiter)


def header(names: Iterable[str], delimiter: str) -> pa.Buffer:
    """Return the header line."""
    return _joined([quoted(pa.array([name], TEXT), delimiter) for name in names], delimiter)


def quoted(values: pa.Array, delimiter: str) -> pa.Array:
    """Return the values as text, quoted if necessary. Nulls are empty."""
    text = pc.fill_null(values.cast(TEXT), "")
    needy = pc.match_substring(text, delimiter)
    for mark in ('"', "\n", "\r"):
        needy = pc.or_(needy, pc.match_substring(text, mark))
    if not pc.any(needy).as_py():
        return text
    quote = pa.scalar('"', TEXT)
    inner = pc.replace_substring(text, '"', '""')
    return pc.if_else(needy, pc.binary_join_element_wise(quote, inner, quote, pa.scalar("", TEXT)), text)


def _digits(numbers: pa.Array, null: str) -> pa.Array:
    if numbers.type == pa.float16():  # Arrow cannot format float16, and float32 holds the same value
        numbers = numbers.cast(pa.float32())
    text = numbers.cast(TEXT)
    return pc.fill_null(text, null) if numbers.null_count else text


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    return pa.chunked_array([chunk.cast(TEXT) for chunk in column.chunks], TEXT).combine_chunks()


def _joined(columns: Sequence[pa.Array], delimiter: str) -> pa.Buffer:
    """Join columns to lines, one for each row. The memory of the array of lines is the text."""
    lines = pc.binary_join_element_wise(*columns, pa.scalar(delimiter, TEXT))
    lines = pc.binary_join_element_wise(lines, pa.scalar("", TEXT), pa.scalar("\n", TEXT))
    return lines.buffers()[2].slice(0, pc.sum(pc.binary_length(lines)).as_py())
