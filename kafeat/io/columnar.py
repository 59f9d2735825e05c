"""A block of features as Arrow arrays that share its memory."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from kafeat.types import Array, Floats


def columns_of(block: Floats) -> list[pa.Array]:
    """One array a column; free of copies where the entries of a column lie together."""
    rows, width = block.shape
    if not block.size:
        return [shared(column) for column in block.T]
    if block.strides[0] != block.itemsize or block.strides[1] < block.strides[0]:
        block = np.asfortranarray(block)
    # Slices of one array that spans the whole block cost a tenth of arrays of their own.
    apart = block.strides[1] // block.itemsize if width > 1 else rows
    span = np.lib.stride_tricks.as_strided(block, ((width - 1) * apart + rows,), (block.itemsize,))
    whole = shared(span)
    return [whole.slice(j * apart, rows) for j in range(width)]


def shared(values: Array) -> pa.Array:
    """A contiguous vector without nulls. `pa.array` would look for pandas first, and load it."""
    kind = pa.from_numpy_dtype(values.dtype)
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values)])
