"""A map and the data that it is asked about: raw columns and features, as often as they are wanted."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from kafeat.errors import DataError, quoted
from kafeat.evaluation.learners import Inputs
from kafeat.feature_map import FeatureMap
from kafeat.io.selection import match
from kafeat.jobs.rereading import Data
from kafeat.jobs.rows import matrices
from kafeat.sparse import dense
from kafeat.types import Array, Floats, Mask


class Subject:
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
                        f"{source.place}: label {quoted(name)}: expected a column that is no feature of the map, "
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


class Watch:
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
