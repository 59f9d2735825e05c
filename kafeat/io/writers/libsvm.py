"""Writer of LIBSVM text, `label index:value …` for each row with indices from 1, and the check of its labels."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafeat.contract.tile import Rows, SparseRows
from kafeat.errors import GateError, InvalidValueError, UsageError, quoted, spell_row
from kafeat.io.columns.values import TEXT, as_text, decoded, widened
from kafeat.io.storage.atomic import AtomicFile
from kafeat.io.writers.arrow_columns import shared
from kafeat.io.writers.base import Layout
from kafeat.io.writers.npy import sparse_rows
from kafeat.io.writers.passthrough import KeptRows
from kafeat.io.writers.text import TextWriter, memory_of
from kafeat.types import Mask

_NOTHING, _BLANK, _COLON, _ZERO, _END = (pa.scalar(text, TEXT) for text in ("", " ", ":", "0", "\n"))
_EXACT = 2**53
_ENTRIES = 1 << 20
"""Number of nonzero numbers to format at a time."""


class LibsvmWriter(TextWriter):
    """A writer of one line for each row. Its label is the passthrough column, or 0.

    LIBSVM does not store the number of columns, so the first row has an entry for the last column, even if it is 0. An
    output without rows has a comment, because a file of 0 bytes looks truncated.
    """

    def __init__(self, location: str, file: AtomicFile, layout: Layout) -> None:
        super().__init__(location, file, layout)
        self._label, self._first = next(iter(layout.passthrough_names), None), True

    @classmethod
    def check(cls, location: str, layout: Layout) -> None:
        _check_label(location, layout.passthrough_schema, layout.rows == 0)

    def _write(self, block: Rows, passthrough: pa.Table | None, good: Mask | None) -> None:
        rows, labels = sparse_rows(block, good), None
        if passthrough is not None and self._label is not None:
            labels = _labels(self._label, passthrough.column(self._label), good)
        if self._first and len(rows):
            rows, self._first = _with_last(rows), False
        for start, stop in _pieces(rows.starts):
            self.put(_lines(rows[start:stop], None if labels is None else labels[start:stop]))

    def _end(self) -> None:
        if self._first:
            self.put(pa.py_buffer(f"# no rows of {len(self.layout.names)} features\n".encode()))
        super()._end()


def _check_label(location: str, schema: pa.Schema | None, empty: bool) -> None:
    """Raise UsageError if there are several passthrough columns, or if the only one, the label, has no numbers.

    For an `empty` input, any column may be the label: text without rows does not show which columns are numbers.
    """
    if schema is None or not len(schema):
        return
    if len(schema) > 1:
        raise UsageError(
            f"{location}: expected one passthrough column in LIBSVM, its label, got {', '.join(schema.names)}"
        )
    field = schema.field(0)
    kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    if not empty and not (
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
    ):
        raise UsageError(
            f"{location}: column {quoted(field.name)}: expected a column of numbers as the label of LIBSVM, got "
            f"{kind}; write Parquet or CSV, or leave it out of --keep"
        )


def _labels(name: str, column: pa.ChunkedArray, good: Mask | None) -> pa.Array:
    """Return the labels as text. A missing label, or one that a double cannot represent, is an InvalidValueError."""
    values = widened(decoded(column).combine_chunks())
    if pa.types.is_boolean(values.type):
        values = values.cast(pa.int8())
    numbers = values.cast(pa.float64(), safe=False).fill_null(np.nan)
    wrong = ~np.isfinite(numbers)
    if pa.types.is_integer(values.type):
        wrong |= np.abs(numbers) >= _EXACT
    if wrong.any():
        row = int(np.argmax(wrong))
        place = row if good is None else int(np.flatnonzero(good)[row])
        value = "null" if values[row].as_py() is None else values[row]
        raise InvalidValueError(
            place, name, f"expected a finite number below 2**53 as the label of LIBSVM, got {value}"
        )
    return values.cast(TEXT)


def _with_last(rows: SparseRows) -> SparseRows:
    """Return the rows, where the first row has an entry for the last column: 0 if it had none."""
    end, last = int(rows.starts[1]), rows.width - 1
    if end and rows.columns[end - 1] == last:
        return rows
    starts = rows.starts.copy()
    starts[1:] += 1
    return SparseRows(
        np.insert(rows.values, end, 0.0), np.insert(rows.columns, end, last), starts, rows.width
    )


def _pieces(starts: np.ndarray) -> list[tuple[int, int]]:
    """Return (start, stop) of consecutive rows, each time with about `_ENTRIES` nonzero numbers."""
    n = len(starts) - 1
    cuts = np.searchsorted(starts, np.arange(_ENTRIES, int(starts[-1]), _ENTRIES))
    edges = np.unique([0, *cuts, n])
    return [(int(start), int(stop)) for start, stop in pairwise(edges)]


def _lines(rows: SparseRows, labels: pa.Array | None) -> pa.Buffer:
    values = as_text(shared(np.ascontiguousarray(rows.values)))
    indices = shared(np.asarray(rows.columns, np.int64) + 1)
    entries = pc.binary_join_element_wise(_BLANK, indices.cast(TEXT), _COLON, values, _NOTHING)
    starts = shared(np.ascontiguousarray(rows.starts, np.int64))
    texts = pc.binary_join(pa.LargeListArray.from_arrays(starts, entries), _NOTHING)
    return memory_of(pc.binary_join_element_wise(_ZERO if labels is None else labels, texts, _END, _NOTHING))


def comparable_labels(
    location: str, at: int, expected: KeptRows | None, got: KeptRows
) -> tuple[KeptRows | None, KeptRows]:
    """Return the labels of an input (`expected`) and of an output (`got`) in the same type, to compare them.

    LIBSVM does not name the column of its label. If `expected` is None, a label other than 0 raises GateError, because
    its expected value is unknown. `at` is the number of the first row, for messages.
    """
    if expected is not None:
        ours = _comparable(decoded(expected.column(0)))
        theirs = got.column(0).cast(ours.type, safe=False)
        return pa.table({"label": ours}), pa.table({"label": theirs})
    labels = got.column(0).to_numpy()
    other = np.flatnonzero(labels != 0)
    if len(other):
        raise GateError(
            f"{location}: {spell_row(at + int(other[0]))}: expected the label 0, because no column of the input is "
            f"named, got {labels[other[0]]:g}; give --label the column that `transform --keep` copied"
        )
    return None, got


def _comparable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return labels in a type that holds them exactly and to which Arrow casts texts such as 7.0: no int or bool."""
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    if pa.types.is_integer(column.type):  # LIBSVM labels are below 2**53
        return column.cast(pa.float64(), safe=False)
    return widened(column)
