"""Features as sparse rows, for maps whose last step has few that are not 0. No dense features are made on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from kafeat.chain.blas import one_blas_thread
from kafeat.chain.bound_chain import after
from kafeat.chain.chain import Chain
from kafeat.chain.tiles import LEAST_ROWS, TileLoop
from kafeat.contract.checks import beyond
from kafeat.contract.step import DOUBLE, Transform
from kafeat.contract.tile import Rows, SparseRows
from kafeat.errors import DataError, InvalidValueError, UsageError
from kafeat.io.readers.base import Chunk
from kafeat.runtime.ordered_map import ordered_map, prefetch
from kafeat.runtime.threads import REFUSE_BAD_ROWS, RowPolicy, SparselyTransformed

if TYPE_CHECKING:
    from kafeat.model.feature_map import FeatureMap


def gives_sparse(fm: FeatureMap) -> bool:
    """Return True if the features of a map can be made as sparse rows."""
    return _last(fm).gives_sparse


def sparse_features(fm: FeatureMap, chunks: Iterator[Chunk]) -> Any:
    """Return the features of all chunks as one CSR array of SciPy (n, n_components)."""
    from scipy.sparse import csr_array, vstack

    if not gives_sparse(fm):
        raise UsageError(
            "sparse features: expected a last step that has few (intersection_bins, or projection with matrix: "
            f"sparse), got {fm.chain.steps[-1].step.kind}"
        )
    parts = [csr_array((0, fm.n_components), dtype=fm.dtype)]
    parts += [done.features.csr for done in run_sparse(fm, chunks, np.dtype(fm.dtype), 1)]
    return vstack(parts, format="csr", dtype=fm.dtype)


def run_sparse(
    fm: FeatureMap,
    chunks: Iterator[Chunk],
    dtype: np.dtype[Any],
    jobs: int,
    policy: RowPolicy = REFUSE_BAD_ROWS,
) -> Iterator[SparselyTransformed]:
    """Transform chunks to sparse rows in `dtype` by `jobs` threads, read by a further one; yield them in order."""
    with one_blas_thread():
        yield from ordered_map(partial(_worker, fm, dtype, policy), prefetch(chunks, 2), jobs)


def _worker(
    fm: FeatureMap, dtype: np.dtype[Any], policy: RowPolicy
) -> Callable[[Chunk], SparselyTransformed]:
    to_sparse = _SparseChain(fm, dtype)

    def run_one(chunk: Chunk) -> SparselyTransformed:
        X, sound = chunk.decode(fm.input_dtype)
        bad_rows = {} if sound else {refused.row: refused for refused in chunk.invalid_values(X)}
        if not policy.set_aside:
            _refuse(chunk, bad_rows, policy)
        pieces, clipped = [], 0
        for start in range(0, chunk.rows, to_sparse.height):
            piece, more = _piece(to_sparse, X[start : start + to_sparse.height], start, bad_rows)
            if not policy.set_aside:
                _refuse(chunk, bad_rows, policy)
            pieces.append(piece)
            clipped += more
        done = SparselyTransformed(
            chunk=chunk, features=_joined(pieces, fm.n_components, dtype), clipped=clipped,
            bad_rows=tuple(bad_rows[row] for row in sorted(bad_rows)),
        )  # fmt: skip
        return policy.observe(done, X)

    return run_one


def _refuse(chunk: Chunk, bad_rows: dict[int, InvalidValueError], policy: RowPolicy) -> None:
    if bad_rows:
        raise DataError(f"{chunk.located(bad_rows[min(bad_rows)])}{policy.advice}")


def _piece(
    to_sparse: _SparseChain, X: Rows, start: int, bad_rows: dict[int, InvalidValueError]
) -> tuple[SparseRows, int]:
    """Return the features of a piece of a chunk, and the number of clipped values; add bad rows to `bad_rows`.

    A good row stands in for each bad one, so that the others keep their places, and so their bytes.
    """
    good = np.array([start + i not in bad_rows for i in range(len(X))])
    while good.any():
        if not good.all():
            X = X[np.where(good, np.arange(len(X)), good.argmax())]
        try:
            features, clipped = to_sparse(X)
            return features, int(clipped[good].sum())
        except InvalidValueError as refused:
            row = refused.row if good[refused.row] else int(good.argmax())
            bad_rows[start + row] = InvalidValueError(start + row, refused.column, refused.problem)
            good[row] = False
    return SparseRows(np.empty(0), np.empty(0, np.int64), np.zeros(len(X) + 1, np.int64), 0), 0


def _joined(pieces: Sequence[SparseRows], width: int, dtype: np.dtype[Any]) -> SparseRows:
    """Return the pieces as one, with columns and starts of 64 bits."""
    ends = np.cumsum([0, *(len(piece.values) for piece in pieces)])
    starts = [piece.starts[1:] + end for piece, end in zip(pieces, ends[:-1], strict=True)]
    return SparseRows(
        np.concatenate([np.empty(0, dtype), *(piece.values for piece in pieces)], dtype=dtype),
        np.concatenate([np.empty(0, np.int64), *(piece.columns for piece in pieces)]),
        np.concatenate([np.zeros(1, np.int64), *starts]),
        width,
    )


def _last(fm: FeatureMap) -> Transform:
    """Return the last step as a transform; a map that computes in float64 to its end is rounded at its end."""
    chain = fm.chain
    dtype = DOUBLE if chain.cast_after == len(chain.steps) else np.dtype(fm.dtype)
    return chain.steps[-1].bind(dtype)


class _SparseChain:
    """All steps but the last one on a tile, and the last one to sparse rows in `dtype`. It belongs to one thread."""

    def __init__(self, fm: FeatureMap, dtype: np.dtype[Any]) -> None:
        chain = fm.chain
        self._steps = [fitted.step for fitted in chain.steps[:-1]]
        self._last, self._dtype, self._outputs = _last(fm), dtype, chain.outputs
        self._map_dtype = np.dtype(fm.dtype)
        of_last = DOUBLE if chain.cast_after == len(chain.steps) else self._map_dtype
        self._reads = self._last.reads(of_last)
        self._before: TileLoop | None = None
        if self._steps:
            before = Chain(chain.steps[:-1], cast_after=min(chain.cast_after, len(self._steps)))
            self._before = TileLoop(before.bind(self._reads), self._reads)
        self.height = LEAST_ROWS if self._before is None else self._before.rows
        """The number of rows that are transformed at a time."""

    def __call__(self, X: Rows) -> tuple[SparseRows, np.ndarray]:
        """Return the features of at most `height` rows, and how many values of each row were clipped."""
        clipped = np.zeros(len(X), np.int64)
        if self._before is not None:
            made = np.empty((len(X), self._last.n_features_in), self._reads)
            self._before(X, made)
            if self._before.counts is not None:
                clipped += self._before.counts[: len(X)]
            X = made
        elif X.dtype != self._reads:
            X = (
                SparseRows(X.values.astype(self._reads), X.columns, X.starts, X.width)
                if isinstance(X, SparseRows)
                else X.astype(self._reads)
            )
        try:
            features = self._last.to_sparse(X)
        except InvalidValueError as refused:
            raise after(refused, self._steps) from None
        counts = self._last.sparsely_clipped(X)
        return self._rounded(features), clipped if counts is None else clipped + counts

    def _rounded(self, features: SparseRows) -> SparseRows:
        """Return the outputs that pruning left, without zeros, rounded to the dtype of the map and then to `dtype`."""
        csr = features.csr if self._outputs is None else features.csr[:, self._outputs]
        with np.errstate(over="ignore"):
            values = csr.data.astype(self._map_dtype).astype(self._dtype)
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
