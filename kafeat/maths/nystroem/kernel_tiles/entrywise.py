"""Kernels that compare entry with entry: no matrix product, one pass over the tile for each landmark."""

from __future__ import annotations

from typing import Any

import numpy as np

from kafeat.contract.checks import refuse_negative
from kafeat.maths.kernels.exact import KernelParameters
from kafeat.maths.nystroem.kernel_tiles.base import KernelTile
from kafeat.types import Array, Floats


class LaplacianTile(KernelTile):
    """exp(−γ‖x − l‖₁), the distances in float64: SciPy's loop is as fast as passes of float32 over a tile."""

    def __init__(self, landmarks: Floats, parameters: KernelParameters, dtype: np.dtype[Any]) -> None:
        super().__init__(landmarks, parameters, dtype)
        from scipy.spatial.distance import cdist  # slow to import, and only needed here

        self._cdist = cdist
        self._doubles = self._landmarks.astype(np.float64)

    def scratch(self, rows: int) -> tuple[Array, ...]:
        return np.empty((rows, self._landmarks.shape[1])), np.empty((rows, len(self._landmarks)))

    def evaluate(self, X: Floats, out: Floats, scratch: tuple[Array, ...]) -> None:
        x, distances = scratch
        x[...] = X
        self._cdist(x, self._doubles, "cityblock", out=distances)
        np.multiply(distances, -self._parameters.gamma, out=out, casting="same_kind")
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


# Numbers in the buffer that a block of landmarks is met in: it stays in the third-level cache, and calls take so long
# that threads seldom wait for each other between them.
_CACHED = 400_000


class HarmonicTile(KernelTile):
    """Σ_i x_i l_i/(x_i + l_i), from which both chi2 kernels follow; x, l ≥ 0, and 0/0 counts as 0.

    A term is 1/(1/x + 1/l): with the inverses known, an addition, a division and a product with ones, and 1/0 = ∞ gives
    the 0 that it should. Some landmarks at a time, features first, so that all three run along whole tiles.
    """

    def __init__(
        self, landmarks: Floats, parameters: KernelParameters, dtype: np.dtype[Any], exponential: bool
    ) -> None:
        super().__init__(landmarks, parameters, dtype)
        self._sums = self._landmarks.sum(axis=1)
        with np.errstate(divide="ignore", over="ignore"):
            self._inverses = (1.0 / self._landmarks)[:, :, None]
        self._ones = np.ones(self._landmarks.shape[1], dtype=dtype)
        self._exponential = exponential

    def scratch(self, rows: int) -> tuple[Array, ...]:
        m, d = self._landmarks.shape
        block = min(m, max(1, _CACHED // max(1, rows * d)))
        shapes = ((d, rows), (block, d, rows), (m, rows))
        return tuple(np.empty(shape, dtype=self._dtype) for shape in shapes)

    def evaluate(self, X: Floats, out: Floats, scratch: tuple[Array, ...]) -> None:
        refuse_negative(X)
        inverse, terms, values = scratch
        with np.errstate(divide="ignore", over="ignore"):
            np.divide(1.0, X.T, out=inverse)
            for start in range(0, len(values), len(terms)):
                landmarks = self._inverses[start : start + len(terms)]
                block = terms[: len(landmarks)]
                np.add(inverse, landmarks, out=block)
                np.divide(1.0, block, out=block)
                np.matmul(self._ones, block, out=values[start : start + len(terms)])
        if not self._exponential:
            np.multiply(values.T, self._dtype.type(2.0), out=out)
            return
        # (x − l)²/(x + l) = x + l − 4xl/(x + l)
        np.multiply(values.T, self._dtype.type(4.0), out=out)
        out -= X.sum(axis=1)[:, None]
        out -= self._sums
        np.minimum(out, 0.0, out=out)
        out *= self._dtype.type(self._parameters.gamma)
        np.exp(out, out=out)
