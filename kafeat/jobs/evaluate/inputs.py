"""A map and the data that it is asked about: raw columns and features, as often as they are wanted."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kafeat.contract.sparse_rows import dense
from kafeat.errors import DataError, quoted
from kafeat.evaluation.learners import Inputs
from kafeat.io.columns.columns import Columns
from kafeat.io.columns.fields import require
from kafeat.io.columns.selection import match
from kafeat.io.readers.base import Reader
from kafeat.io.readers.memory import reader_of
from kafeat.io.readers.open import is_arrow
from kafeat.io.storage.locations import entry_of
from kafeat.io.storage.uri import name_of
from kafeat.jobs.fit.sample import Labels, matrices
from kafeat.jobs.transform.options import InputOptions
from kafeat.model.feature_map import FeatureMap
from kafeat.types import Array, Floats, Mask


class EvaluatedMap:
    """A map and the data that it is asked about."""

    def __init__(
        self, fm: FeatureMap, data: Data, n: int, aside: list[str], jobs: int | None, dtype: str | None
    ) -> None:
        # Rows are read as numbers once; the map then takes them as they are.
        self._fm, self._data, self._n, self._aside, self._jobs = fm, data, n, aside, jobs
        self.dtype = np.dtype(dtype or fm.dtype)
        self.map = replace(fm, columns=fm.columns.as_read)
        with data.open() as source:
            columns = match(source, fm.columns, aside)
            own = {column.name for column in columns.features}
            for name in aside:
                if name in own:
                    raise DataError(
                        f"{source.location}: label {quoted(name)}: expected a column that is no feature of the map, "
                        "got one"
                    )

    @property
    def plain(self) -> tuple[object, ...]:
        """What the raw columns follow from: which they are, and how they are made numbers."""
        steps = [one.step for one in self._fm.chain.steps]
        makers = [repr(step.recipe()) for step in steps if step.missing == "fill" or step.coded_columns]
        return self._fm.columns.names, self._fm.input_dtype.name, *makers

    def _matrices(self, rows: Mask) -> Iterator[tuple[Array, Floats]]:
        """These rows, as the map reads them, piece by piece."""
        with self._data.open() as source:
            columns = match(source, self._fm.columns, self._aside)
            chunks = source.chunks(columns, (), self._fm.chunk_rows)
            for chunk, X in matrices(chunks, self._fm.input_dtype):
                wanted = np.flatnonzero(rows[chunk.start : chunk.start + chunk.rows])
                if len(wanted):
                    yield chunk.start + wanted, np.ascontiguousarray(dense(X[wanted]))

    def some(self, rows: Array) -> tuple[Array, Floats]:
        """These rows as one matrix, with their numbers."""
        mask = np.zeros(self._n, dtype=bool)
        mask[rows] = True
        parts = list(self._matrices(mask))
        return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])

    @property
    def raw(self) -> Inputs:
        """The columns that the map reads: missing numbers filled, and categories coded, as it does."""
        numbers = self._fm.chain.numbers
        width = numbers(np.zeros((1, self._fm.n_features_in), dtype=self._fm.input_dtype)).shape[1]

        def blocks(rows: Mask) -> Iterator[tuple[Array, Floats]]:
            for found, X in self._matrices(rows):
                yield found, numbers(X)

        return Inputs(width, blocks, standardize=True)

    def transform(self, X: Floats) -> Floats:
        """The features of rows, rounded as an output of that dtype would be."""
        return self.map.transform(X, self._jobs, out=np.empty((len(X), self.map.n_components), self.dtype))

    @property
    def features(self) -> Inputs:
        """The map's features."""

        def blocks(rows: Mask) -> Iterator[tuple[Array, Floats]]:
            for found, X in self._matrices(rows):
                yield found, self.transform(X)

        return Inputs(self._fm.n_components, blocks)


class TimedInputs:
    """Counts the seconds that reading and transforming take, which are no learning."""

    def __init__(self, inputs: Inputs) -> None:
        self._inputs, self.seconds = inputs, 0.0

    def blocks(self, rows: Mask) -> Iterator[tuple[Array, Floats]]:
        """The blocks of the inputs."""
        pieces = self._inputs.blocks(rows)
        while True:
            started = time.perf_counter()
            piece = next(pieces, None)
            self.seconds += time.perf_counter() - started
            if piece is None:
                return
            yield piece


@dataclass(frozen=True)
class Data:
    """Where rows come from, as often as they are asked for; made by `rereadable`."""

    what: Any
    reading: InputOptions
    place: str | None = None
    """What messages call it, where that is not its own name."""
    stamp: str | None = None
    """That of a file when it was first looked at: all that read it later must see the same."""

    @property
    def name(self) -> str:
        """For people: the name of the file without its folders."""
        if self.place is not None:
            return self.place
        return name_of(self.what) if isinstance(self.what, str) else "data in memory"

    @contextmanager
    def open(self) -> Iterator[Reader]:
        """The source, from its first row on."""
        named = isinstance(self.what, str)
        try:
            opened = self.reading.open(self.what, self.stamp) if named else nullcontext(reader_of(self.what))
        except DataError as error:
            if self.place is None:
                raise
            raise DataError(str(error).replace(self.what, self.place)) from None
        with opened as source:
            if self.place is not None:
                source.location = self.place
            yield source
            source.check_unchanged()

    def whole(self, asked: Mapping[str, str | None]) -> tuple[int, dict[str, Array]]:
        """The number of rows, and these columns of labels, whole; keys say who asked for them."""
        names = [name for name in asked.values() if name is not None]
        parts: dict[str, list[Array]] = {name: [] for name in names}
        read = {name: Labels(name) for name in names}
        rows = 0
        with self.open() as source:
            for option, name in asked.items():
                require(source, [] if name is None else [name], option)
            if not names and source.rows is not None:
                return source.rows, {}
            for chunk in source.chunks(Columns((), source.positional, None), list(names), _ROWS):
                rows += chunk.rows
                for name, labels in read.items():
                    parts[name].append(labels.read(chunk))
        return rows, {name: np.concatenate(found) if found else np.empty(0) for name, found in parts.items()}


_ROWS = 1 << 16


@contextmanager
def rereadable(data: Any, reading: InputOptions | None) -> Iterator[Data]:
    """A path, an array or a table; standard input is copied to a file first, as it can be read but once."""
    reading = reading or InputOptions()
    if not isinstance(data, str | os.PathLike):
        yield Data(data, reading)
    elif os.fspath(data) != "-":
        entry = entry_of(os.fspath(data))
        yield Data(os.fspath(data), reading, stamp=None if entry is None else entry.stamp)
    else:
        with tempfile.NamedTemporaryFile(prefix="kafeat-", suffix=".csv") as copy:
            shutil.copyfileobj(sys.stdin.buffer, copy)
            copy.flush()
            copy.seek(0)
            found = "arrow" if is_arrow(copy.read(4)) else "csv"
            yield Data(copy.name, replace(reading, format=reading.format or found), "-")
