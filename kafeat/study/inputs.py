"""The data of an evaluation, read as often as needed: as columns, features, or a kernel matrix."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from kafeat.chain.program import Program
from kafeat.chain.tiles import Made
from kafeat.config import Config
from kafeat.contract.folds import RowKeys
from kafeat.contract.tile import InputRows, contiguous, dense, stacked
from kafeat.errors import DataError, quoted
from kafeat.io.columns.columns import Columns
from kafeat.io.columns.dialect import Dialect
from kafeat.io.columns.fields import require
from kafeat.io.columns.selection import match
from kafeat.io.formats import format_of_stream
from kafeat.io.options import InputOptions
from kafeat.io.readers.base import Chunk, Reader
from kafeat.io.readers.memory import DecodedChunk, reader_of
from kafeat.io.storage.base import Location, StandardStream
from kafeat.io.storage.local_path import LocalPath
from kafeat.io.storage.location import location_of
from kafeat.jobs.fit.fit import labelled
from kafeat.jobs.fit.labels import LabelNames, Labels, joint_labels, parse_test_rows
from kafeat.jobs.fit.split_by import KeyReader, SplitBy
from kafeat.maths.task import PredictionTask, TaskKind, joined
from kafeat.model.feature_map import FeatureMap
from kafeat.model.provenance import printable
from kafeat.runtime.run import chosen, fill_chunk
from kafeat.study.costs import timed
from kafeat.study.importance import places_of
from kafeat.study.learners import Inputs
from kafeat.study.request import EvaluationRequest
from kafeat.types import Array, Floats, Mask


@dataclass(frozen=True, eq=False)
class KernelMatrix:
    """Values (n, n) of a kernel; called with numbers of rows (k, 1) and (m, 1), it returns their block (k, m)."""

    values: Floats
    __name__: ClassVar[str] = "precomputed"

    def __call__(self, X: Floats, Y: Floats) -> Floats:
        return self.columns(X, Y[:, 0].astype(np.int64))

    def columns(self, X: Floats, rows: Array) -> Floats:
        """Return the kernel of the rows numbered in X (k, 1) with `rows` (m,): (k, m)."""
        block: Floats = self.values[np.ix_(X[:, 0].astype(np.int64), rows)]
        return block


_NO_ROWS = np.empty(0, dtype=np.intp)


class EvaluatedMap:
    """A map and the data that it is evaluated on; `fitted_on` are the rows of a kernel matrix that it is fitted on."""

    def __init__(
        self,
        fm: FeatureMap,
        data: RereadableData,
        request: EvaluationRequest,
        fitted_on: Array = _NO_ROWS,
    ) -> None:
        kernel = getattr(fm.chain.steps[0].step, "kernel", None)
        self._matrix = kernel if isinstance(kernel, KernelMatrix) else None
        self.map, self._data, self._jobs, self._fitted_on = fm, data, request.jobs, fitted_on
        self._reserved = reserved = request.reserved
        self.dtype = np.dtype(request.output_dtype or fm.dtype)
        with data.open() as source:
            columns = match(source, fm.columns, reserved)
            features = {column.name for column in columns.features}
            for name in reserved:
                if name in features:
                    raise DataError(
                        f"{source.location}: label {quoted(name)}: expected a column that is no feature of the map, "
                        "got one"
                    )

    @property
    def raw_key(self) -> tuple[object, ...]:
        """A key that is equal for maps with the same raw columns: their names, dtype, and steps that fill or code."""
        steps = [one.step for one in self.map.chain.steps]
        makers = [
            repr(step.recipe())
            for step in steps
            if step.traits.numbers.missing == "fill" or step.traits.columns.named
        ]
        return self.map.columns.names, self.map.input_dtype.name, *makers

    def _chunks(self, rows: Mask) -> Iterator[tuple[Array, Chunk]]:
        """Yield the numbers of these rows, and the rows, chunk by chunk."""
        with self._data.open() as source:
            columns = match(source, self.map.columns, self._reserved)
            yield from chosen(source.chunks(columns, (), self.map.chunk_rows), rows)

    def select_rows(self, rows: Mask) -> tuple[Array, InputRows]:
        """Return the numbers of these rows, and the rows as the map reads them, with texts and without zeros."""
        numbers, chunks = zip(*self._chunks(rows), strict=True)
        parts = [contiguous(chunk.numbers(self.map.input_dtype)) for chunk in chunks]
        return np.concatenate(numbers), stacked(parts)

    def _made(self, program: Program, rows: Chunk | InputRows, dtype: np.dtype[Any]) -> Floats:
        """Return what a program makes of rows, in `dtype`."""
        if not isinstance(rows, Chunk):
            rows = DecodedChunk(self._data.name, 0, len(rows), self.map.columns, rows)
        return fill_chunk(program, rows, self.map.chunk_rows, self._jobs, dtype)

    @property
    def raw(self) -> TimedInputs:
        """The columns that the map reads: missing numbers filled, and categories coded, as it does."""
        dtype, width = self.map.input_dtype, self._raw_width
        # One tile, as the chain cuts tiles of its own.
        program = Program(dtype, width, dtype, self.map.chunk_rows, lambda: _NumbersLoop(self))
        return TimedInputs(
            width, self._chunks, lambda chunk: self._made(program, chunk, dtype), standardize=True
        )

    @property
    def _raw_width(self) -> int:
        row = np.zeros((1, self.map.n_features_in), dtype=self.map.input_dtype)
        return int(self.numbers(row).shape[1])

    @property
    def n_features_in(self) -> int:
        """Number of columns that the map reads; of a kernel matrix, those of the rows that it is fitted on."""
        return self.map.n_features_in if self._matrix is None else self._raw_width

    def predictions(self, fm: FeatureMap, rows: Mask, levels: tuple[float, ...] = ()) -> tuple[Array, Floats]:
        """Return the numbers of these rows and what `fm`, this map with a predictor, predicts for them, (r, k).

        Behind numbers are the ends of the intervals of these levels.
        """
        program = fm.program("predictions", levels=levels)
        parts = [(numbers, self._made(program, some, program.dtype)) for numbers, some in self._chunks(rows)]
        return np.concatenate([numbers for numbers, _ in parts]), np.concatenate([part for _, part in parts])

    def predict(self, fm: FeatureMap, X: InputRows) -> Floats:
        """Return what `fm`, this map with a predictor, predicts of rows (n, d), (n, k)."""
        program = fm.program("predictions")
        return self._made(program, X, program.dtype)

    @property
    def places(self) -> dict[str, slice]:
        """The features of each column that the map reads; none of a kernel matrix."""
        return places_of(self.map.columns) if self._matrix is None else {}

    def numbers(self, X: InputRows) -> Floats:
        """Return rows with missing numbers filled, and categories coded, as the map does."""
        if self._matrix is not None:
            return self._matrix.columns(dense(X), self._fitted_on).astype(self.map.input_dtype)
        numbers = self.map.chain.numbers(X)
        gaps = np.isnan(numbers)  # which trees take as they are
        return np.where(gaps, 0.0, numbers).astype(numbers.dtype) if gaps.any() else numbers

    def transform(self, X: Chunk | InputRows) -> Floats:
        """Return the features of rows, rounded to the dtype of the output."""
        return self._made(self.map.program(), X, self.dtype)

    def exact_kernel(self, X: InputRows, Y: InputRows | None = None) -> Floats:
        """Return the exact kernel (n, m) of rows, of X (n, d) with itself if there is no Y (m, d)."""
        return self.map.chain.exact(X, X if Y is None else Y, np.dtype(self.map.dtype))

    @property
    def features(self) -> TimedInputs:
        """The map's features."""
        return TimedInputs(self.map.n_components, self._chunks, self.transform)


class _NumbersLoop:
    """A worker that makes the raw columns of a map."""

    def __init__(self, subject: EvaluatedMap) -> None:
        self._subject, self.rows = subject, subject.map.chunk_rows

    def __call__(self, X: InputRows, out: Floats, above: int = 0) -> Made:
        out[...] = self._subject.numbers(contiguous(X))
        return Made(out, None)


class TimedInputs(Inputs):
    """Inputs that count the seconds of reading and of making features, which are no part of learning.

    Attributes:
        reading: All seconds of reading so far.
        making: All seconds of making so far.
        last_making: Those of the last pass over rows.
    """

    def __init__(
        self,
        width: int,
        read: Callable[[Mask], Iterator[tuple[Array, Chunk]]],
        make: Callable[[Chunk], Floats],
        standardize: bool = False,
    ) -> None:
        super().__init__(width, self._timed, standardize)
        self._read, self._make = read, make
        self.reading = self.making = self.last_making = 0.0

    @property
    def seconds(self) -> float:
        """All seconds of reading and making so far."""
        return self.reading + self.making

    def _timed(self, rows: Mask) -> Iterator[tuple[Array, Floats]]:
        pieces, before = self._read(rows), self.making
        while True:
            piece, seconds = timed(partial(next, pieces, None))
            self.reading += seconds
            if piece is None:
                self.last_making = self.making - before
                return
            numbers, chunk = piece
            Z, seconds = timed(partial(self._make, chunk))
            self.making += seconds
            yield numbers, Z


@dataclass(frozen=True)
class RereadableData:
    """Data that can be read several times; made by `rereadable`."""

    data: Any
    reading: InputOptions
    place: str | None = None
    """Its name in messages, where that is not the name of the file."""
    stamp: str | None = None
    """Stamp of the file when it was first opened; later reads must see the same."""
    labels: LabelNames | None = None
    """The columns of labels, if only rows with labels are read."""
    fitted: Dialect | None = None
    """The dialect of a model, which holds where options and the file say nothing else."""

    @property
    def name(self) -> str:
        """The name of the file without its folders, for people."""
        if self.place is not None:
            return self.place
        return self.data.name if isinstance(self.data, Location) else "data in memory"

    @contextmanager
    def open(self) -> Iterator[Reader]:
        """Open a reader at the first row; a file that has changed is refused."""
        is_path = isinstance(self.data, Location)
        try:
            opened = (
                self.reading.open(self.data, self.stamp, fitted=self.fitted)
                if is_path
                else nullcontext(reader_of(self.data))
            )
        except DataError as error:
            if self.place is None:
                raise
            raise DataError(str(error).replace(str(self.data), self.place)) from None
        with opened as source:
            if self.place is not None:
                source.location = self.place
            yield source if self.labels is None else labelled(source, self.labels)
            source.check_unchanged()

    def columns_named(self, names: Sequence[str]) -> list[str]:
        """Return the columns that a model file names, in which control characters are replaced."""
        with self.open() as source:
            columns = {printable(field.name): field.name for field in source.fields}
        return [columns.get(name, name) for name in names]

    def test_rows_of(self, split: str) -> Mask:
        """Return true for the test rows of a column of train and test that a model file names."""
        [column] = self.columns_named([split])
        return parse_test_rows(self.label_columns({"split": [column]})[1][column])[0]

    def made(self, fm: FeatureMap) -> bool:
        """Return true if the map was fitted on these data."""
        with self.open() as source:
            return source.digest() in {origin.sha256 for origin in fm.provenance.sources}

    def labelled(self, labels: LabelNames, split: str | None = None) -> tuple[int, Array | None, Array]:
        """Return the number of rows, their joint labels (n,) or (n, k), and the values of the column of the split."""
        n, columns = self.label_columns({"--label": labels, "--split": [] if split is None else [split]})
        joint = joint_labels({name: columns[name] for name in labels}, self.name) if labels else None
        return n, joint, np.empty(0) if split is None else columns[split]

    def label_columns(self, options: Mapping[str, Sequence[str]]) -> tuple[int, dict[str, Array]]:
        """Return the number of rows, and whole columns of labels; the keys are options, for messages."""
        names = [name for requested in options.values() for name in requested]
        labels = {name: Labels(name) for name in names}
        parts: dict[str, list[Array]] = {name: [] for name in names}
        rows = 0
        with self.open() as source:
            for option, requested in options.items():
                require(source, requested, option)
            if not names and source.rows is not None:
                return source.rows, {}
            nothing = Columns((), source.positional, None)
            for chunk in source.coding(names).chunks(nothing, names, _ROWS):
                rows += chunk.rows
                for name in labels:
                    parts[name].append(labels[name].read(chunk))
        return rows, {name: joined(part) if part else np.empty(0) for name, part in parts.items()}

    def keys(self, config: Config) -> RowKeys | None:
        """Return the groups or times of all rows by which the config holds rows out; None if it does not."""
        split_by = SplitBy.of(config)
        if split_by is None:
            return None
        with self.open() as source:
            reader, nothing = KeyReader(split_by, source, config.seed), Columns((), source.positional, None)
            chunks = source.coding([split_by.column]).chunks(nothing, [split_by.column], _ROWS)
            parts = [reader.keys(chunk).values for chunk in chunks]
        return RowKeys(np.concatenate([np.empty(0), *parts]), split_by.ordered)

    def task_of(
        self, labels: Array, kind: TaskKind, make: Callable[[Array, TaskKind], PredictionTask]
    ) -> PredictionTask:
        """Return what `task_of` or `task_to_score` makes of these labels; an error names the data."""
        try:
            return make(labels, kind)
        except DataError as error:
            with self.open() as source:
                raise DataError(f"{source.location}: {error}") from None


_ROWS = 1 << 16


@contextmanager
def rereadable(
    data: Any, reading: InputOptions | None, labels: LabelNames | None = None
) -> Iterator[RereadableData]:
    """Make a path, an array or a table rereadable; standard input is copied to a temporary file.

    With `labels`, only the rows that have values in these columns are read.
    """
    reading = reading or InputOptions()
    place = location_of(data)
    if place is None:
        yield RereadableData(
            reader_of(data), reading, labels=labels
        )  # once: a stream of Arrow is gone after that
    elif not isinstance(place, StandardStream):
        entry = place.entry()
        yield RereadableData(place, reading, stamp=None if entry is None else entry.stamp, labels=labels)
    else:
        with tempfile.NamedTemporaryFile(prefix="kafeat-") as copy:
            shutil.copyfileobj(sys.stdin.buffer, copy)
            copy.flush()
            copy.seek(0)
            format = reading.input_format or format_of_stream(copy.read(6)).name
            yield RereadableData(
                LocalPath(copy.name), replace(reading, input_format=format), "-", labels=labels
            )
