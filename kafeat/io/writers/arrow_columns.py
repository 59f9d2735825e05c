"""Features as Arrow arrays that share the memory of their block, and the columns of predicted classes."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from kafeat.contract.checks import whole_numbers
from kafeat.errors import UsageError, quoted
from kafeat.io.writers.base import Layout
from kafeat.types import Array, Floats, Mask


def columns_of(block: Floats, nulls: Mask | None = None, *, apart: bool = False) -> list[pa.Array]:
    """Return one array for each column, without copies if columns are contiguous. Rows in `nulls` are null.

    With `apart`, no array is a slice of a larger one: Arrow IPC would write the memory behind a slice as padding.
    """
    rows, width = block.shape
    if not block.size:
        return [shared(column) for column in block.T]
    if block.strides[0] != block.itemsize or block.strides[1] < block.strides[0]:
        block = np.asfortranarray(block)
    # Slicing one array of the whole block takes a tenth of the time of making an array for each column.
    step = block.strides[1] // block.itemsize if width > 1 else rows
    span = np.lib.stride_tricks.as_strided(block, ((width - 1) * step + rows,), (block.itemsize,))
    if nulls is not None or apart:
        bits = None if nulls is None else validity_bits(nulls)
        return [_vector(span[j * step : j * step + rows], bits) for j in range(width)]
    whole = shared(span)
    return [whole.slice(j * step, rows) for j in range(width)]


def lists_of(block: Floats, kind: pa.DataType, nulls: Mask | None = None) -> pa.Array:
    """Return a block (n, d) as one array of n lists of type `kind`. Rows in `nulls` are null."""
    flat = shared(np.ascontiguousarray(block).reshape(-1))
    bits = None if nulls is None else validity_bits(nulls)
    return pa.Array.from_buffers(kind, len(block), [bits], children=[flat])


def schema_of(layout: Layout) -> pa.Schema:
    """Return the schema of an output: passthrough columns, then features, and metadata under the key `kafeat`."""
    kind = pa.from_numpy_dtype(layout.dtype)
    fields = [] if layout.passthrough_schema is None else list(layout.passthrough_schema)
    if layout.list_name is None:
        fields += [pa.field(name, kind, nullable=layout.nullable) for name in layout.names]
    else:
        items = pa.list_(pa.field("item", kind, nullable=False), len(layout.names))
        fields.append(pa.field(layout.list_name, items, nullable=layout.nullable))
    notes = {"kafeat": json.dumps(dict(layout.metadata), sort_keys=True)} if layout.metadata else None
    return pa.schema(fields, metadata=notes)


def features_of(block: Floats, schema: pa.Schema, layout: Layout, *, apart: bool = False) -> list[pa.Array]:
    """Return a block of features as Arrow arrays: one per feature or, if the layout has lists, one array of lists."""
    nulls = nulls_of(block, layout)
    if layout.list_name is None:
        return columns_of(block, nulls, apart=apart)
    return [lists_of(block, schema.field(-1).type, nulls)]


def nulls_of(block: Floats, layout: Layout) -> Mask | None:
    """Return a mask of the rows without features (all NaN), or None if all rows have features."""
    nulls: Mask | None = np.isnan(block[:, 0]) if layout.nullable else None
    return nulls if nulls is not None and nulls.any() else None


def shared(values: Array, nulls: Mask | None = None) -> pa.Array:
    """Return an array that shares the memory of a vector, null where `nulls` is true, without importing pandas."""
    return _vector(values, None if nulls is None or not nulls.any() else validity_bits(nulls))


def _vector(values: Array, validity: pa.Buffer | None) -> pa.Array:
    kind = pa.from_numpy_dtype(values.dtype)
    return pa.Array.from_buffers(kind, len(values), [validity, pa.py_buffer(values)])


def validity_bits(nulls: Mask) -> pa.Buffer:
    """Return a validity bitmap: one bit per row, 1 for a value."""
    return pa.py_buffer(np.packbits(~nulls, bitorder="little"))


SetsOf = Callable[[Floats], Mask]
"""A function from the probabilities (n, c) of classes to a mask (n, c) of the classes in the set of each row."""


class ClassColumn:
    """The column `name` of predicted classes in their own type: text, whole numbers, numbers or booleans.

    After this column, each of `sets` adds a column of booleans per class: true if the class is in the set of the row.
    """

    def __init__(
        self, name: str, classes: Sequence[Any], sets: Sequence[tuple[Sequence[str], SetsOf]] = ()
    ) -> None:
        self._classes, self._sets = _arrow(classes), [of for _, of in sets]
        held = [pa.field(one, pa.bool_()) for names, _ in sets for one in names]
        self._fields = [pa.field(name, self._classes.type), *held]

    @property
    def names(self) -> list[str]:
        return [field.name for field in self._fields]

    def schema(self, passthrough: pa.Schema | None) -> pa.Schema:
        """Return the schema of passthrough columns, then predictions. Raise UsageError if a name occurs in both."""
        for name in self.names:
            if passthrough is not None and name in passthrough.names:
                raise UsageError(
                    f"--keep: expected columns with other names than the predictions, got {quoted(name)}; "
                    "choose a --prefix for the predictions"
                )
        return pa.schema([*(passthrough or ()), *self._fields])

    def table(self, passthrough: pa.Table | None, probabilities: Floats, as_text: bool = False) -> pa.Table:
        """Return the passthrough columns, the most probable class of each row, and the columns of `sets`.

        Predictions are null where probabilities are NaN. With `as_text`, they are text, as in CSV.
        """
        missing: Mask = np.isnan(probabilities[:, 0])
        columns = [self._classes.take(shared(probabilities.argmax(axis=1), missing))]
        bits = validity_bits(missing) if missing.any() else None
        columns += [_booleans(held, bits) for sets in self._sets for held in sets(probabilities).T]
        if as_text:
            columns = [column.cast(pa.string()) for column in columns]
        fields = [field.with_type(one.type) for field, one in zip(self._fields, columns, strict=True)]
        if passthrough is None:
            return pa.Table.from_arrays(columns, schema=pa.schema(fields))
        for field, column in zip(fields, columns, strict=True):
            passthrough = passthrough.append_column(field, column)
        return passthrough


def _arrow(classes: Sequence[Any]) -> pa.Array:
    """Return the classes as an array. `pa.array` would import pandas, which takes seconds."""
    if isinstance(classes[0], str):
        texts = [one.encode() for one in classes]
        ends = np.append(0, np.cumsum(list(map(len, texts)))).astype(np.int32)
        return pa.StringArray.from_buffers(len(texts), pa.py_buffer(ends), pa.py_buffer(b"".join(texts)))
    values = whole_numbers(classes) if type(classes[0]) is int else np.array(classes)
    return _booleans(values) if values.dtype == np.bool_ else shared(values)


def _booleans(values: Mask, validity: pa.Buffer | None = None) -> pa.Array:
    bits = pa.py_buffer(np.packbits(values, bitorder="little"))
    return pa.Array.from_buffers(pa.bool_(), len(values), [validity, bits])
