"""Write CSV and JSON lines, compressed or not, to a file or to standard output.

In CSV (RFC 4180), a value is quoted only if it contains the delimiter, a quote, CR or LF. Null and an empty text both
become an empty field. JSON lines have an object for each row (RFC 8259). JSON has neither NaN nor infinity, so both
become null.
"""

from __future__ import annotations

import io
import json
from abc import abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kafeat.io.columns.values import TEXT, as_text, widened
from kafeat.io.formats import PACKINGS
from kafeat.io.storage.atomic import AtomicFile
from kafeat.io.storage.files import standard_stream, write_full
from kafeat.io.writers.arrow_columns import columns_of, nulls_of
from kafeat.io.writers.base import Layout, Writer
from kafeat.types import Floats, Mask

ROWS = 1024
"""Number of rows to format at a time."""


class ByteOutput(io.RawIOBase):
    """A file that writes all bytes or fails.

    Once `discarding` is set, it ignores further bytes. After a failure, a compressor still writes the end of its data,
    and would print a second error if this write failed.
    """

    def __init__(self, path: str) -> None:
        self._file, self.discarding = standard_stream(1) if path == "-" else io.FileIO(path, "wb"), False

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        if not self.discarding:
            write_full(self._file, data)
        return len(data)

    def close(self) -> None:
        # A compressor closes this file before it is complete, so closing has no effect until `discarding` is set.
        if self.discarding:
            self._file.close()
            super().close()


class TextWriter(Writer):
    """A writer of text, compressed according to the suffix or the option. Subclasses `put` the text of rows."""

    def __init__(self, location: str, file: AtomicFile, layout: Layout) -> None:
        super().__init__(location, file, layout)
        suffix = f".{location.lower().rpartition('.')[2]}"
        packing = layout.compression or PACKINGS.get(suffix, "none")
        self._file = ByteOutput(file.path)
        self._packed = (
            None
            if packing == "none"
            else pa.CompressedOutputStream(pa.PythonFile(self._file, mode="w"), packing)
        )

    def put(self, text: pa.Buffer) -> None:
        (self._file if self._packed is None else self._packed).write(text)

    def _end(self) -> None:
        if self._packed is not None:
            self._packed.close()

    def close(self) -> None:
        self._file.discarding = True
        if self._packed is not None:
            with suppress(pa.ArrowException, OSError):
                self._packed.close()
        self._file.close()


class LineWriter(TextWriter):
    """A writer of one line for each row. A subclass makes the lines of up to `ROWS` rows from their columns."""

    wants = "F"

    @abstractmethod
    def _lines(self, passthrough: Sequence[pa.Array], features: Sequence[pa.Array]) -> pa.Array:
        """Return an array of text with one line for each row, including its line end."""

    def _write(self, block: Floats, passthrough: pa.Table | None, good: Mask | None) -> None:
        block = block if good is None else block[good]
        features = columns_of(block, nulls_of(block, self.layout))
        kept = [] if passthrough is None else passthrough.columns
        for start in range(0, len(block), ROWS):
            lines = self._lines(
                [_one_array(column.slice(start, ROWS)) for column in kept],
                [column.slice(start, ROWS) for column in features],
            )
            self.put(memory_of(lines))


def _scalar(text: str) -> pa.Scalar:
    """Return a text as a scalar of Arrow. Do not call this on import, because Arrow then imports pandas."""
    return pa.scalar(text, TEXT)


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)


def memory_of(lines: pa.Array) -> pa.Buffer:
    """Return the concatenated text of an array of lines, without a copy."""
    return lines.buffers()[2].slice(0, pc.sum(pc.binary_length(lines)).as_py())


class CsvWriter(LineWriter):
    """A writer of one line for each row. Every number has the shortest form that reads back to the same value."""

    def begin(self) -> None:
        names = [*self.layout.passthrough_names, *self.layout.names]
        delimiter = self.layout.delimiter
        self.put(memory_of(_joined([quoted(pa.array([name], TEXT), delimiter) for name in names], delimiter)))

    def _lines(self, passthrough: Sequence[pa.Array], features: Sequence[pa.Array]) -> pa.Array:
        # Null is an empty field. In a single column it is quoted, because many readers skip blank lines.
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
    quote = _scalar('"')
    inner = pc.replace_substring(text, '"', '""')
    return pc.if_else(needy, pc.binary_join_element_wise(quote, inner, quote, _scalar("")), text)


def _joined(columns: Sequence[pa.Array], delimiter: str) -> pa.Array:
    lines = pc.binary_join_element_wise(*columns, _scalar(delimiter))
    return pc.binary_join_element_wise(lines, _scalar(""), _scalar("\n"))


class JsonlWriter(LineWriter):
    """A writer of one object for each row. Every number has the shortest form that reads back to the same value.

    The keys are the passthrough columns, then the features, or one key with an array of all features.
    """

    def __init__(self, location: str, file: AtomicFile, layout: Layout) -> None:
        super().__init__(location, file, layout)
        self._lists = layout.list_name is not None
        features = layout.names if layout.list_name is None else [layout.list_name]
        names = [json.dumps(name, ensure_ascii=False) for name in (*layout.passthrough_names, *features)]
        self._keys = [_scalar(f"{',' if i else '{'}{name}:") for i, name in enumerate(names)]

    def _lines(self, passthrough: Sequence[pa.Array], features: Sequence[pa.Array]) -> pa.Array:
        values = [*map(_values, passthrough), *self._features(features)]
        parts = [part for pair in zip(self._keys, values, strict=True) for part in pair]
        return pc.binary_join_element_wise(*parts, _scalar("}\n"), _scalar(""))

    def _features(self, numbers: Sequence[pa.Array]) -> list[pa.Array]:
        digits = [as_text(column, _scalar("null")) for column in numbers]
        if not self._lists:
            return digits
        inner = pc.binary_join_element_wise(*digits, _scalar(","))
        row = pc.binary_join_element_wise(_scalar("["), inner, _scalar("]"), _scalar(""))
        # A row has all its features, or none.
        return [pc.if_else(numbers[0].is_null(), _scalar("null"), row) if numbers[0].null_count else row]


def _values(values: pa.Array) -> pa.Array:
    """Return an array of JSON texts, one for each value: numbers as they are, other values in quotes, null for NaN."""
    if isinstance(values, pa.ExtensionArray):
        return _values(values.storage)
    values = widened(values)
    kind = values.type
    if pa.types.is_floating(kind):
        values = pc.if_else(pc.is_finite(values), values, None)
    plain = pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind)
    if plain or pa.types.is_decimal(kind):
        return as_text(values, _scalar("null"))
    return pc.fill_null(_in_quotes(as_text(values)), _scalar("null"))


def _in_quotes(text: pa.Array) -> pa.Array:
    if pc.any(pc.match_substring_regex(text, '[\\x00-\\x1f"\\\\]')).as_py():
        return pa.array(
            [None if value is None else json.dumps(value, ensure_ascii=False) for value in text.to_pylist()],
            TEXT,
        )
    return pc.binary_join_element_wise(_scalar('"'), text, _scalar('"'), _scalar(""))
