"""Writer of JSON lines: an object for each row (RFC 8259). JSON has no NaN and no infinity: both become null."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from kafeat.io.columns.values import TEXT, as_text, widened
from kafeat.io.storage.atomic import AtomicFile
from kafeat.io.writers.base import Layout
from kafeat.io.writers.text import LineWriter

_NULL, _NOTHING, _QUOTE = (pa.scalar(text, TEXT) for text in ("null", "", '"'))


class JsonlWriter(LineWriter):
    """A writer of one object for each row. Every number has the shortest form that reads back to the same value.

    Its keys are the passthrough columns, then the features, or one key for all features as one array.
    """

    def __init__(self, location: str, file: AtomicFile, layout: Layout) -> None:
        super().__init__(location, file, layout)
        self._lists = layout.options.layout == "list"
        features = [layout.options.list_name] if self._lists else layout.names
        names = [json.dumps(name, ensure_ascii=False) for name in (*layout.passthrough_names, *features)]
        self._keys = [pa.scalar(f"{',' if i else '{'}{name}:", TEXT) for i, name in enumerate(names)]

    def _lines(self, passthrough: Sequence[pa.Array], features: Sequence[pa.Array]) -> pa.Array:
        values = [*map(_values, passthrough), *self._features(features)]
        parts = [part for pair in zip(self._keys, values, strict=True) for part in pair]
        return pc.binary_join_element_wise(*parts, pa.scalar("}\n", TEXT), _NOTHING)

    def _features(self, numbers: Sequence[pa.Array]) -> list[pa.Array]:
        digits = [as_text(column, _NULL) for column in numbers]
        if not self._lists:
            return digits
        inner = pc.binary_join_element_wise(*digits, pa.scalar(",", TEXT))
        row = pc.binary_join_element_wise(pa.scalar("[", TEXT), inner, pa.scalar("]", TEXT), _NOTHING)
        # A row has all of its features, or none.
        return [pc.if_else(numbers[0].is_null(), _NULL, row) if numbers[0].null_count else row]


def _values(values: pa.Array) -> pa.Array:
    """Return an array of plain values as JSON."""
    if isinstance(values, pa.ExtensionArray):
        return _values(values.storage)
    values = widened(values)
    kind = values.type
    if pa.types.is_floating(kind):
        values = pc.if_else(pc.is_finite(values), values, None)
    plain = pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind)
    if plain or pa.types.is_decimal(kind):
        return as_text(values, _NULL)
    return pc.fill_null(_in_quotes(as_text(values)), _NULL)


def _in_quotes(text: pa.Array) -> pa.Array:
    if pc.any(pc.match_substring_regex(text, '[\\x00-\\x1f"\\\\]')).as_py():
        return pa.array(
            [None if value is None else json.dumps(value, ensure_ascii=False) for value in text.to_pylist()],
            TEXT,
        )
    return pc.binary_join_element_wise(_QUOTE, text, _QUOTE, _NOTHING)
