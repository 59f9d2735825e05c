"""Writer of JSON lines: an object for each row (RFC 8259). JSON has no NaN and no infinity: both become null."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from kafeat.io.writers.arrow_columns import columns_of, nulls_of
from kafeat.io.writers.base import Layout, Writer
from kafeat.io.writers.byte_output import TextOutput
from kafeat.io.writers.csv import ROWS, TEXT
from kafeat.types import Floats, Mask


class JsonlWriter(Writer):
    """A writer of one object for each row. Every number has the shortest form that reads back to the same value."""

    order = "F"

    def __init__(self, location: str, path: str, layout: Layout) -> None:
        super().__init__(layout)
        one = layout.list_name if layout.layout == "list" else None
        self._spelling = Spelling(layout.passthrough_names, layout.names, one)
        self._out = TextOutput(location, path, layout.compression, "JSON lines")

    def _write(self, block: Floats, passthrough: pa.Table | None, good: Mask | None) -> None:
        block = block if good is None else block[good]
        features = columns_of(block, nulls_of(block) if self.layout.nullable else None)
        for text in self._spelling.lines([] if passthrough is None else passthrough.columns, features):
            self._out.write(text)

    def _end(self) -> None:
        self._out.end()

    def close(self) -> None:
        self._out.close()


_NULL, _NOTHING, _QUOTE = (pa.scalar(text, TEXT) for text in ("null", "", '"'))


class Spelling:
    """Formats rows as objects, with the keys `passthrough`, then `names`, or `one` for all features as one array."""

    def __init__(self, passthrough: Sequence[str], names: Sequence[str], one: str | None) -> None:
        keys = [_key(name, first=i == 0) for i, name in enumerate([*passthrough, *([] if one else names)])]
        self._keys = [pa.scalar(key, TEXT) for key in keys]
        self._one = None if one is None else pa.scalar(_key(one, first=not passthrough), TEXT)

    def lines(
        self, passthrough: Sequence[pa.ChunkedArray], numbers: Sequence[pa.Array]
    ) -> Iterator[pa.Buffer]:
        """Yield the text of the rows, some rows at a time."""
        for start in range(0, len(numbers[0]), ROWS):
            values = [_values(_one(column.slice(start, ROWS))) for column in passthrough]
            values += self._features([column.slice(start, ROWS) for column in numbers])
            keys = self._keys if self._one is None else [*self._keys, self._one]
            parts = [part for pair in zip(keys, values, strict=True) for part in pair]
            # The memory of the array of lines is the text.
            lines = pc.binary_join_element_wise(*parts, pa.scalar("}\n", TEXT), _NOTHING)
            yield lines.buffers()[2].slice(0, pc.sum(pc.binary_length(lines)).as_py())

    def _features(self, numbers: Sequence[pa.Array]) -> list[pa.Array]:
        digits = [_finite(column) for column in numbers]
        if self._one is None:
            return digits
        inner = pc.binary_join_element_wise(*digits, pa.scalar(",", TEXT))
        row = pc.binary_join_element_wise(pa.scalar("[", TEXT), inner, pa.scalar("]", TEXT), _NOTHING)
        # A row has all of its features, or none.
        return [pc.if_else(numbers[0].is_null(), _NULL, row) if numbers[0].null_count else row]


def _one(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)


def _key(name: str, first: bool) -> str:
    return f"{'{' if first else ','}{json.dumps(name, ensure_ascii=False)}:"


def _finite(numbers: pa.Array) -> pa.Array:
    """Return the text of numbers that are finite or null."""
    if pa.types.is_float16(numbers.type):  # Arrow cannot format float16, and float32 holds the same value
        numbers = numbers.cast(pa.float32())
    text = numbers.cast(TEXT)
    return pc.fill_null(text, _NULL) if numbers.null_count else text


def _values(values: pa.Array) -> pa.Array:
    """Return an array of plain values as JSON."""
    if isinstance(values, pa.ExtensionArray):
        return _values(values.storage)
    kind = values.type
    if pa.types.is_floating(kind):
        wide = values.cast(pa.float32()) if pa.types.is_float16(kind) else values
        return _finite(pc.if_else(pc.is_finite(wide), wide, None))
    text = values.cast(TEXT)
    if not (pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_decimal(kind)):
        text = _in_quotes(text)
    return pc.fill_null(text, _NULL)


def _in_quotes(text: pa.Array) -> pa.Array:
    if pc.any(pc.match_substring_regex(text, '[\\x00-\\x1f"\\\\]')).as_py():
        return pa.array(
            [None if value is None else json.dumps(value, ensure_ascii=False) for value in text.to_pylist()],
            TEXT,
        )
    return pc.binary_join_element_wise(_QUOTE, text, _QUOTE, _NOTHING)
