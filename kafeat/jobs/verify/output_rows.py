"""Read the rows of an output, and compare them with features that are computed again."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from kafeat.contract.tile import Rows, SparseRows, dense
from kafeat.errors import DataError, GateError, quoted, spell_row
from kafeat.io.columns.columns import Column, Columns
from kafeat.io.columns.fields import Field, as_spelled
from kafeat.io.readers.base import Chunk, Reader
from kafeat.io.writers.libsvm import comparable_labels
from kafeat.io.writers.passthrough import KeptRows, difference
from kafeat.jobs.transform.outputs import Outputs
from kafeat.model.feature_map import FeatureMap
from kafeat.types import Floats

# Of the largest feature of a row: another processor or library may round otherwise.
TOLERANCE = {"float16": 2e-3, "float32": 1e-4, "float64": 1e-9}
_OF_ARROW = {"halffloat": "float16", "float": "float32", "double": "float64"}


class OutputRows:
    """A reader of the rows of an output that compares them, and memory for computing their features again.

    `at` is the next row to compare. `keep` names the passthrough columns, which stand before the features and which the
    input has too. LIBSVM does not name its label, so `kept` does.
    """

    def __init__(
        self,
        made: Reader,
        source: Reader,
        fm: FeatureMap,
        outputs: Outputs,
        dtype: str | None,
        kept: Sequence[str] = (),
    ) -> None:
        self._made, self._width, self._outputs = made, outputs.width, outputs
        fields = _numbers(made, outputs)
        if outputs.what == "features":
            _check_names(made, fields)
        columns = Columns(
            tuple(Column(field.name, field.width) for field in fields), False, None, missing=True
        )
        self._dtype = np.dtype(dtype or outputs.dtype) if made.untyped else _dtype(made, fields)
        # Predictions in float64 are made of features in the dtype of the map.
        self._tolerance = max(TOLERANCE[self._dtype.name], TOLERANCE[fm.dtype])
        lists = fields[0].width is not None
        self._order: Literal["C", "F"] = "C" if made.positional or lists else "F"
        ours = {field.name for field in source.fields}
        before = [field.name for field in made.fields[: -len(fields)]]
        predicted = [] if outputs.classes is None else before[-1:]
        copied = before[: len(before) - len(predicted)]
        self.keep = [] if made.positional else [name for name in copied if name in ours]
        written = [*self.keep, *predicted]
        self._labelled = made.sparse and bool(before)
        if made.sparse:
            self.keep, written = as_spelled(source, kept if self._labelled else []), before
        # Text is compared as text: its type would be a guess.
        self.typed = made.format.typed
        self._chunks = made.chunks(columns, written, fm.chunk_rows, typed_passthrough=not made.untyped)
        self._chunk: Chunk | None = next(self._chunks, None)
        self.at = 0
        self.rows = 0

    def buffer(self, start: int, rows: int) -> Floats:
        """Return memory in the order that the output was written in, as the last bit depends on it."""
        del start
        return np.empty((rows, self._width), self._dtype, order=self._order)

    def filled(self, start: int, block: Floats) -> None:
        """Do nothing: there is no file to write."""
        return

    def compare(self, expected: Rows, kept: KeptRows | None, made_of: Chunk) -> float:
        """Return the largest difference of the next rows to these; `kept` holds the passthrough columns."""
        largest = 0.0
        while len(expected):
            got, got_kept = self._next(len(expected))
            if not len(got):
                raise GateError(
                    f"{self._made.location}: expected more than {self.at:,} rows, as {made_of.location} has them, "
                    "got no more"
                )
            largest = max(largest, self._difference(expected[: len(got)], got))
            expected = expected[len(got) :]
            if got_kept is not None and (kept is not None or self._labelled):
                self._compare_kept(None if kept is None else kept.slice(0, len(got)), got_kept)
                kept = None if kept is None else kept.slice(len(got))
            self.at += len(got)
        return largest

    def _next(self, most: int) -> tuple[Rows, KeptRows | None]:
        chunk = self._chunk
        while chunk is not None and chunk.start + chunk.rows <= self.at:
            self.rows = chunk.start + chunk.rows
            chunk = self._chunk = next(self._chunks, None)
        if chunk is None:
            return np.empty((0, self._width)), None
        first = self.at - chunk.start
        read = chunk.numbers if self._outputs.sparse else chunk.matrix
        rows = read(np.dtype(np.float64))[first : first + most]
        features = rows if isinstance(rows, SparseRows) else dense(rows)
        kept = chunk.passthrough
        return features, None if kept is None else kept.slice(first, len(features))

    def _compare_kept(self, expected: KeptRows | None, got: KeptRows) -> None:
        if self._labelled:
            expected, got = comparable_labels(self._made.location, expected, got, self.at)
        first = None if expected is None else difference(expected, got)
        if first is not None:
            raise GateError(
                f"{self._made.location}: {spell_row(self.at + first.row)}, column {quoted(first.column)}: expected "
                f"{first.expected} as in the input, got {first.got}"
            )

    def _difference(self, expected: Rows, got: Rows) -> float:
        """Return the largest difference of two rows, relative to the largest feature of the row."""
        if isinstance(expected, SparseRows) and isinstance(got, SparseRows):
            apart, size = _sparse_differences(expected, got, self._dtype)
        else:
            apart, size = _differences(dense(expected), dense(got), self._dtype)
        largest = _largest_of_rows(apart)
        relative = largest / np.maximum(size, np.finfo(np.float32).tiny)
        wrong = ~(relative <= self._tolerance)
        if wrong.any():
            row = int(np.argmax(wrong))
            differences = dense(apart[row : row + 1])[0]
            column = int(np.argmax(np.where(np.isnan(differences), np.inf, differences)))
            wanted, found = (float(dense(rows[row : row + 1])[0, column]) for rows in (expected, got))
            raise GateError(
                f"{self._made.location}: {spell_row(self.at + row)}, {self._outputs.what[:-1]} {column}: expected "
                f"{wanted:.9g}, got {self._dtype.type(found):.9g}"
            )
        return float(relative.max(initial=0.0))

    def end(self) -> None:
        """Count the remaining rows."""
        while self._chunk is not None:
            self.rows = self._chunk.start + self._chunk.rows
            self._chunk = next(self._chunks, None)


def _differences(expected: Floats, got: Floats, dtype: np.dtype[Any]) -> tuple[Rows, Floats]:
    """Return the differences of two matrices, and the largest number of each row."""
    rounded = got.astype(dtype)
    with np.errstate(invalid="ignore"):
        apart: Floats = np.abs(rounded.astype(np.float64) - expected)
    apart[np.isnan(rounded) & np.isnan(expected)] = 0.0
    return apart, np.nan_to_num(np.abs(expected)).max(axis=1)


def _sparse_differences(expected: SparseRows, got: SparseRows, dtype: np.dtype[Any]) -> tuple[Rows, Floats]:
    """Return the same of sparse rows."""
    wanted, found = (rows.csr.astype(dtype).astype(np.float64) for rows in (expected, got))
    apart = abs(wanted - found).tocsr()
    return SparseRows(apart.data, apart.indices, apart.indptr, expected.width), _largest_of_rows(expected)


def _largest_of_rows(rows: Rows) -> Floats:
    """Return the largest size of a number in each row, NaN if there is one."""
    if not isinstance(rows, SparseRows):
        return np.abs(rows).max(axis=1)
    largest = np.zeros(len(rows))
    np.maximum.at(largest, rows.row_of, np.abs(rows.values).astype(np.float64))
    return largest


def _dtype(made: Reader, fields: list[Field]) -> np.dtype[Any]:
    """Return the dtype of the features; that of `fixed_size_list<element: float>[4]` is float32."""
    spelled = {
        name for field in fields for name in re.findall(r"halffloat|float(?:16|32|64)?|double", field.spelled)
    }
    if len(spelled) != 1:
        raise DataError(
            f"{made.location}: expected features of one floating type, got {', '.join(sorted(spelled))}"
        )
    name = spelled.pop()
    return np.dtype(_OF_ARROW.get(name, name))


def _numbers(made: Reader, outputs: Outputs) -> list[Field]:
    """Return the fields of features or predictions: the last ones, after the passthrough columns."""
    fields = list(made.fields)
    last = fields[-1:]
    width = outputs.width
    if last and last[0].kind == "list" and last[0].width in (None, width):
        return [replace(last[0], width=width)]
    if len(fields) < width + (outputs.classes is not None):
        raise GateError(
            f"{made.location}: expected {width:,} columns of {outputs.what}, got {len(fields):,} columns"
        )
    return fields[-width:]


def _check_names(made: Reader, fields: list[Field]) -> None:
    """Refuse feature columns that are not numbered in order after a common prefix."""
    names = [field.name for field in fields]
    prefix = names[0][:-1]
    if not made.positional and len(names) > 1 and names != [f"{prefix}{i}" for i in range(len(names))]:
        raise GateError(
            f"{made.location}: expected the columns of the features in their order, as {prefix}0 ... "
            f"{prefix}{len(names) - 1}, got {quoted(names[0])} ... {quoted(names[-1])}"
        )
