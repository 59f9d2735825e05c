"""A fitted model that is ready to run, as programs for features, sparse features and predictions."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Literal

import numpy as np

from kafeat.chain.bound_chain import PREDICTION_DTYPE, after
from kafeat.chain.chain import Chain, FittedStep
from kafeat.chain.tiles import LEAST_ROWS, Made, TileLoop, tile_rows, tiles
from kafeat.contract.checks import beyond
from kafeat.contract.step import DOUBLE, Transform
from kafeat.contract.tile import InputRows, SparseRows, TextRows
from kafeat.errors import InvalidValueError, UsageError
from kafeat.types import Array, Floats

What = Literal["features", "predictions"]


WithIntervals = Callable[[Transform, np.dtype[Any], Sequence[float]], Transform]
"""Extends a predictor's transform: after the predictions, it writes the two ends of the interval for each level."""


Worker = Callable[[InputRows, Any, int], Made]
"""Computes the results of the rows of a chunk, tile by tile, with buffers for one thread.

Arguments are (1) the rows, (2) the output array (n, width), or None for sparse rows, and (3) the position of the first
row in its tile. An error of a row is raised as `InvalidValueError`.
"""


@dataclass(frozen=True)
class Program:
    """Compute features or predictions of rows. `Programs` makes programs, and `runtime/run.py` runs them.

    Attributes:
        reads: The dtype of the rows that it expects.
        width: Number of results per row.
        dtype: The dtype in which results are computed.
        rows: Height of a tile.
        worker: Makes a worker. All workers share the arrays that were derived from the fitted state.
        behind: Number of features that follow the predictions, if both are summed.
    """

    reads: np.dtype[Any]
    width: int
    dtype: np.dtype[Any]
    rows: int
    worker: Callable[[], Worker]
    behind: int = 0


class Programs:
    """The programs of a fitted model, each made at its first use: `programs("predictions")` returns one."""

    def __init__(
        self,
        chain: Chain,
        dtype: str,
        predictor: FittedStep | None = None,
        intervals: WithIntervals | None = None,
    ) -> None:
        self._chain, self._dtype, self._predictor = chain, np.dtype(dtype), predictor
        self._intervals = intervals
        self._made: dict[tuple[Any, ...], Program] = {}

    def __call__(
        self,
        what: What = "features",
        *,
        scale: float | None = None,
        dtype: np.dtype[Any] | None = None,
        sparse: bool = False,
        sums: bool = False,
        levels: tuple[float, ...] = (),
    ) -> Program:
        """Return the program for the features or the predictions.

        Parameters
        ----------
        what : {"features", "predictions"}, default "features"
            Predictions need a predictor.
        scale : float or None, default None
            Factor that multiplies all features.
        dtype : dtype or None, default None
            Dtype of sparse features; None means that of the model. Dense features get the dtype of their output array.
        sparse : bool, default False
            True makes sparse rows. The last step has to be one that `gives_sparse`.
        sums : bool, default False
            True puts the features after the predictions, so that both can be summed.
        levels : tuple of float, default ()
            Probabilities of the intervals of numbers, whose ends follow the predictions.

        Returns
        -------
        Program
            The program.
        """
        key = (what, scale, dtype, sparse, sums, levels)
        if key not in self._made:
            self._made[key] = (
                self._sparse(dtype or self._dtype) if sparse else self._dense(what, scale, sums, levels)
            )
        return self._made[key]

    @cached_property
    def transforms(self) -> Sequence[Transform]:
        """The transforms of the steps. All programs with dense results share the arrays of these transforms."""
        return self._chain.transforms(self._dtype)

    @property
    def gives_sparse(self) -> bool:
        """True if the features can be made as sparse rows."""
        return self._last.gives_sparse

    @cached_property
    def _last(self) -> Transform:
        return self._chain.steps[-1].bind(self._dtype_of_last)

    @property
    def _dtype_of_last(self) -> np.dtype[Any]:
        """The dtype in which the last step computes: float64 if all steps use float64, otherwise the map's dtype."""
        return DOUBLE if self._chain.cast_after == len(self._chain.steps) else self._dtype

    def _dense(self, what: What, scale: float | None, sums: bool, levels: tuple[float, ...]) -> Program:
        made_in, predictor = self._dtype, None
        if what == "predictions":
            if self._predictor is None:
                raise TypeError("a map without a predictor has no predictions")
            made_in, predictor = PREDICTION_DTYPE, self._predictor.bind(self._dtype)
            if levels and self._intervals is not None:
                predictor = self._intervals(predictor, self._dtype, levels)
        transform = self._chain.joined(
            self.transforms, self._dtype, predictor=predictor, factor=scale, sums=sums
        )
        behind = self._chain.n_components if sums else 0
        return Program(
            transform.reads(made_in), transform.n_features_out - behind, made_in, tile_rows(transform),
            _of_thread(partial(TileLoop, transform, made_in)), behind,
        )  # fmt: skip

    def _sparse(self, dtype: np.dtype[Any]) -> Program:
        chain, last = self._chain, self._last
        if not last.gives_sparse:
            raise UsageError(
                "sparse features: expected a last step that keeps zeros (homogeneous, intersection_bins, "
                "polynomial_features, one_hot, projection with matrix: sparse, a union of these, or a scaler that "
                f"leaves 0 as it is, such as normalize and log1p), got {chain.steps[-1].step.kind}"
            )
        reads = last.reads(self._dtype_of_last)
        before = chain.first(len(chain.steps) - 1).bind(reads) if len(chain.steps) > 1 else None
        return Program(
            reads if before is None else before.reads(reads), chain.n_components, dtype,
            LEAST_ROWS if before is None else tile_rows(before),
            partial(SparseLoop, chain, before, last, reads, self._dtype, dtype),
        )  # fmt: skip


def _of_thread(make: Callable[[], Worker]) -> Callable[[], Worker]:
    """Return a function that makes one worker per thread and reuses it: new buffers take more time than one row."""
    own = threading.local()

    def worker() -> Worker:
        if not hasattr(own, "worker"):
            own.worker = make()
        kept: Worker = own.worker
        return kept

    return worker


class SparseLoop:
    """Passes tiles through all steps, the last of which makes sparse rows in `dtype`.

    `reads` is the dtype of the last step's input. Features are rounded to the map's dtype, `own`, then to `dtype`.
    """

    def __init__(
        self,
        chain: Chain,
        before: Transform | None,
        last: Transform,
        reads: np.dtype[Any],
        own: np.dtype[Any],
        dtype: np.dtype[Any],
    ) -> None:
        self._chain, self._last, self._reads, self._own, self._dtype = chain, last, reads, own, dtype
        self._before = None if before is None else TileLoop(before, reads)
        self.rows = LEAST_ROWS if self._before is None else self._before.rows

    def __call__(self, X: InputRows, out: None = None, above: int = 0) -> Made:
        """Return the features of rows X as sparse rows."""
        pieces, clipped = list[SparseRows](), np.zeros(len(X), np.int64)
        for tile, place in tiles(len(X), self.rows, above):
            try:
                piece, clipped[tile] = self._tile(X[tile], place)
            except InvalidValueError as refused:
                raise refused.at(refused.row + tile.start) from None
            pieces.append(piece)
        return Made(SparseRows.stacked(pieces, self._chain.n_components, self._dtype), clipped)

    def _tile(self, X: InputRows, above: int) -> tuple[SparseRows, Array | int]:
        clipped: Array | int = 0
        if self._before is not None:
            made: Floats = np.empty((len(X), self._last.n_features_in), self._reads)
            counts = self._before(X, made, above).clipped
            X, clipped = made, 0 if counts is None else counts
        elif isinstance(X, TextRows):
            X = X.dense().astype(self._reads, copy=False)
        elif isinstance(X, SparseRows):
            X = SparseRows(X.values.astype(self._reads, copy=False), X.columns, X.starts, X.width)
        else:
            X = X.astype(self._reads, copy=False)
        try:
            with np.errstate(all="ignore"):  # values that are not finite raise an error below
                features, counts = self._last.to_sparse(X)
        except InvalidValueError as refused:
            raise after(refused, [fitted.step for fitted in self._chain.steps[:-1]]) from None
        return self._rounded(features), clipped if counts is None else clipped + counts

    def _rounded(self, features: SparseRows) -> SparseRows:
        """Return the features rounded to both dtypes, without zeros."""
        csr = features.csr
        with np.errstate(over="ignore"):
            values = csr.data.astype(self._own).astype(self._dtype)
        lost = ~np.isfinite(values)
        if lost.any():
            entry = int(lost.argmax())
            row = int(np.searchsorted(csr.indptr, entry, side="right")) - 1
            raise InvalidValueError(row, None, beyond(csr.data[entry], self._dtype))
        if not values.all():
            csr = csr.copy()
            csr.data = values
            csr.eliminate_zeros()
            values = csr.data
        return SparseRows(values, csr.indices, csr.indptr, csr.shape[1])
