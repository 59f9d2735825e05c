"""The rows of an output, compared with expected rows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from kafeat.contract.tile import Rows, SparseRows, dense
from kafeat.errors import DataError, GateError, counted, quoted, spell_row
from kafeat.io.columns.columns import Column, Columns
from kafeat.io.columns.fields import Field, as_spelled
from kafeat.io.data_set import MANIFEST
from kafeat.io.readers.base import Chunk, Reader
from kafeat.io.writers.libsvm import comparable_labels
from kafeat.io.writers.passthrough import KeptRows, difference
from kafeat.jobs.transform.outputs import Outputs
from kafeat.model.feature_map import FeatureMap
from kafeat.runtime.run import NewArrays
from kafeat.types import Floats

# Tolerances relative to the largest feature of a row, since other processors or libraries may round differently.
TOLERANCE = {"float16": 2e-3, "float32": 1e-4, "float64": 1e-9}
_OF_ARROW = {"halffloat": "float16", "float": "float32", "double": "float64"}


@contextmanager
def reading_output() -> Iterator[None]:
    """Turn a DataError into a GateError, because an unreadable output is wrong. Drop its advice on reading options."""
    try:
        yield
    except DataError as error:
        raise GateError(re.sub(r"; --[^\n]*", "", str(error))) from error


class OutputRows:
    """Reads the rows of an output, and compares them with expected rows, which are to be computed in `memory`.

    `at` is the number of the next row to compare. `total` is the number of rows, or None if it is unknown until all are
    read. `keep` names the passthrough columns, which come before the features and are also in the input. LIBSVM has
    only a label before the features: `kept` has its name. `promised` maps locations of parts to numbers of rows.
    """

    @reading_output()
    def __init__(
        self,
        made: Reader,
        source: Reader,
        fm: FeatureMap,
        outputs: Outputs,
        dtype: str | None,
        kept: Sequence[str] = (),
        promised: Mapping[str, int] | None = None,
    ) -> None:
        self._made, self._width, self._outputs = made, outputs.width, outputs
        fields = _numbers(made, outputs.width)
        columns = Columns(
            tuple(Column(field.name, field.width) for field in fields), False, None, missing=True
        )
        self._names = _names_of(outputs, fields, made)
        self._dtype = np.dtype(dtype or outputs.dtype) if made.untyped else _dtype(made, fields)
        # Predictions in float64 are only as exact as the features, which have the map's dtype.
        self._tolerance = max(TOLERANCE[self._dtype.name], TOLERANCE[fm.dtype])
        lists = fields[0].width is not None
        # Memory in C or Fortran order, as when the output was written, because last bits depend on the order.
        self.memory = NewArrays(outputs.width, self._dtype, "C" if made.positional or lists else "F")
        written = self._columns_before(source, [field.name for field in made.fields[: -len(fields)]], kept)
        # Passthrough columns in text are compared as text, because their types would be guesses.
        self.typed = made.format.typed
        self._chunks = made.chunks(columns, written, fm.chunk_rows, typed_passthrough=not made.untyped)
        self._promised = dict(promised or {})
        self.total = sum(self._promised.values()) or made.rows
        self._chunk: Chunk | None = None
        self.at = self.rows = 0
        self._advance()

    def _columns_before(self, source: Reader, before: list[str], kept: Sequence[str]) -> list[str]:
        """Sort the columns `before` the numbers into copied columns and predicted classes. Return those to read."""
        made, classes = self._made, self._outputs.classes
        predicted = [] if classes is None else before[-len(classes.names) :]
        self._predicted, self._labelled = set(predicted), made.sparse and bool(before)
        if made.sparse:
            self.keep = as_spelled(source, kept if self._labelled else [])
            return before
        ours = {field.name for field in source.fields}
        copied = before[: len(before) - len(predicted)]
        self.keep = [] if made.positional else [name for name in copied if name in ours]
        return [*self.keep, *predicted]

    @reading_output()
    def compare(self, expected: Rows, kept: KeptRows | None, made_of: Chunk) -> float:
        """Compare the next rows with those expected for `made_of`, and copies with `kept`. Return the largest error."""
        largest = 0.0
        while len(expected):
            got, got_kept = self._next(len(expected))
            if not len(got):
                raise GateError(
                    f"{self._made.location}: expected more than {self.at:,} rows, because {made_of.location} has "
                    "more, got the end of the file"
                )
            largest = max(largest, self._difference(expected[: len(got)], got))
            expected = expected[len(got) :]
            if got_kept is not None and (kept is not None or self._labelled):
                self._compare_kept(None if kept is None else kept.slice(0, len(got)), got_kept)
                kept = None if kept is None else kept.slice(len(got))
            self.at += len(got)
        return largest

    def _next(self, most: int) -> tuple[Rows, KeptRows | None]:
        while self._chunk is not None and self._chunk.start + self._chunk.rows <= self.at:
            self._advance()
        chunk = self._chunk
        if chunk is None:
            return np.empty((0, self._width)), None
        first = self.at - chunk.start
        self._file, self._first = chunk.location, chunk.first_row + first
        if most < chunk.rows:  # decode only the rows to compare
            places = np.arange(chunk.rows) - first
            chunk = chunk.selected((places >= 0) & (places < most))
            first = 0
        read = chunk.numbers if self._outputs.sparse else chunk.matrix
        rows = read(np.dtype(np.float64))[first:]
        features = rows if isinstance(rows, SparseRows) else dense(rows)
        kept = chunk.passthrough
        return features, None if kept is None else kept.slice(first)

    def _advance(self) -> None:
        """Go to the next chunk. Check that parts that end before it have as many rows as the manifest says."""
        done, self._chunk = self._chunk, next(self._chunks, None)
        self.rows = 0 if done is None else done.start + done.rows
        for part in [*self._promised]:
            if self._chunk is not None and part == self._chunk.location:
                break
            expected = self._promised.pop(part)
            got = done.first_row + done.rows if done is not None and part == done.location else 0
            if got != expected:
                raise GateError(
                    f"{part}: expected {counted(expected, 'row')}, as {MANIFEST} says, got {got:,}"
                )

    def _compare_kept(self, expected: KeptRows | None, got: KeptRows) -> None:
        if self._labelled:
            expected, got = comparable_labels(self._file, self._first, expected, got)
        first = None if expected is None else difference(expected, got)
        if first is not None:
            source = "as the model predicts" if first.column in self._predicted else "as in the input"
            raise GateError(
                f"{self._file}: {spell_row(self._first + first.row)}, column {quoted(first.column)}: expected "
                f"{first.expected} {source}, got {first.got}"
            )

    def _difference(self, expected: Rows, got: Rows) -> float:
        """Return the largest difference, relative to its row's largest feature. Refuse differences beyond tolerance."""
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
            what = f"{self._outputs.what[:-1]} {column}" if self._names is None else self._names[column]
            raise GateError(
                f"{self._file}: {spell_row(self._first + row)}, {what}: expected {wanted:.9g}, got "
                f"{self._dtype.type(found):.9g}"
            )
        return float(relative.max(initial=0.0))

    @reading_output()
    def end(self) -> None:
        """Read the remaining rows, to count them."""
        while self._chunk is not None:
            self._advance()


def _names_of(outputs: Outputs, fields: list[Field], made: Reader) -> list[str] | None:
    """Return names of columns for messages. Return None for features, lists and files without a header."""
    named = outputs.what == "predictions" and len(fields) == outputs.width and not made.positional
    return [f"column {quoted(field.name)}" for field in fields] if named else None


def _differences(expected: Floats, got: Floats, dtype: np.dtype[Any]) -> tuple[Rows, Floats]:
    """Return absolute differences (n, width), and the largest absolute value (n,) of each expected row."""
    rounded = got.astype(dtype)
    with np.errstate(invalid="ignore"):
        apart: Floats = np.abs(rounded.astype(np.float64) - expected)
    apart[np.isnan(rounded) & np.isnan(expected)] = 0.0
    return apart, np.nan_to_num(np.abs(expected)).max(axis=1)


def _sparse_differences(expected: SparseRows, got: SparseRows, dtype: np.dtype[Any]) -> tuple[Rows, Floats]:
    """Return the same as `_differences`, for sparse rows."""
    wanted, found = (rows.csr.astype(dtype).astype(np.float64) for rows in (expected, got))
    apart = abs(wanted - found).tocsr()
    return SparseRows(apart.data, apart.indices, apart.indptr, expected.width), _largest_of_rows(expected)


def _largest_of_rows(rows: Rows) -> Floats:
    """Return the largest absolute value in each row, or NaN if the row has a NaN."""
    if not isinstance(rows, SparseRows):
        return np.abs(rows).max(axis=1)
    largest = np.zeros(len(rows))
    np.maximum.at(largest, rows.row_of, np.abs(rows.values).astype(np.float64))
    return largest


def _dtype(made: Reader, fields: list[Field]) -> np.dtype[Any]:
    """Return the dtype of the features. For `fixed_size_list<element: float>[4]`, it is float32."""
    spelled = {
        name for field in fields for name in re.findall(r"halffloat|float(?:16|32|64)?|double", field.spelled)
    }
    if len(spelled) != 1:
        raise DataError(
            f"{made.location}: expected features of one floating type, got {', '.join(sorted(spelled))}"
        )
    name = spelled.pop()
    return np.dtype(_OF_ARROW.get(name, name))


def _numbers(made: Reader, width: int) -> list[Field]:
    """Return the fields of features or predictions. In the file, they follow the passthrough columns."""
    last = made.fields[-1]
    if last.kind == "list" and last.width in (None, width):
        return [replace(last, width=width)]
    return list(made.fields[-width:])
