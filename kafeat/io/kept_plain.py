"""Values without the ways to store them: dictionaries, run-end encoding and views are written as plain values.

In Parquet a column of views stays one, and so do categories (a dictionary of text): Parquet reads these back as such,
but no other dictionary, nor one of views. Arrow's own casts lack most of these, and that of list views leaves out an
offset (pyarrow 26).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from kafeat.io.numbers import is_text


def written(kind: pa.DataType, format: str) -> pa.DataType:
    """The type in which values of that type are written."""
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
    """A column as plain values."""
    kind = written(column.type, "arrow")
    return pa.chunked_array([plain(chunk, kind) for chunk in column.chunks], kind)


def plain(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """The values in that type, which is the one that `written` tells."""
    own = values.type
    if pa.types.is_dictionary(kind):
        return _coded(values, kind)
    if own == kind:
        return values
    if pa.types.is_run_end_encoded(own):
        import pyarrow.compute as pc

        return plain(pc.run_end_decode(values), kind)
    if pa.types.is_dictionary(own):
        words = plain(values.dictionary, kind)
        return pa.DictionaryArray.from_arrays(values.indices, words).dictionary_decode()
    mask = values.is_null() if values.null_count else None
    if pa.types.is_struct(own):
        parts = [plain(part, kind.field(i).type) for i, part in enumerate(values.flatten())]
        return pa.StructArray.from_arrays(parts, fields=[kind.field(i) for i in range(len(parts))], mask=mask)
    if pa.types.is_fixed_size_list(own):
        inner = values.values.slice(values.offset * own.list_size, len(values) * own.list_size)
        return pa.FixedSizeListArray.from_arrays(plain(inner, kind.value_type), type=kind, mask=mask)
    if pa.types.is_nested(own):
        return _list(values, kind, mask)
    return values.cast(kind)


def _coded(values: pa.DictionaryArray, kind: pa.DataType) -> pa.DictionaryArray:
    words, codes = plain(values.dictionary, kind.value_type), values.indices
    if words.null_count:  # a missing value has two spellings then, of which Parquet knows one
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
