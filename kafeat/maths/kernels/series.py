"""Kernels of dot products by the coefficients of their series."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kafeat.contract.kernel_inputs import Gram, KernelInputs
from kafeat.maths.kernel import KernelParameters, TiledKernel
from kafeat.maths.kernel_tiles import KernelTile, ProductTile
from kafeat.types import Floats


class SeriesKernel(TiledKernel):
    """Σ_n a_n (γ x·y)^n, a_n ≥ 0: by Schoenberg's theorem every dot-product kernel on spheres of all dimensions."""

    scaled = True

    def gram(self, inputs: KernelInputs, p: KernelParameters) -> Gram:
        x, y = inputs.squared_norms

        def series(dots: Floats) -> Floats:
            values: Floats = np.polynomial.polynomial.polyval(p.gamma * dots, np.array(p.coefficients))
            return values

        return Gram(series(inputs.dots), (series(x), series(y)))

    def tile(
        self,
        landmarks: Floats,
        p: KernelParameters,
        dtype: np.dtype[Any],
        scale: float = 1.0,
        centre: Floats | None = None,
    ) -> KernelTile:
        lower, last, factor = scaled_series(p.coefficients, scale)

        def finish(dots: Floats) -> None:
            # Horner's rule
            total = np.full_like(dots, last)
            for coefficient in reversed(lower):
                total *= dots
                total += dots.dtype.type(coefficient)
            dots[...] = total

        return ProductTile(landmarks.astype(np.float64) * (p.gamma * factor), dtype, finish)


def scaled_series(coefficients: Sequence[float], scale: float) -> tuple[list[float], float, float]:
    """Return b_0 … b_{N − 1}, b_N and f with Σ b_n (f t)^n = Σ a_n t^n/scale: powers of f t are as small as the sum."""
    *lower, last = np.trim_zeros(np.array(coefficients), "b")
    factor = scale ** (-1.0 / max(len(lower), 1))
    # a scale above the range of the dtype is divided out before it is multiplied
    rest = [float(a * np.exp(-(np.log(scale) + n * np.log(factor)))) for n, a in enumerate([*lower, last])]
    return rest[:-1], rest[-1], factor
