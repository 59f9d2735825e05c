"""A map on data that can be read repeatedly: columns, features, exact kernels and predictions of some rows.

The seconds for reading and for computing features are counted here, apart from those of a learner.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Self, TypeVar

import numpy as np

from kafeat.chain.program import Program
from kafeat.chain.references import closed_form, components, kernel_before_pca
from kafeat.chain.tiles import Made
from kafeat.contract.tile import InputRows, contiguous, dense, stacked
from kafeat.errors import DataError, quoted
from kafeat.io.columns.selection import match
from kafeat.io.readers.base import Chunk
from kafeat.io.readers.memory import DecodedChunk
from kafeat.jobs.fit.reread import RereadableData
from kafeat.maths.kernel_error import distortion, kernel_error, kernel_pca
from kafeat.model.feature_map import FeatureMap
from kafeat.runtime.run import chosen, fill_chunk
from kafeat.types import Array, Floats, Mask


@dataclass(frozen=True, eq=False)
class KernelMatrix:
    """Values (n, n) of a kernel. Called with row numbers (k, 1) and (m, 1), it returns their block (k, m)."""

    values: Floats
    __name__: ClassVar[str] = "precomputed"

    def __call__(self, X: Floats, Y: Floats) -> Floats:
        return self.columns(X, Y[:, 0].astype(np.int64))

    def columns(self, X: Floats, rows: Array) -> Floats:
        """Return the block (k, m) of the kernel for the row numbers in X (k, 1) and `rows` (m,)."""
        block: Floats = self.values[np.ix_(X[:, 0].astype(np.int64), rows)]
        return block


T = TypeVar("T")


def timed(work: Callable[[], T], apart: Callable[[], float] = lambda: 0.0) -> tuple[T, float]:
    """Return the result of `work()` and its seconds, without the seconds that `work` adds to the total `apart()`."""
    before, started = apart(), time.perf_counter()
    result = work()
    return result, time.perf_counter() - started - (apart() - before)


class Inputs:
    """Inputs of a learner that are read repeatedly. If `standardize` is true, as for raw columns, learners scale them.

    Attributes:
        reading: Seconds spent on reading so far.
        making: Seconds spent so far on computing the inputs from what was read.
        last_making: The part of `making` that belongs to the last pass over rows.
    """

    def __init__(
        self,
        width: int,
        read: Callable[[Mask], Iterator[tuple[Array, Any]]],
        make: Callable[[Any], Floats] = np.asarray,
        standardize: bool = False,
    ) -> None:
        self.width, self.standardize, self._read, self._make = width, standardize, read, make
        self.reading = self.making = self.last_making = 0.0

    @classmethod
    def of(cls, Z: Floats) -> Self:
        """Return inputs for an array Z (n, width) in memory."""
        return cls(Z.shape[1], lambda rows: iter([(np.flatnonzero(rows), Z[rows])]))

    @property
    def seconds(self) -> float:
        """Seconds of `reading` and `making` so far."""
        return self.reading + self.making

    def blocks(self, rows: Mask) -> Iterator[tuple[Array, Floats]]:
        """Yield the rows in a mask (n,) in blocks: their numbers (r,) and their values (r, width)."""
        pieces, before = self._read(rows), self.making
        while True:
            piece, seconds = timed(partial(next, pieces, None))
            self.reading += seconds
            if piece is None:
                self.last_making = self.making - before
                return
            Z, seconds = timed(partial(self._make, piece[1]))
            self.making += seconds
            yield piece[0], Z

    def joined(self, rows: Mask, then: Callable[[Floats], Floats] = np.asarray) -> tuple[Array, Floats]:
        """Apply `then` to each block of these rows. Return the numbers of the rows, and the joined results."""
        parts = [(numbers, then(Z)) for numbers, Z in self.blocks(rows)]
        numbers, made = zip(*parts, strict=True)
        return np.concatenate(numbers), np.concatenate(made)

    def without(self, columns: Array) -> Inputs:
        """Return inputs without the columns that have these indices."""
        return Inputs(self.width - len(columns), self.blocks, partial(np.delete, obj=columns, axis=1))


_OF_PCA = (
    "for kernel PCA, errors compare components with the centred exact kernel of the steps before pca; the exact kernel "
    "machine learns from the components"
)
_NO_ROWS = np.empty(0, dtype=np.intp)


class MapOnData:
    """A map with data, whose rows it turns into raw columns, features, exact kernels and predictions.

    `reserved` columns are not features, and `dtype` is that of the features. For a precomputed kernel `matrix` (n, n),
    the data are row numbers of the matrix, and `fitted_on` are the numbers of the rows that the map is fitted on.
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
        self.matrix = kernel if isinstance(kernel, KernelMatrix) else None
        self.map, self._data, self._jobs, self._fitted_on = fm, data, jobs, fitted_on
        self._reserved, self.dtype = reserved, np.dtype(dtype or fm.dtype)
        with data.open() as source:
            columns = match(source, fm.columns, reserved)
            features = {column.name for column in columns.features}
            for name in reserved:
                if name in features:
                    raise DataError(
                        f"{source.location}: label {quoted(name)}: expected a column that is not a feature of the map, "
                        "got one"
                    )

    @property
    def raw_key(self) -> tuple[object, ...]:
        """A key that is equal for maps with the same raw columns: names, dtype, and steps that impute or encode."""
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
        """Return the numbers of these rows, and the rows as the map reads them, which may be texts or sparse."""
        numbers, chunks = zip(*self.chunks(rows), strict=True)
        parts = [contiguous(chunk.numbers(self.map.input_dtype)) for chunk in chunks]
        return np.concatenate(numbers), stacked(parts)

    def _made(self, program: Program, rows: Chunk | InputRows, dtype: np.dtype[Any]) -> Floats:
        """Run a program on rows, and return its results in `dtype`."""
        if not isinstance(rows, Chunk):
            rows = DecodedChunk(self._data.name, 0, len(rows), self.map.columns, rows)
        return fill_chunk(program, rows, self.map.chunk_rows, self._jobs, dtype)

    def raw(self) -> Inputs:
        """Return the columns that the map reads, with missing numbers filled and categories coded as in the map."""
        dtype, width = self.map.input_dtype, self.raw_width

        def make(X: InputRows, out: Floats, _above: int) -> Made:
            out[...] = self.numbers(contiguous(X))
            return Made(out, None)

        # `numbers` cuts chunks into tiles, so the program gets a whole chunk at a time.
        program = Program(dtype, width, dtype, self.map.chunk_rows, lambda: make)
        return Inputs(width, self.chunks, partial(self._made, program, dtype=dtype), standardize=True)

    def features(self) -> Inputs:
        """Return the features of the map."""
        return Inputs(self.map.n_components, self.chunks, self.transform)

    @property
    def raw_width(self) -> int:
        """The number of columns that the map reads, after categories are coded as numbers."""
        row = np.zeros((1, self.map.n_features_in), dtype=self.map.input_dtype)
        return int(self.numbers(row).shape[1])

    @property
    def n_features_in(self) -> int:
        """The number of columns that the map reads or, for a kernel matrix, the number of rows that it is fitted on."""
        return self.map.n_features_in if self.matrix is None else self.raw_width

    def predictions(self, fm: FeatureMap, rows: Mask, levels: tuple[float, ...] = ()) -> tuple[Array, Floats]:
        """Return the numbers of these rows, and predictions (r, k) by `fm`, which is this map with a predictor.

        If numbers are predicted, the ends of the intervals of these levels follow in more columns.
        """
        program = fm.program("predictions", levels=levels)
        make = partial(self._made, program, dtype=program.dtype)
        return Inputs(program.width, self.chunks, make).joined(rows)

    def predict(self, fm: FeatureMap, X: InputRows) -> Floats:
        """Return the predictions (n, k) for rows (n, d) by `fm`, which is this map with a predictor."""
        program = fm.program("predictions")
        return self._made(program, X, program.dtype)

    def numbers(self, X: InputRows) -> Floats:
        """Return rows with missing numbers filled and categories coded as in the map."""
        if self.matrix is not None:
            return self.matrix.columns(dense(X), self._fitted_on).astype(self.map.input_dtype)
        numbers = self.map.chain.numbers(X)
        gaps = np.isnan(numbers)  # steps such as trees may leave gaps; learners accept none
        return np.where(gaps, 0.0, numbers).astype(numbers.dtype) if gaps.any() else numbers

    def transform(self, X: Chunk | InputRows) -> Floats:
        """Return the features of rows, rounded to the dtype of the output."""
        return self._made(self.map.program(), X, self.dtype)

    def exact_kernel(self, X: InputRows, Y: InputRows | None = None) -> Floats:
        """Return the exact kernel (n, m) of rows X (n, d) and Y (m, d). If Y is None, use X for both."""
        return self.map.chain.exact(X, X if Y is None else Y, np.dtype(self.map.dtype))

    def kernel_with(self, Y: InputRows, most: int) -> Inputs:
        """Return inputs of width m: the exact kernel of each row with the rows Y (m, d), in blocks of `most` rows."""

        def read(rows: Mask) -> Iterator[tuple[Array, InputRows]]:
            numbers, X = self.select_rows(rows)
            return ((numbers[i : i + most], X[i : i + most]) for i in range(0, len(X), most))

        return Inputs(len(Y), read, partial(self.exact_kernel, Y=Y))

    def errors(self, X: InputRows) -> tuple[dict[str, Any], str | None, tuple[Floats, Floats]]:
        """Compare the map with its exact kernel on rows X.

        Return (1) errors and seconds, (2) a note on the kernel, or None, and (3) the kernel (n, n) and the features.
        """
        chain = self.map.chain
        self.map.program()  # compute derived arrays before the time is measured
        made, transform_seconds = timed(partial(self.transform, X))
        Z: Floats = made.astype(np.float64)
        K, exact_seconds = timed(partial(self.exact_kernel, X))
        reference, more = chain.exact_kernel_note(), dict[str, Any](closed_form(chain, X))
        centred = kernel_before_pca(chain, X)
        if centred is not None:
            K, Z, reference = centred, np.asarray(components(chain, Z)), _OF_PCA
            more |= kernel_pca(K, Z)
        if chain.steps[-1].step.kind == "projection":
            more |= distortion(K, Z)
        values = {
            "transform_seconds": transform_seconds, "exact_seconds": exact_seconds, "kernel_mean": float(K.mean()),
            **kernel_error(K, Z), **more,
        }  # fmt: skip
        return values, reference, (K, Z)
