"""A map on data that are read as often as needed: columns, features, exact kernels and predictions of some rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from kafeat.chain.program import Program
from kafeat.chain.tiles import Made
from kafeat.contract.tile import InputRows, contiguous, dense, stacked
from kafeat.errors import DataError, quoted
from kafeat.io.columns.selection import match
from kafeat.io.readers.base import Chunk
from kafeat.io.readers.memory import DecodedChunk
from kafeat.jobs.fit.reread import RereadableData
from kafeat.model.feature_map import FeatureMap
from kafeat.runtime.run import chosen, fill_chunk
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


class MapOnData:
    """A map and the data that it is used on, whose rows are made into columns, features, kernels and predictions.

    `reserved` columns are no features, and `dtype` is that of the features. `fitted_on` are the rows of a kernel matrix
    that the map is fitted on.
    """

    def __init__(
        self,
        fm: FeatureMap,
        data: RereadableData,
        *,
        reserved: Sequence[str] = (),
        dtype: str | None = None,
        jobs: int | None = None,
        fitted_on: Array = _NO_ROWS,
    ) -> None:
        kernel = getattr(fm.chain.steps[0].step, "kernel", None)
        self._matrix = kernel if isinstance(kernel, KernelMatrix) else None
        self.map, self._data, self._jobs, self._fitted_on = fm, data, jobs, fitted_on
        self._reserved, self.dtype = reserved, np.dtype(dtype or fm.dtype)
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
    def by_numbers(self) -> bool:
        """True if the columns are numbers of the rows of a kernel matrix."""
        return self._matrix is not None

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

    def chunks(self, rows: Mask) -> Iterator[tuple[Array, Chunk]]:
        """Yield the numbers of these rows, and the rows, chunk by chunk."""
        with self._data.open() as source:
            columns = match(source, self.map.columns, self._reserved)
            yield from chosen(source.chunks(columns, (), self.map.chunk_rows), rows)

    def select_rows(self, rows: Mask) -> tuple[Array, InputRows]:
        """Return the numbers of these rows, and the rows as the map reads them, with texts and without zeros."""
        numbers, chunks = zip(*self.chunks(rows), strict=True)
        parts = [contiguous(chunk.numbers(self.map.input_dtype)) for chunk in chunks]
        return np.concatenate(numbers), stacked(parts)

    def _made(self, program: Program, rows: Chunk | InputRows, dtype: np.dtype[Any]) -> Floats:
        """Return what a program makes of rows, in `dtype`."""
        if not isinstance(rows, Chunk):
            rows = DecodedChunk(self._data.name, 0, len(rows), self.map.columns, rows)
        return fill_chunk(program, rows, self.map.chunk_rows, self._jobs, dtype)

    def raw(self, rows: Chunk) -> Floats:
        """Return the columns that the map reads: missing numbers filled, and categories coded, as it does."""
        dtype = self.map.input_dtype
        # One tile, as the chain cuts tiles of its own.
        program = Program(dtype, self.raw_width, dtype, self.map.chunk_rows, lambda: _NumbersLoop(self))
        return self._made(program, rows, dtype)

    @property
    def raw_width(self) -> int:
        """Number of the columns that the map reads, as numbers."""
        row = np.zeros((1, self.map.n_features_in), dtype=self.map.input_dtype)
        return int(self.numbers(row).shape[1])

    @property
    def n_features_in(self) -> int:
        """Number of columns that the map reads; of a kernel matrix, those of the rows that it is fitted on."""
        return self.map.n_features_in if self._matrix is None else self.raw_width

    def predictions(self, fm: FeatureMap, rows: Mask, levels: tuple[float, ...] = ()) -> tuple[Array, Floats]:
        """Return the numbers of these rows and what `fm`, this map with a predictor, predicts for them, (r, k).

        Behind numbers are the ends of the intervals of these levels.
        """
        program = fm.program("predictions", levels=levels)
        parts = [(numbers, self._made(program, some, program.dtype)) for numbers, some in self.chunks(rows)]
        return np.concatenate([numbers for numbers, _ in parts]), np.concatenate([part for _, part in parts])

    def predict(self, fm: FeatureMap, X: InputRows) -> Floats:
        """Return what `fm`, this map with a predictor, predicts of rows (n, d), (n, k)."""
        program = fm.program("predictions")
        return self._made(program, X, program.dtype)

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


class _NumbersLoop:
    """A worker that makes the raw columns of a map."""

    def __init__(self, subject: MapOnData) -> None:
        self._subject, self.rows = subject, subject.map.chunk_rows

    def __call__(self, X: InputRows, out: Floats, above: int = 0) -> Made:
        out[...] = self._subject.numbers(contiguous(X))
        return Made(out, None)
