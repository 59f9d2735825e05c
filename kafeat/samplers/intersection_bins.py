"""Histograms: each entry becomes a bar of ones. A simple alternative to homogeneous, for comparison."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from kafeat.contract.checks import refuse_negative
from kafeat.contract.kernel_inputs import KernelInputs
from kafeat.contract.step import Sample, Step, Transform, parameter
from kafeat.contract.tile import Rows, SparseRows, dense
from kafeat.contract.traits import NumberTraits, Traits
from kafeat.maths.kernel import KernelParameters
from kafeat.maths.kernels.histograms import IntersectionKernel
from kafeat.types import Array, ArrayOf, Floats, Scratch, Shapes, State


class IntersectionBins(Step):
    """Unary encoding: z(x)·z(y) ≈ Σ_i min(x_i, y_i), with |error| ≤ max_i/(4N) per entry, max_i the fitted maximum.

    With N = n_bins and R = N x/max, output l = 0..N − 1 of an input is √(max/N)·clip(R − l, 0, 1). The error is 0
    unless x_i and y_i fall in the same bin. Outputs come in blocks, bin 0 of every input first. Values above the
    maximum are clipped to it.

    Source: Maji & Berg 2009, "Max-margin additive classifiers for detection", section 3.
    """

    always: ClassVar[Traits] = Traits(numbers=NumberTraits(spreads="ignores", refuses_negative=True))

    n_bins: Annotated[int, Field(ge=1, le=10_000)] = parameter(10, "N, outputs per input")

    def fit(self, sample: Sample, rng: np.random.Generator) -> State:
        refuse_negative(sample.X)
        return {"maximum": sample.X.max(axis=0).astype(np.float64)}

    def state_shapes(self, state: State, n_features_in: int) -> Shapes:
        return {"maximum": ArrayOf((n_features_in,), sign="of at least 0")}

    def n_features_out(self, state: State, n_features_in: int) -> int:
        return n_features_in * self.n_bins

    def bind(self, state: State, n_features_in: int, dtype: np.dtype[Any]) -> Transform:
        return _BinsTransform(self.n_bins, state["maximum"], dtype)

    def exact(self, state: State, pair: KernelInputs) -> KernelInputs:
        return IntersectionKernel().gram(pair, KernelParameters())


class _BinsTransform(Transform):
    """A transform with one division per entry, then a clip per output."""

    gives_sparse = True

    def __init__(self, n_bins: int, maximum: Array, dtype: np.dtype[Any]) -> None:
        self.n_features_in = len(maximum)
        self.n_features_out = n_bins * len(maximum)
        self._n_bins, self._dtype = n_bins, dtype
        self._maximum = maximum.astype(dtype)
        self._divisor = np.where(self._maximum > 0.0, self._maximum, dtype.type(1.0))
        self._amplitude = np.sqrt(maximum / n_bins).astype(dtype)

    def scratch(self, rows: int) -> Scratch:
        shape = (rows, self.n_features_in)
        return np.empty(shape, dtype=self._dtype), np.empty(shape, dtype=bool)

    def to_sparse(self, X: Rows) -> tuple[SparseRows, Array]:
        from scipy.sparse import csr_array

        rows = SparseRows.of(X).csr
        values, (row, column) = rows.data[rows.data != 0.0], rows.nonzero()
        if values.min(initial=0.0) < 0.0:
            refuse_negative(dense(X))
        clipped = np.bincount(row[values > self._maximum[column]], minlength=len(X))
        levels = np.minimum(values, self._maximum[column])
        levels /= self._divisor[column]
        levels *= self._n_bins
        counts = np.ceil(levels).astype(np.int64)
        bins = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        column = np.repeat(column, counts).astype(np.int64)
        # the difference of a number and a smaller whole number is exact
        values = np.clip(np.repeat(levels, counts) - bins.astype(self._dtype), 0.0, 1.0)
        values *= self._amplitude[column]
        places = np.repeat(row, counts), bins * self.n_features_in + column
        features = csr_array((values, places), shape=(len(X), self.n_features_out))
        return SparseRows.of(features), clipped

    def apply(self, X: Floats, out: Floats, scratch: Scratch) -> Array:
        level, above = scratch
        refuse_negative(X)
        np.greater(X, self._maximum, out=above)
        np.minimum(X, self._maximum, out=level)
        level /= self._divisor
        level *= self._n_bins
        for part in np.split(out, self._n_bins, axis=1):
            np.clip(level, 0.0, 1.0, out=part)
            part *= self._amplitude
            level -= 1.0
        clipped: Array = above.sum(axis=1)
        return clipped
