"""A fitted model made ready to run: one program for features, sparse features and predictions, on any backend."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Literal, Protocol

import numpy as np

from kafeat.chain.bound_chain import PREDICTION_DTYPE, after
from kafeat.chain.chain import Chain, FittedStep
from kafeat.chain.tiles import LEAST_ROWS, Made, TileLoop, tile_rows
from kafeat.contract.checks import beyond
from kafeat.contract.step import DOUBLE, Transform
from kafeat.contract.tile import Rows, SparseRows
from kafeat.errors import InvalidValueError, UsageError
from kafeat.types import Array, Floats

What = Literal["features", "predictions"]


class Worker(Protocol):
    """One worker's loop over the tiles of a chunk. Its buffers are its own."""

    rows: int
    """The height of a tile."""

    def __call__(self, X: Rows, out: Any) -> Made:
        """Return the results of rows X: in `out` (n, width), or as sparse rows where `out` is None.

        The first row that is refused raises `InvalidValueError`.
        """


class Device(Protocol):
    """A backend that computes chunks in the place of the compiled loops and NumPy."""

    def worker(self, processor: Callable[[], Worker], what: What, factor: float | None, sums: bool) -> Worker:
        """Return a worker; `processor` makes the one that computes what the device refuses."""


class Model(Protocol):
    """A fitted chain, its dtype and its predictor. A program is made of them."""

    @property
    def chain(self) -> Chain: ...
    @property
    def dtype(self) -> str: ...
    @property
    def last_step(self) -> FittedStep | None:
        """The fitted predictor."""


@dataclass(frozen=True)
class Program:
    """Compute features or predictions of rows: made by `compile`, run by `runtime/run.py`.

    Attributes:
        reads: The dtype that rows are to come in.
        width: Number of results of a row.
        dtype: The dtype that results are computed in.
        rows: Height of a tile.
        worker: Makes a worker; all workers share the arrays that were derived from the fitted state.
        behind: Number of features that stand behind the predictions, for their sums.
        on_device: True if a device computes; it has one worker.
    """

    reads: np.dtype[Any]
    width: int
    dtype: np.dtype[Any]
    rows: int
    worker: Callable[[], Worker]
    behind: int = 0
    on_device: bool = False


def compile(
    model: Model,
    what: What = "features",
    *,
    scale: float | None = None,
    dtype: np.dtype[Any] | None = None,
    device: Device | None = None,
    sparse: bool = False,
    sums: bool = False,
    transforms: Sequence[Transform] | None = None,
) -> Program:
    """Make a program for the features or the predictions of a fitted model.

    Parameters
    ----------
    model : Model
        The fitted chain, its dtype, and its predictor if it has one.
    what : {"features", "predictions"}, default "features"
        Predictions need a predictor.
    scale : float or None, default None
        A factor of all features.
    dtype : dtype or None, default None
        Type of sparse features; None is that of the model. Dense ones are rounded to the dtype of their memory.
    device : Device or None, default None
        The backend of dense results; None is the processor.
    sparse : bool, default False
        True makes sparse rows. The last step has to be one that `gives_sparse`.
    sums : bool, default False
        True puts the features behind the predictions, so that both can be summed.
    transforms : sequence of Transform or None, default None
        The transforms of the steps of the chain, if they are made already.

    Returns
    -------
    Program
        The program.
    """
    own = np.dtype(model.dtype)
    if sparse:
        return _sparse_program(model.chain, own, own if dtype is None else dtype)
    bound, behind = model.chain.transforms(own) if transforms is None else transforms, 0
    if what == "features":
        transform, made_in = model.chain.joined(bound, own, factor=scale), own
    else:
        if model.last_step is None:
            raise TypeError("a map without a predictor has no predictions")
        made_in, behind = PREDICTION_DTYPE, model.chain.n_components if sums else 0
        predictor = model.last_step.bind(own)
        transform = model.chain.joined(bound, own, predictor=predictor, sums=sums)
    worker: Callable[[], Worker] = partial(TileLoop, transform, made_in)
    if device is not None:
        worker = partial(device.worker, worker, what, scale, sums)
    return Program(
        transform.reads(made_in), transform.n_features_out - behind, made_in, tile_rows(transform), worker,
        behind=behind, on_device=device is not None,
    )  # fmt: skip


class Programs:
    """The programs of a model. Each is made at its first use, and the arrays derived from the chain once for all."""

    def __init__(
        self, chain: Chain, dtype: str, last_step: FittedStep | None = None, device: Device | None = None
    ) -> None:
        self.chain, self.dtype, self.last_step, self._device = chain, dtype, last_step, device
        self._made: dict[tuple[Any, ...], Program] = {}

    @cached_property
    def transforms(self) -> Sequence[Transform]:
        """The transforms of the steps of the chain."""
        return self.chain.transforms(np.dtype(self.dtype))

    @property
    def gives_sparse(self) -> bool:
        """True if the features can be made as sparse rows."""
        return _last(self.chain, np.dtype(self.dtype)).gives_sparse

    def __call__(
        self,
        what: What = "features",
        *,
        scale: float | None = None,
        sparse: bool = False,
        dtype: np.dtype[Any] | None = None,
        sums: bool = False,
    ) -> Program:
        """Return the program that `compile` makes of these."""
        if sparse and not self.gives_sparse:
            raise UsageError(
                "sparse features: expected a last step that has few (intersection_bins, or projection with matrix: "
                f"sparse), got {self.chain.steps[-1].step.kind}"
            )
        key = (what, scale, sparse, dtype, sums)
        if key not in self._made:
            transforms = () if sparse else self.transforms
            self._made[key] = compile(
                self, what, scale=scale, dtype=dtype, device=self._device, sparse=sparse, sums=sums,
                transforms=transforms,
            )  # fmt: skip
        return self._made[key]


def _last(chain: Chain, dtype: np.dtype[Any]) -> Transform:
    """Return the last step as a transform; a chain that computes in float64 to its end is rounded at its end."""
    return chain.steps[-1].bind(_dtype_of_last(chain, dtype))


def _dtype_of_last(chain: Chain, dtype: np.dtype[Any]) -> np.dtype[Any]:
    return DOUBLE if chain.cast_after == len(chain.steps) else dtype


def _sparse_program(chain: Chain, own: np.dtype[Any], dtype: np.dtype[Any]) -> Program:
    last = _last(chain, own)
    reads = last.reads(_dtype_of_last(chain, own))
    before = chain.first(len(chain.steps) - 1).bind(reads) if len(chain.steps) > 1 else None
    return Program(
        reads if before is None else before.reads(reads), chain.n_components, dtype,
        LEAST_ROWS if before is None else tile_rows(before),
        partial(SparseLoop, chain, before, last, reads, own, dtype),
    )  # fmt: skip


class SparseLoop:
    """All steps but the last one on a tile, and the last one to sparse rows in `dtype`.

    `reads` is the dtype of the last one's input. Features are rounded to that of the map, `own`, and then to `dtype`.
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

    def __call__(self, X: Rows, out: None = None) -> Made:
        """Return the features of rows X as sparse rows."""
        pieces, clipped = list[SparseRows](), np.zeros(len(X), np.int64)
        for start in range(0, len(X), self.rows):
            tile = slice(start, start + self.rows)
            try:
                piece, clipped[tile] = self._tile(X[tile])
            except InvalidValueError as refused:
                raise refused.moved(start) from None
            pieces.append(piece)
        return Made(SparseRows.stacked(pieces, self._chain.n_components, self._dtype), clipped)

    def _tile(self, X: Rows) -> tuple[SparseRows, Array | int]:
        clipped: Array | int = 0
        if self._before is not None:
            made: Floats = np.empty((len(X), self._last.n_features_in), self._reads)
            counts = self._before(X, made).clipped
            X, clipped = made, 0 if counts is None else counts
        elif isinstance(X, SparseRows):
            X = SparseRows(X.values.astype(self._reads, copy=False), X.columns, X.starts, X.width)
        else:
            X = X.astype(self._reads, copy=False)
        try:
            features = self._last.to_sparse(X)
        except InvalidValueError as refused:
            raise after(refused, [fitted.step for fitted in self._chain.steps[:-1]]) from None
        counts = self._last.sparsely_clipped(X)
        return self._rounded(features), clipped if counts is None else clipped + counts

    def _rounded(self, features: SparseRows) -> SparseRows:
        """Return the outputs that pruning left, without zeros, rounded."""
        outputs = self._chain.outputs
        csr = features.csr if outputs is None else features.csr[:, outputs]
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
