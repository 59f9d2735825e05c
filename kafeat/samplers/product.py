"""Products of maps: the product of their kernels, each on its own columns if wanted."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from kafeat.chain.parallel import ChainOnColumns, ParallelChains, ParallelTransform
from kafeat.contract.kernel_inputs import Gram, KernelInputs
from kafeat.contract.step import AS_TUPLE, Sample, Transform, Width, parameter
from kafeat.contract.tile import InputRows
from kafeat.errors import DataError
from kafeat.types import Array, ArrayOf, Floats, Scratch, Shapes, State

_MOST_EXACT = 100_000
"""The most outputs without `n_components`. A larger number is probably a mistake."""


class Product(ParallelChains):
    """Products of maps: z(x) = z₁(x) ⊗ z₂(x) ⊗ … or random sums of its entries, so that z(x)·z(y) ≈ Π_i k_i(x, y).

    Without `n_components`, the outputs are all products of one output of each map, and their kernel is exactly the
    product of the maps' own kernels. With D, an output is Π_i w_i·z_i(x)/√D with random signs w_i, which is unbiased,
    and the error falls like 1/√D.

    Source: Shawe-Taylor & Cristianini 2004, proposition 3.22 (products); Kar & Karnick 2012, lemma 7 (signs).
    """

    maps: Annotated[tuple[ChainOnColumns, ...], Field(min_length=1), AS_TUPLE] = parameter(
        ..., "chains with steps and optional columns, whose kernels are multiplied"
    )
    n_components: Width | None = parameter(
        None, "D, the number of outputs; null: all products of outputs of the maps"
    )

    def fit(self, sample: Sample, rng: np.random.Generator) -> State:
        of_maps, of_signs = rng.spawn(2)
        state = dict(super().fit(sample, of_maps))
        widths = self.widths(state, sample.X.shape[1])
        if self.n_components is None:
            if prod(widths) > _MOST_EXACT:
                raise DataError(
                    f"product: n_components: expected a number, as the maps have {prod(widths):,} products of outputs, "
                    "got null"
                )
            return state
        for i, width in enumerate(widths):
            shape = (self.n_components, width)
            state[f"signs.{i}"] = of_signs.choice(np.array([-1, 1], dtype=np.int8), size=shape)
        return state

    def state_shapes(self, state: State, n_features_in: int) -> Shapes:
        shapes = dict(super().state_shapes(state, n_features_in))
        if self.n_components is not None:
            for i, width in enumerate(self.widths(state, n_features_in)):
                shapes[f"signs.{i}"] = ArrayOf((self.n_components, width), "int8")
        return shapes

    def n_features_out(self, state: State, n_features_in: int) -> int:
        if self.n_components is not None:
            return self.n_components
        return prod(self.widths(state, n_features_in))

    def bind(self, state: State, n_features_in: int, dtype: np.dtype[Any]) -> Transform:
        bound = [(indices, chain.bind(dtype)) for indices, chain in self.chains(state, n_features_in)]
        signs = () if self.n_components is None else [state[f"signs.{i}"] for i in range(len(bound))]
        return _Products(bound, signs, n_features_in, dtype)

    def exact(self, state: State, pair: KernelInputs) -> KernelInputs:
        grams = self.grams(state, pair)
        dots = np.prod([gram.dots for gram in grams], axis=0)
        x, y = (np.prod([gram.squared_norms[side] for gram in grams], axis=0) for side in (0, 1))
        return Gram(dots, (x, y))


class _Products(ParallelTransform):
    """All products of outputs in Kronecker order, with the last map's output fastest, or random sums of them."""

    def __init__(
        self,
        maps: Sequence[tuple[Array, Transform]],
        signs: Sequence[Array],
        n_features: int,
        dtype: np.dtype[Any],
    ) -> None:
        D = len(signs[0]) if signs else prod(transform.n_features_out for _, transform in maps)
        super().__init__(maps, n_features, D, dtype)
        # 1/√D in equal parts, so that no single factor exceeds the range of the dtype
        self._signs = [np.ascontiguousarray(D ** (-0.5 / len(signs)) * one.T, dtype=dtype) for one in signs]

    @property
    def gives_sparse(self) -> bool:
        return not self._signs and super().gives_sparse

    def scratch(self, rows: int) -> Scratch:
        outputs = [
            np.empty((rows, transform.n_features_out), dtype=self._dtype) for _, transform in self._maps
        ]
        factor = np.empty((rows, self.n_features_out), dtype=self._dtype)
        return super().scratch(rows), outputs, factor

    def apply(self, X: InputRows, out: Floats, scratch: Scratch) -> Array | None:
        of_maps, outputs, factor = scratch
        clipped = self.apply_maps(X, outputs, of_maps)
        for i, (z, signs) in enumerate(zip(outputs, self._signs, strict=False)):
            np.matmul(z, signs, out=factor)
            if i:
                out *= factor
            else:
                out[...] = factor
        if not self._signs:
            values, *others = outputs
            for other in others:
                values = (values[:, :, None] * other[:, None, :]).reshape(len(X), -1)
            out[...] = values
        return clipped
