"""A block of features as Arrow arrays that share its memory."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from kafeat.types import Array, Floats


def columns_of(block: Floats) -> list[pa.Array]:
    """One array a column; free of copies where the block is feature-major."""
    block = np.asfortranarray(block)
    return [shared(block[:, j]) for j in range(block.shape[1])]


def shared(values: Array) -> pa.Array:
    """A contiguous vector without nulls. `pa.array` would look for pandas first, and load it."""
    kind = pa.from_numpy_dtype(values.dtype)
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values)])
