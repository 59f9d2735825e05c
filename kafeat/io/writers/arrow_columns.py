"""A block of features as Arrow arrays that share its memory."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa

from kafeat.io.writers.base import Layout
from kafeat.types import Array, Floats, Mask


def columns_of(block: Floats, nulls: Mask | None = None, *, apart: bool = False) -> list[pa.Array]:
    """One array a column; free of copies where the entries of a column lie together. Rows of `nulls` are null.

    `apart`: each with memory that ends with it. IPC fills its buffers up with what follows a slice.
    """
    rows, width = block.shape
    if not block.size:
        return [shared(column) for column in block.T]
    if block.strides[0] != block.itemsize or block.strides[1] < block.strides[0]:
        block = np.asfortranarray(block)
    # Slices of one array that spans the whole block cost a tenth of arrays of their own.
    step = block.strides[1] // block.itemsize if width > 1 else rows
    span = np.lib.stride_tricks.as_strided(block, ((width - 1) * step + rows,), (block.itemsize,))
    if nulls is not None or apart:
        bits = None if nulls is None else _validity(nulls)
        return [_vector(span[j * step : j * step + rows], bits) for j in range(width)]
    whole = shared(span)
    return [whole.slice(j * step, rows) for j in range(width)]


def lists_of(block: Floats, kind: pa.DataType, nulls: Mask | None = None) -> pa.Array:
    """One array of lists of that fixed size. Rows of `nulls` are null."""
    flat = shared(np.ascontiguousarray(block).reshape(-1))
    bits = None if nulls is None else _validity(nulls)
    return pa.Array.from_buffers(kind, len(block), [bits], children=[flat])


def schema_of(layout: Layout) -> pa.Schema:
    """Kept columns, then the features as columns, lists or tensors; notes under the key `kafeat`."""
    kind = pa.from_numpy_dtype(layout.dtype)
    fields = [] if layout.kept_schema is None else list(layout.kept_schema)
    if layout.layout == "columns":
        fields += [pa.field(name, kind, nullable=layout.nullable) for name in layout.names]
    elif layout.layout == "list":
        items = pa.list_(pa.field("item", kind, nullable=False), len(layout.names))
        fields.append(pa.field(layout.list_name, items, nullable=layout.nullable))
    else:
        tensors = pa.fixed_shape_tensor(kind, [len(layout.names)])
        fields.append(pa.field(layout.list_name, tensors, nullable=layout.nullable))
    notes = {"kafeat": json.dumps(dict(layout.metadata), sort_keys=True)} if layout.metadata else None
    return pa.schema(fields, metadata=notes)


def features_of(
    block: Floats, schema: pa.Schema, layout: str, nulls: Mask | None = None, *, apart: bool = False
) -> list[pa.Array]:
    """A block as the last columns of that schema."""
    if layout == "columns":
        return columns_of(block, nulls, apart=apart)
    kind = schema.field(-1).type
    if layout == "list":
        return [lists_of(block, kind, nulls)]
    return [pa.ExtensionArray.from_storage(kind, lists_of(block, kind.storage_type, nulls))]


def nulls_of(block: Floats) -> Mask | None:
    """The rows without features; None if there are none. Features are never NaN, so one column tells."""
    nulls: Mask = np.isnan(block[:, 0])
    return nulls if nulls.any() else None


def shared(values: Array) -> pa.Array:
    """A contiguous vector without nulls. `pa.array` would look for pandas first, and load it."""
    return _vector(values, None)


def _vector(values: Array, validity: pa.Buffer | None) -> pa.Array:
    kind = pa.from_numpy_dtype(values.dtype)
    return pa.Array.from_buffers(kind, len(values), [validity, pa.py_buffer(values)])


def _validity(nulls: Mask) -> pa.Buffer:
    """One bit a row, 1 where there is a value."""
    return pa.py_buffer(np.packbits(~nulls, bitorder="little"))
