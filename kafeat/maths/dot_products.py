"""Parameters of the maps of dot-product kernels, γ, p and c₀, and the polynomial kernel of them."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from kafeat.contract.kernel_inputs import KernelInputs
from kafeat.contract.step import PositiveFloat, parameter
from kafeat.maths.bandwidth import resolve_gamma
from kafeat.maths.kernel import KernelParameters, find_kernel
from kafeat.types import Floats

Gamma = PositiveFloat | Literal["auto", "scale"]
Degree = Annotated[int, Field(ge=1, le=64)]
Coef0 = Annotated[float, Field(ge=0)]

GAMMA = parameter("auto", "γ; auto is 1/d of the input, scale 1/(d·Var X)")
DEGREE = parameter(2, "p, the degree of the kernel")


def fit_gamma(gamma: Gamma, X: Floats, rng: np.random.Generator) -> float:
    """γ as a number."""
    return resolve_gamma(gamma, find_kernel("polynomial"), X, rng)


def polynomial(pair: KernelInputs, gamma: float, degree: int, coef0: float) -> KernelInputs:
    """(γ x·y + c₀)^p, exactly."""
    return find_kernel("polynomial").gram(pair, KernelParameters(gamma=gamma, degree=degree, coef0=coef0))
