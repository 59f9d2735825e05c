"""Kernels between a tile of rows and fixed landmarks, in the map's precision: what Nyström runs on.

The exact forms, in float64, are in `kernels.py`; a test holds the two against each other.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from kafeat.maths.kernels.exact import KernelParameters
from kafeat.maths.nystroem.kernel_tiles import distance, product
from kafeat.maths.nystroem.kernel_tiles.base import KernelTile
from kafeat.maths.nystroem.kernel_tiles.entrywise import (
    HarmonicTile,
    IntersectionTile,
    JensenShannonTile,
    LaplacianTile,
)
from kafeat.maths.nystroem.kernel_tiles.given import ColumnTile, FunctionTile, call_kernel
from kafeat.maths.nystroem.kernel_tiles.product import CosineTile, HellingerTile, ProductTile
from kafeat.types import Floats

__all__ = ["ColumnTile", "FunctionTile", "KernelTile", "call_kernel", "kernel_tile"]

_OF_DISTANCE = {
    "rbf": distance.rbf,
    "matern": distance.matern,
    "rational_quadratic": distance.rational_quadratic,
}


def kernel_tile(
    name: str,
    landmarks: Floats,
    p: KernelParameters,
    dtype: np.dtype[Any],
    scale: float = 1.0,
    centre: Floats | None = None,
) -> KernelTile:
    """The tile form of the kernel of that name, divided by `scale`.

    Only kernels that grow faster than the input need it to be other than 1: linear and polynomial. Around `centre` (d,)
    kernels of the distance lose the least to rounding.
    """
    if name in _OF_DISTANCE:
        return _OF_DISTANCE[name](landmarks, p, dtype, centre)
    match name:
        case "linear":
            # both factors of a product of the size of `scale` are representable; the product need not be
            return ProductTile(landmarks.astype(np.float64) / scale, p, dtype, product.linear)
        case "polynomial":
            root = scale ** (1.0 / p.degree)
            scaled = replace(p, gamma=1.0, coef0=p.coef0 / root)
            return ProductTile(
                landmarks.astype(np.float64) * (p.gamma / root), scaled, dtype, product.polynomial
            )
        case "sigmoid":
            return ProductTile(landmarks, p, dtype, product.sigmoid)
        case "cosine":
            return CosineTile(landmarks, p, dtype)
        case "hellinger":
            return HellingerTile(landmarks, p, dtype)
        case "laplacian":
            return LaplacianTile(landmarks, p, dtype)
        case "intersection":
            return IntersectionTile(landmarks, p, dtype)
        case "jensen_shannon":
            return JensenShannonTile(landmarks, p, dtype)
        case "chi2":
            return HarmonicTile(landmarks, p, dtype, exponential=True)
        case "additive_chi2":
            return HarmonicTile(landmarks, p, dtype, exponential=False)
    raise ValueError(f"no tile form of the kernel {name!r}")


CENTRED = tuple(_OF_DISTANCE)
"""Kernels whose tile form has a centre."""

SCALED = ("linear", "polynomial", "precomputed")
"""Kernels whose tile form divides by a scale; so does a function."""
