"""Passthrough columns, converted to types that a format can hold. Other types are refused before writing."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from kafeat.errors import InvalidValueError, UsageError, quoted
from kafeat.io.columns.numbers import is_text, storage_of
from kafeat.types import Mask

NAMES = {"csv": "CSV", "jsonl": "JSON lines", "arrow": "Arrow", "parquet": "Parquet"}
_EXPECTED = {"csv": "of plain values", "jsonl": "that JSON can spell"}


class PassthroughColumns:
    """The passthrough columns of an output. `schema` is their schema as written."""

    def __init__(self, location: str, format: str, schema: pa.Schema) -> None:
        self._format = format
        held: dict[pa.DataType, bool] = {}
        for field in schema:
            if field.type not in held:
                held[field.type] = _held(format, field.type)
            if not held[field.type]:
                raise UsageError(
                    f"{location}: column {quoted(field.name)}: expected a passthrough column "
                    f"{_EXPECTED.get(format, f'that {NAMES[format]} can hold')}, got {field.type}; {_remedy(format)}"
                )
        self.schema = pa.schema(
            [f.with_type(written(f.type, format)) for f in schema], metadata=schema.metadata
        )
        self._timed = [field.name for field in schema if is_timed(field.type, format)]

    def table(self, passthrough: pa.Table, good: Mask | None = None) -> pa.Table:
        """Convert rows to the written types. Refuse a value of a good row that the format cannot hold."""
        for name in self._timed:
            self._check(name, passthrough.column(name), good)
        fields = [f.with_type(written(f.type, self._format)) for f in passthrough.schema]
        columns = [_as(column, f.type) for column, f in zip(passthrough.columns, fields, strict=True)]
        return pa.Table.from_arrays(columns, schema=pa.schema(fields, metadata=passthrough.schema.metadata))

    def _check(self, name: str, column: pa.ChunkedArray, good: Mask | None) -> None:
        if beyond(column, self._format) is None:
            return
        for row in range(len(column)) if good is None else map(int, np.flatnonzero(good)):
            value = beyond(column.slice(row, 1), self._format)
            if value is not None:
                raise InvalidValueError(
                    row,
                    name,
                    f"expected a {value.type} that {NAMES[self._format]} can hold, got {digits(value)}; "
                    f"{_remedy(self._format)}",
                )


def _remedy(format: str) -> str:
    others = [name for key, name in NAMES.items() if key != format and key != "csv"]
    return f"leave it out of --keep, or write {' or '.join(others[::-1])}"


def _as(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    return pa.chunked_array([plain(chunk, kind) for chunk in column.chunks], kind)


def _held(format: str, kind: pa.DataType) -> bool:
    """Return true if values of the type can be written. Arrow is tried with zero rows."""
    target = written(kind, format)
    try:
        column = _as(pa.chunked_array([pa.nulls(0, kind)], kind), target)
        if format == "csv":
            from kafeat.io.writers.csv import spelled
        elif format == "jsonl":
            from kafeat.io.writers.jsonl import spelled
        elif format == "parquet":
            import pyarrow.parquet as pq

            pq.write_table(pa.table({"k": column}), pa.BufferOutputStream())
            return True
        else:
            column.take(pa.array([], pa.int64()))
            return True
        return bool(spelled(target))
    except (pa.ArrowException, NotImplementedError, OSError):
        return False


def written(kind: pa.DataType, format: str) -> pa.DataType:
    """Return the type in which values of a type are written."""
    if format == "parquet" and pa.types.is_dictionary(kind) and is_text(kind):
        return pa.dictionary(kind.index_type, written(kind.value_type, "arrow"), kind.ordered)
    if pa.types.is_run_end_encoded(kind) or pa.types.is_dictionary(kind):
        return written(kind.value_type, format)
    if format != "parquet" and (pa.types.is_string_view(kind) or pa.types.is_binary_view(kind)):
        return pa.string() if pa.types.is_string_view(kind) else pa.binary()
    if not pa.types.is_nested(kind) or pa.types.is_union(kind) or pa.types.is_map(kind):
        return kind
    parts = [kind.field(i) for i in range(kind.num_fields)]
    parts = [part.with_type(written(part.type, "arrow")) for part in parts]
    if pa.types.is_struct(kind):
        return pa.struct(parts)
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(parts[0], kind.list_size)
    large = pa.types.is_large_list(kind) or pa.types.is_large_list_view(kind)
    return (pa.large_list if large else pa.list_)(parts[0])


def decoded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column as plain values."""
    kind = written(column.type, "arrow")
    return pa.chunked_array([plain(chunk, kind) for chunk in column.chunks], kind)


def plain(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Convert values to the type that `written` returns for them."""
    values_type = values.type
    if pa.types.is_dictionary(kind):
        return _coded(values, kind)
    if values_type == kind:
        return values
    if pa.types.is_run_end_encoded(values_type):
        import pyarrow.compute as pc

        return plain(pc.run_end_decode(values), kind)
    if pa.types.is_dictionary(values_type):
        words = plain(values.dictionary, kind)
        return pa.DictionaryArray.from_arrays(values.indices, words).dictionary_decode()
    mask = values.is_null() if values.null_count else None
    if pa.types.is_struct(values_type):
        parts = [plain(part, kind.field(i).type) for i, part in enumerate(values.flatten())]
        return pa.StructArray.from_arrays(parts, fields=[kind.field(i) for i in range(len(parts))], mask=mask)
    if pa.types.is_fixed_size_list(values_type):
        inner = values.values.slice(
            values.offset * values_type.list_size, len(values) * values_type.list_size
        )
        return pa.FixedSizeListArray.from_arrays(plain(inner, kind.value_type), type=kind, mask=mask)
    if pa.types.is_nested(values_type):
        return _list(values, kind, mask)
    return values.cast(kind)


def _coded(values: pa.DictionaryArray, kind: pa.DataType) -> pa.DictionaryArray:
    words, codes = plain(values.dictionary, kind.value_type), values.indices
    if words.null_count:  # nulls in the dictionary and in the indices: Parquet has only the latter
        missing = words.is_null().to_numpy(zero_copy_only=False)
        codes = pa.array(np.cumsum(~missing) - 1, kind.index_type, mask=missing).take(codes)
        words = words.drop_null()
    return pa.DictionaryArray.from_arrays(codes, words, ordered=kind.ordered)


def _list(values: pa.Array, kind: pa.DataType, mask: pa.Array | None) -> pa.Array:
    import pyarrow.compute as pc

    lengths = pc.fill_null(pc.list_value_length(values), 0).to_numpy(zero_copy_only=False)
    large = pa.types.is_large_list(kind)
    offsets = pa.array(np.append(0, np.cumsum(lengths)), pa.int64() if large else pa.int32())
    inner = plain(values.flatten(), kind.value_type)
    return (pa.LargeListArray if large else pa.ListArray).from_arrays(offsets, inner, type=kind, mask=mask)


_BEYOND = "<value out of range"
"""Prefix of Arrow's text of a time that it cannot format."""


def is_timed(kind: pa.DataType, format: str) -> bool:
    """Return true if a type has dates or times that the format may be unable to hold."""
    kind = storage_of(kind)
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return is_timed(kind.value_type, format)
    if pa.types.is_nested(kind):
        return any(is_timed(kind.field(i).type, format) for i in range(kind.num_fields))
    if format == "parquet":  # Parquet has neither times in seconds nor 64-bit dates
        return bool(pa.types.is_date64(kind) or (pa.types.is_timestamp(kind) and kind.unit == "s"))
    times = (pa.types.is_date, pa.types.is_time, pa.types.is_timestamp)
    return format in ("csv", "jsonl") and any(test(kind) for test in times)


def beyond(column: pa.ChunkedArray, format: str) -> pa.Scalar | None:
    """Return a date or time that the format cannot hold, or None."""
    import pyarrow.compute as pc

    for chunk in column.chunks:
        for leaf in _leaves(chunk):
            if is_timed(leaf.type, format):
                ends = pc.min_max(leaf)
                for end in (ends["min"], ends["max"]):
                    if end.is_valid and not _fits(end, format):
                        return end
    return None


def _leaves(values: pa.Array) -> Iterator[pa.Array]:
    """Yield the arrays of plain values in a nested array."""
    if isinstance(values, pa.ExtensionArray):
        yield from _leaves(values.storage)
    elif pa.types.is_dictionary(values.type):
        yield from _leaves(values.dictionary_decode())
    elif pa.types.is_run_end_encoded(values.type):
        import pyarrow.compute as pc

        yield from _leaves(pc.run_end_decode(values))
    elif pa.types.is_struct(values.type):
        for part in values.flatten():
            yield from _leaves(part)
    elif pa.types.is_map(values.type):
        pairs = pa.StructArray.from_arrays([values.keys, values.items], ["key", "value"])
        yield from _leaves(pa.ListArray.from_arrays(values.offsets, pairs))
    elif pa.types.is_nested(values.type):
        yield from _leaves(values.flatten())
    else:
        yield values


def _fits(end: pa.Scalar, format: str) -> bool:
    kind = end.type
    if format != "parquet":
        return not str(end.cast(pa.string())).startswith(_BEYOND)
    if pa.types.is_date64(kind):
        return abs(digits(end)) // 86_400_000 < 2**31
    try:
        end.cast(pa.timestamp("ms", kind.tz))
    except pa.ArrowInvalid:
        return False
    return True


def digits(value: pa.Scalar) -> int:
    """Return the stored number of a date or time."""
    return int(value.cast(pa.int32() if value.type.bit_width == 32 else pa.int64()).as_py())
