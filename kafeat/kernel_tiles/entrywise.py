"""Kernels that compare entry with entry: no matrix product, one pass over the tile for each landmark."""

from __future__ import annotations

from typing import Any

import numpy as np

from kafeat.domain import refuse_negative
from kafeat.kernel_tiles.tile import KernelTile
from kafeat.kernels import KernelParameters
from kafeat.types import Array, Floats


class LaplacianTile(KernelTile):
    """exp(−γ‖x − l‖₁)."""

    def evaluate(self, X: Floats, out: Floats, scratch: tuple[Array, ...]) -> None:
        (difference,) = scratch
        for j, landmark in enumerate(self._landmarks):
            np.subtract(X, landmark, out=difference)
            np.abs(difference, out=difference)
            difference.sum(axis=1, out=out[:, j])
        out *= self._dtype.type(-self._parameters.gamma)
        np.exp(out, out=out)


class IntersectionTile(KernelTile):
    """Σ_i min(x_i, l_i); x, l ≥ 0."""

    def evaluate(self, X: Floats, out: Floats, scratch: tuple[Array, ...]) -> None:
        refuse_negative(X)
        (least,) = scratch
        for j, landmark in enumerate(self._landmarks):
            np.minimum(X, landmark, out=least)
            least.sum(axis=1, out=out[:, j])


class JensenShannonTile(KernelTile):
    """½ Σ_i x_i log₂((x_i + l_i)/x_i) + l_i log₂((x_i + l_i)/l_i); x, l ≥ 0, and a term of 0 counts as 0."""

    def scratch(self, rows: int) -> tuple[Array, ...]:
        shape = (rows, self._landmarks.shape[1])
        return np.empty(shape, dtype=self._dtype), np.empty(shape, dtype=self._dtype)

    def evaluate(self, X: Floats, out: Floats, scratch: tuple[Array, ...]) -> None:
        refuse_negative(X)
        total, share = scratch
        tiny = np.finfo(self._dtype).tiny
        for j, landmark in enumerate(self._landmarks):
            np.add(X, landmark, out=total)
            np.maximum(total, tiny, out=total)
            for part, target in ((X, share), (landmark, total)):
                np.divide(part, total, out=target)
                np.maximum(target, tiny, out=target)
                np.log2(target, out=target)
                target *= part
            total += share
            total.sum(axis=1, out=out[:, j])
        out *= self._dtype.type(-0.5)


class HarmonicTile(KernelTile):
    """Σ_i x_i l_i/(x_i + l_i), from which both chi2 kernels follow; x, l ≥ 0, and 0/0 counts as 0."""

    def __init__(
        self, landmarks: Floats, parameters: KernelParameters, dtype: np.dtype[Any], exponential: bool
    ) -> None:
        super().__init__(landmarks, parameters, dtype)
        self._sums = self._landmarks.sum(axis=1)
        self._exponential = exponential

    def scratch(self, rows: int) -> tuple[Array, ...]:
        shape = (rows, self._landmarks.shape[1])
        return np.empty(shape, dtype=self._dtype), np.empty(shape, dtype=self._dtype)

    def evaluate(self, X: Floats, out: Floats, scratch: tuple[Array, ...]) -> None:
        refuse_negative(X)
        total, product = scratch
        tiny = np.finfo(self._dtype).tiny
        for j, landmark in enumerate(self._landmarks):
            np.add(X, landmark, out=total)
            np.maximum(total, tiny, out=total)
            # the quotient first: it is at most 1, where a product of the two could overflow or vanish
            np.divide(landmark, total, out=product)
            product *= X
            product.sum(axis=1, out=out[:, j])
        if not self._exponential:
            out *= self._dtype.type(2.0)
            return
        # (x − l)²/(x + l) = x + l − 4xl/(x + l)
        out *= self._dtype.type(4.0)
        out -= X.sum(axis=1)[:, None]
        out -= self._sums
        np.minimum(out, 0.0, out=out)
        out *= self._dtype.type(self._parameters.gamma)
        np.exp(out, out=out)
