"""Kernels that are sums over sets of columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from kafeat.contract.kernel_inputs import Gram, KernelInputs
from kafeat.maths.kernel import KernelParameters, TiledKernel, as_coordinates
from kafeat.maths.kernel_tiles import KernelTile, Landmarks
from kafeat.maths.subsets import all_sets, outer_terms, sets_of_size
from kafeat.types import Floats


class AnovaKernel(TiledKernel):
    """Σ over sets of `degree` columns of Π γ x_i y_i over the set: a polynomial kernel without powers of a column."""

    needs_coordinates = True
    scaled = True

    def gram(self, inputs: KernelInputs, p: KernelParameters) -> Gram:
        c = as_coordinates(inputs)

        def sums(x: Floats, y: Floats) -> Floats:
            shape = (len(x), len(y))
            terms = outer_terms(p.gamma * x, y, np.empty(shape))
            return sets_of_size(terms, np.empty((p.degree, *shape)), np.empty(shape))

        def norms(x: Floats) -> Floats:
            return sets_of_size(p.gamma * x.T**2, np.empty((p.degree, len(x))), np.empty(len(x)))

        return Gram(sums(c.x, c.y), (norms(c.x), norms(c.y)))

    def tile(self, landmarks: Landmarks, p: KernelParameters) -> KernelTile:
        # a product of `degree` factors takes the whole scale
        factor = p.gamma / landmarks.scale ** (1.0 / p.degree)
        return _AnovaTile(landmarks.doubles * factor, landmarks.dtype, p.degree)


class _AnovaTile(KernelTile):
    def __init__(self, landmarks: Floats, dtype: np.dtype[Any], degree: int) -> None:
        super().__init__(landmarks, dtype)
        self._degree = degree

    def scratch(self, rows: int) -> Floats:
        return np.empty((self._degree + 2, rows, len(self._landmarks)), dtype=self._dtype)

    def evaluate(self, X: Floats, out: Floats, scratch: Floats) -> None:
        *sums, term, product = range(self._degree + 2)
        terms = outer_terms(X, self._landmarks, scratch[term])
        out[...] = sets_of_size(terms, scratch[: len(sums)], scratch[product])


class AllSubsetsKernel(TiledKernel):
    """Π_i (1 + γ x_i y_i), the sum of the ANOVA kernels of every degree."""

    needs_coordinates = True
    scaled = True

    def gram(self, inputs: KernelInputs, p: KernelParameters) -> Gram:
        c = as_coordinates(inputs)

        def product(x: Floats, y: Floats) -> Floats:
            shape = (len(x), len(y))
            return all_sets(outer_terms(p.gamma * x, y, np.empty(shape)), np.empty(shape))

        def norms(x: Floats) -> Floats:
            result: Floats = np.prod(1.0 + p.gamma * x**2, axis=1)
            return result

        return Gram(product(c.x, c.y), (norms(c.x), norms(c.y)))

    def tile(self, landmarks: Landmarks, p: KernelParameters) -> KernelTile:
        # every factor takes an equal part of the scale, so that no product of some leaves the range of the dtype
        share = landmarks.scale ** (-1.0 / landmarks.rows.shape[1])
        return _SubsetsTile(landmarks.doubles * (p.gamma * share), landmarks.dtype, share)


class _SubsetsTile(KernelTile):
    def __init__(self, landmarks: Floats, dtype: np.dtype[Any], share: float) -> None:
        super().__init__(landmarks, dtype)
        self._share = share

    def scratch(self, rows: int) -> Floats:
        return np.empty((rows, len(self._landmarks)), dtype=self._dtype)

    def evaluate(self, X: Floats, out: Floats, scratch: Floats) -> None:
        all_sets(outer_terms(X, self._landmarks, scratch), out, self._share)
