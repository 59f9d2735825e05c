"""A column of predicted classes, which is written beside the passthrough columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from kafeat.errors import UsageError, quoted
from kafeat.io.writers.arrow_columns import shared
from kafeat.types import Array, Floats, Mask


class ClassColumn:
    """The column `name` of predicted classes, in their own type: text, whole numbers, numbers or booleans."""

    def __init__(self, name: str, classes: Sequence[Any]) -> None:
        self._classes = _arrow(classes)
        self._field = pa.field(name, self._classes.type)

    def schema(self, passthrough: pa.Schema | None) -> pa.Schema:
        """Return the schema of the passthrough columns with this column behind them; refuse one of the same name."""
        if passthrough is not None and self._field.name in passthrough.names:
            raise UsageError(
                f"--keep: expected columns with other names than the predictions, got {quoted(self._field.name)}; "
                "choose a --prefix for the predictions"
            )
        return pa.schema([self._field]) if passthrough is None else passthrough.append(self._field)

    def table(self, passthrough: pa.Table | None, probabilities: Floats, as_text: bool = False) -> pa.Table:
        """Return the passthrough columns with the class of the largest probability (n, c); null in a row of NaN.

        A class is text if `as_text`, as in CSV.
        """
        missing: Mask = np.isnan(probabilities[:, 0])
        column = self._classes.take(shared(probabilities.argmax(axis=1), missing))
        field = self._field
        if as_text:
            field, column = field.with_type(pa.string()), column.cast(pa.string())
        if passthrough is None:
            return pa.Table.from_arrays([column], schema=pa.schema([field]))
        return passthrough.append_column(field, column)


def whole_numbers(classes: Sequence[int]) -> Array:
    """Return ascending whole numbers of 64 bits as an array; NumPy would take 1 and 2⁶³ together for floats."""
    return np.array(classes, dtype=np.uint64 if classes[-1] > np.iinfo(np.int64).max else np.int64)


def _arrow(classes: Sequence[Any]) -> pa.Array:
    """Return the classes as an array. `pa.array` would import pandas, which takes seconds."""
    if isinstance(classes[0], str):
        texts = [one.encode() for one in classes]
        ends = np.append(0, np.cumsum(list(map(len, texts)))).astype(np.int32)
        return pa.StringArray.from_buffers(len(texts), pa.py_buffer(ends), pa.py_buffer(b"".join(texts)))
    values = whole_numbers(classes) if type(classes[0]) is int else np.array(classes)
    if values.dtype == np.bool_:
        bits = pa.py_buffer(np.packbits(values, bitorder="little"))
        return pa.Array.from_buffers(pa.bool_(), len(values), [None, bits])
    return shared(values)
