"""Writer of CSV files and standard output.

RFC 4180: only a value that holds the delimiter, a quote, CR or LF is quoted, whatever its neighbours hold. Both a null
and an empty text become an empty field.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from kafeat.io.columns.values import TEXT, as_text
from kafeat.io.writers.text import LineWriter, memory_of


class CsvWriter(LineWriter):
    """A writer of one line for each row. Every number has the shortest form that reads back to the same value."""

    def begin(self) -> None:
        names = [*self.layout.passthrough_names, *self.layout.names]
        delimiter = self.layout.delimiter
        self.put(memory_of(_joined([quoted(pa.array([name], TEXT), delimiter) for name in names], delimiter)))

    def _lines(self, passthrough: Sequence[pa.Array], features: Sequence[pa.Array]) -> pa.Array:
        # A null is an empty field. In a single column it is quoted, as many readers skip blank lines.
        null = "" if len(passthrough) + len(features) > 1 else '""'
        columns = [quoted(as_text(column), self.layout.delimiter) for column in passthrough]
        return _joined([*columns, *(as_text(column, null) for column in features)], self.layout.delimiter)


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


def _joined(columns: Sequence[pa.Array], delimiter: str) -> pa.Array:
    """Join columns to lines, one for each row."""
    lines = pc.binary_join_element_wise(*columns, pa.scalar(delimiter, TEXT))
    return pc.binary_join_element_wise(lines, pa.scalar("", TEXT), pa.scalar("\n", TEXT))
