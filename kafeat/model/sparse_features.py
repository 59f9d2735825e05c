"""Features as sparse rows, for maps whose last step has few that are not 0. No dense features are made on the way."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from kafeat.chain.bound_chain import after
from kafeat.chain.chain import Chain
from kafeat.chain.tiles import run_tiles
from kafeat.contract.step import DOUBLE, Transform
from kafeat.contract.tile import Rows, SparseRows, dense
from kafeat.errors import InvalidValueError, UsageError
from kafeat.io.readers.base import Chunk

if TYPE_CHECKING:
    from kafeat.model.feature_map import FeatureMap


def sparse_features(fm: FeatureMap, chunks: Iterator[Chunk]) -> Any:
    """Return the features of all chunks as one CSR array of SciPy (n, n_components)."""
    from scipy.sparse import csr_array, vstack

    to_sparse = _SparseChain(fm)
    parts = [csr_array((0, fm.chain.n_outputs), dtype=fm.dtype)]
    for chunk in chunks:
        rows, sound = chunk.decode(fm.input_dtype)
        try:
            if not sound:
                raise next(chunk.invalid_values(rows))
            parts.append(to_sparse(rows).csr)
        except InvalidValueError as refused:
            raise chunk.located(refused) from None
    features = vstack(parts, format="csr", dtype=fm.dtype)
    return features if fm.chain.outputs is None else features[:, fm.chain.outputs]


class _SparseChain:
    """All steps but the last one tile by tile, and the last one to sparse rows."""

    def __init__(self, fm: FeatureMap) -> None:
        chain, dtype = fm.chain, np.dtype(fm.dtype)
        self._steps = [fitted.step for fitted in chain.steps[:-1]]
        # A map that computes in float64 to its end is rounded at its end.
        dtype = DOUBLE if chain.cast_after == len(chain.steps) else dtype
        self._last: Transform = chain.steps[-1].bind(dtype)
        if not self._last.gives_sparse:
            raise UsageError(
                "sparse features: expected a last step that has few (intersection_bins, or projection with matrix: "
                f"sparse), got {chain.steps[-1].step.kind}"
            )
        self._dtype = self._last.reads(dtype)
        self._before = None
        if self._steps:
            before = Chain(chain.steps[:-1], cast_after=min(chain.cast_after, len(self._steps)))
            self._before = before.bind(self._dtype)

    def __call__(self, X: Rows) -> SparseRows:
        if self._before is not None:
            X = run_tiles(self._before, dense(X), self._dtype)
        elif X.dtype != self._dtype:
            X = (
                SparseRows(X.values.astype(self._dtype), X.columns, X.starts, X.width)
                if isinstance(X, SparseRows)
                else X.astype(self._dtype)
            )
        try:
            return self._last.to_sparse(X)
        except InvalidValueError as refused:
            raise after(refused, self._steps) from None
