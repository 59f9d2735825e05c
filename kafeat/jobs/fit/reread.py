"""Data that are read several times: files that must not change meanwhile, arrays and tables, and copies of streams."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np

from kafeat.config import Config
from kafeat.contract.folds import RowKeys
from kafeat.errors import DataError
from kafeat.io.columns.columns import Columns
from kafeat.io.columns.dialect import Dialect
from kafeat.io.columns.fields import require
from kafeat.io.formats import format_of_stream
from kafeat.io.options import InputOptions
from kafeat.io.readers.base import Reader
from kafeat.io.readers.memory import reader_of, table_of
from kafeat.io.storage.base import Location, StandardStream
from kafeat.io.storage.local_path import LocalPath
from kafeat.io.storage.location import location_of
from kafeat.jobs.fit.fit import labelled
from kafeat.jobs.fit.labels import LabelNames
from kafeat.jobs.fit.sample import KnownRows, RowReader, TrainingData
from kafeat.maths.task import PredictionTask, TaskKind, joined
from kafeat.model.feature_map import FeatureMap
from kafeat.model.provenance import printable
from kafeat.types import Array, Mask

_NONE: Mask = np.empty(0, dtype=bool)
_OF_NO_ROWS = KnownRows(_NONE, np.empty(0), None, np.empty(0))


class RowsKnown(NamedTuple):
    """The number n of rows, labels (n,) or (n, k), a mask of test rows, and groups or times. None if not requested."""

    n: int
    labels: Array | None = None
    test: Mask = _NONE
    keys: RowKeys | None = None


@dataclass(frozen=True)
class RereadableData:
    """Data that can be read several times. `rereadable` makes them."""

    data: Any
    reading: InputOptions
    place: str | None = None
    """The name of the data in messages, if it differs from the name of the file."""
    stamp: str | None = None
    """Stamp of the file when it was first opened; later reads must see the same."""
    labels: LabelNames | None = None
    """The columns of labels, if only rows with labels are read."""
    fitted: Dialect | None = None
    """The dialect of a model, which applies unless options or the file specify another."""

    @property
    def name(self) -> str:
        """The name of the file without its folders, for people."""
        if self.place is not None:
            return self.place
        return self.data.name if isinstance(self.data, Location) else "data in memory"

    @contextmanager
    def open(self) -> Iterator[Reader]:
        """Open a reader at the first row. A file that has changed is refused."""
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

    def of_columns(self, columns: Mapping[str, Array]) -> Self:
        """Return data in memory that consist of these columns, under the name of the original data."""
        return replace(self, data=table_of(columns), place=self.name, stamp=None)

    def columns_named(self, names: Sequence[str]) -> list[str]:
        """Return the real names of columns, for names from a model file, in which control characters are replaced."""
        with self.open() as source:
            columns = {printable(field.name): field.name for field in source.fields}
        return [columns.get(name, name) for name in names]

    def learned_from(self, fm: FeatureMap, n: int) -> Mask | None:
        """Return a mask (n,) of the rows that a map may have learned from, or None if it was fitted on other data."""
        with self.open() as source:
            if source.digest() not in {origin.sha256 for origin in fm.provenance.sources}:
                return None
        if fm.provenance.split is None:
            return np.ones(n, dtype=bool)
        [split] = self.columns_named([fm.provenance.split])
        return ~self.rows_known((), split).test

    def rows_known(
        self, labels: LabelNames, split: str | None = None, config: Config | None = None
    ) -> RowsKnown:
        """Return labels, test rows and keys of all rows. `config` names groups or times to hold out rows by."""
        with self.open() as source:
            require(source, labels, "--label")
            require(source, () if split is None else (split,), "--split")
            reader = RowReader(TrainingData(source, labels, split), config)
            if not reader.names and source.rows is not None:
                return RowsKnown(source.rows)
            nothing = Columns((), source.positional, None)
            chunks = reader.source.chunks(nothing, reader.names, _ROWS)
            taken, of_labels, _, of_keys = zip(_OF_NO_ROWS, *map(reader.read, chunks), strict=True)
        trained, split_by = np.concatenate(taken), reader.split_by
        keys = RowKeys(np.concatenate(of_keys), split_by.ordered) if split_by else None
        return RowsKnown(len(trained), joined(of_labels) if labels else None, ~trained, keys)

    def task_of(
        self, labels: Array, kind: TaskKind, make: Callable[..., PredictionTask], names: LabelNames
    ) -> PredictionTask:
        """Call `make`, which is `task_of` or `task_to_score`, for these labels. An error names the data."""
        try:
            return make(labels, kind, names)
        except DataError as error:
            with self.open() as source:
                raise DataError(f"{source.location}: {error}") from None


_ROWS = 1 << 16


@contextmanager
def rereadable(
    data: Any, reading: InputOptions | None, labels: LabelNames | None = None
) -> Iterator[RereadableData]:
    """Make a path, an array or a table rereadable. Standard input is copied to a temporary file.

    With `labels`, only the rows that have values in these columns are read.
    """
    reading = reading or InputOptions()
    place = location_of(data)
    if place is None:
        # `reader_of` is called once, because it reads a stream of Arrow to its end.
        yield RereadableData(reader_of(data), reading, labels=labels)
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
