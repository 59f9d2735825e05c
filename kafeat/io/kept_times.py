"""Dates and times of kept columns that are beyond what a format can hold."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from kafeat.io.numbers import storage_of

_BEYOND = "<value out of range"
"""So begins Arrow's text of a time that it cannot spell."""


def is_timed(kind: pa.DataType, format: str) -> bool:
    """Whether there are dates and times in it that the format may not hold."""
    kind = storage_of(kind)
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return is_timed(kind.value_type, format)
    if pa.types.is_nested(kind):
        return any(is_timed(kind.field(i).type, format) for i in range(kind.num_fields))
    if format == "parquet":  # has neither times in seconds nor 64 bits for a date
        return bool(pa.types.is_date64(kind) or (pa.types.is_timestamp(kind) and kind.unit == "s"))
    times = (pa.types.is_date, pa.types.is_time, pa.types.is_timestamp)
    return format in ("csv", "jsonl") and any(test(kind) for test in times)


def beyond(column: pa.ChunkedArray, format: str) -> pa.Scalar | None:
    """A date or time that the format cannot hold."""
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
    """The arrays of plain values that a nested one is made of."""
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
    """The number that stands for a date or time."""
    return int(value.cast(pa.int32() if value.type.bit_width == 32 else pa.int64()).as_py())
