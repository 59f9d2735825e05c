"""Arrow columns as they lie in memory.

Not by `to_numpy`: the first call of it imports pandas where that is installed, a quarter of a second.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa


def stored(values: pa.Array) -> npt.NDArray[Any]:
    """The numbers of a column of integers or floats; where there is a null, whatever stands there."""
    kind, (_, data) = values.type, values.buffers()
    letter = "f" if pa.types.is_floating(kind) else "u" if pa.types.is_unsigned_integer(kind) else "i"
    dtype = np.dtype(f"{letter}{kind.bit_width // 8}")
    if data is None:
        return np.zeros(len(values), dtype=dtype)
    return np.frombuffer(data, dtype=dtype, count=len(values), offset=values.offset * dtype.itemsize)


def valid(values: pa.Array) -> npt.NDArray[np.bool_]:
    """Where a column that has nulls has none."""
    bits = np.frombuffer(values.buffers()[0], dtype=np.uint8)
    first = values.offset // 8
    shown = np.unpackbits(bits[first : (values.offset + len(values) + 7) // 8], bitorder="little")
    return shown[values.offset - 8 * first :][: len(values)].astype(np.bool_)


def indices_of(values: pa.DictionaryArray, null: int) -> npt.NDArray[np.int64]:
    """The codes of a dictionary column, `null` where there is none."""
    codes = values.indices.cast(pa.int64())
    found = stored(codes).copy()
    if codes.null_count:
        found[~valid(codes)] = null
    return found
