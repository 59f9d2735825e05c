"""Parallel maps: the weighted sum of their kernels, each on its own columns if wanted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from kafeat.chain.parallel import ChainOnColumns, ParallelChains, ParallelTransform
from kafeat.contract.kernel_inputs import Gram, KernelInputs
from kafeat.contract.step import AS_TUPLE, PositiveFloat, Transform, parameter
from kafeat.contract.tile import InputRows
from kafeat.types import Array, Floats, Scratch, State


class UnionMember(ChainOnColumns):
    """One map of a union: a chain of steps, on all columns or on some of them, with a weight."""

    weight: PositiveFloat = Field(default=1.0, description="factor of the map's kernel in the sum")


class Union(ParallelChains):
    """Parallel maps: z(x) = [√w₁ z₁(x), √w₂ z₂(x), …], so that z(x)·z(y) ≈ Σ_i w_i k_i(x, y).

    `columns` are names of input columns, so only steps that keep columns may come before a union with them.

    Source: Shawe-Taylor & Cristianini 2004, proposition 3.22 (sums of kernels).
    """

    maps: Annotated[tuple[UnionMember, ...], Field(min_length=1), AS_TUPLE] = parameter(
        ..., "chains that stand side by side, with steps and optional columns and weight"
    )

    def n_features_out(self, state: State, n_features_in: int) -> int:
        return sum(self.widths(state, n_features_in))

    def members(self, state: State, n_features_in: int) -> list[tuple[str, int]]:
        """Return the name and the number of outputs of each map, in order."""
        names = [", ".join(step.kind for step in part.steps) for part in self.maps]
        return list(zip(names, self.widths(state, n_features_in), strict=True))

    def bind(self, state: State, n_features_in: int, dtype: np.dtype[Any]) -> Transform:
        bound = [(indices, chain.bind(dtype)) for indices, chain in self.chains(state, n_features_in)]
        return _UnionTransform(bound, [part.weight for part in self.maps], n_features_in, dtype)

    def exact(self, state: State, pair: KernelInputs) -> KernelInputs:
        grams = self.grams(state, pair)
        dots, x, y = (np.zeros_like(term) for term in (grams[0].dots, *grams[0].squared_norms))
        for part, gram in zip(self.maps, grams, strict=True):
            dots += part.weight * gram.dots
            x += part.weight * gram.squared_norms[0]
            y += part.weight * gram.squared_norms[1]
        return Gram(dots, (x, y))


class _UnionTransform(ParallelTransform):
    """A transform in which each map writes its own columns of the output."""

    def __init__(
        self,
        maps: Sequence[tuple[Array, Transform]],
        weights: Sequence[float],
        n_features: int,
        dtype: np.dtype[Any],
    ) -> None:
        widths = [transform.n_features_out for _, transform in maps]
        super().__init__(maps, n_features, sum(widths), dtype)
        ends = np.cumsum(widths)
        self._parts = [slice(end - width, end) for end, width in zip(ends, widths, strict=True)]
        self._amplitudes = [dtype.type(np.sqrt(weight)) for weight in weights]

    def apply(self, X: InputRows, out: Floats, scratch: Scratch) -> Array | None:
        outs = [out[:, part] for part in self._parts]
        clipped = self.apply_maps(X, outs, scratch)
        for part, amplitude in zip(outs, self._amplitudes, strict=True):
            if amplitude != 1.0:
                part *= amplitude
        return clipped
