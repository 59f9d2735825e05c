"""Writer of CSV files and standard output.

RFC 4180: only a value that holds the delimiter, a quote, CR or LF is quoted, whatever its neighbours hold. Both a null
and an empty text become an empty field.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from kafeat.io.columns.values import TEXT, as_text
from kafeat.io.writers.arrow_columns import columns_of, nulls_of
from kafeat.io.writers.text import ROWS, TextWriter, memory_of
from kafeat.types import Floats, Mask


class CsvWriter(TextWriter):
    """A writer of one line for each row. Every number has the shortest form that reads back to the same value."""

    order = "F"

    def begin(self) -> None:
        names = [*self.layout.passthrough_names, *self.layout.names]
        delimiter = self.layout.delimiter
        self.put(_joined([quoted(pa.array([name], TEXT), delimiter) for name in names], delimiter))

    def _write(self, block: Floats, passthrough: pa.Table | None, good: Mask | None) -> None:
        block = block if good is None else block[good]
        features = columns_of(block, nulls_of(block) if self.layout.nullable else None)
        kept = [] if passthrough is None else passthrough.columns
        # A null is an empty field. In a single column it is quoted, as many readers skip blank lines.
        null = "" if len(kept) + len(features) > 1 else '""'
        delimiter = self.layout.delimiter
        for start in range(0, len(block), ROWS):
            columns = [quoted(_one_array(column.slice(start, ROWS)), delimiter) for column in kept]
            columns += [as_text(column.slice(start, ROWS), null) for column in features]
            self.put(_joined(columns, delimiter))


def quoted(text: pa.Array, delimiter: str) -> pa.Array:
    """Return the values of a text column, quoted if necessary. Nulls are empty."""
    text = pc.fill_null(text, "")
    needy = pc.match_substring(text, delimiter)
    for mark in ('"', "\n", "\r"):
        needy = pc.or_(needy, pc.match_substring(text, mark))
    if not pc.any(needy).as_py():
        return text
    quote = pa.scalar('"', TEXT)
    inner = pc.replace_substring(text, '"', '""')
    return pc.if_else(needy, pc.binary_join_element_wise(quote, inner, quote, pa.scalar("", TEXT)), text)


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    return pa.chunked_array([as_text(chunk) for chunk in column.chunks], TEXT).combine_chunks()


def _joined(columns: Sequence[pa.Array], delimiter: str) -> pa.Buffer:
    """Join columns to lines, one for each row."""
    lines = pc.binary_join_element_wise(*columns, pa.scalar(delimiter, TEXT))
    return memory_of(pc.binary_join_element_wise(lines, pa.scalar("", TEXT), pa.scalar("\n", TEXT)))
