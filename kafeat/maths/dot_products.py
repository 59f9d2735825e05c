"""Parameters of the maps of dot-product kernels, γ, p, c₀ and aₙ, and the polynomial kernel of them."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import BeforeValidator, Field

from kafeat.contract.kernel_inputs import KernelInputs
from kafeat.contract.step import PositiveFloat, Step, parameter, refuse_parameter
from kafeat.maths.bandwidth import resolve_gamma
from kafeat.maths.kernel import KernelParameters
from kafeat.maths.kernels import find_kernel
from kafeat.types import Floats, State

Gamma = PositiveFloat | Literal["auto", "scale"]
Degree = Annotated[int, Field(ge=1, le=64)]
Coef0 = Annotated[float, Field(ge=0)]

# Degrees of a series that are looked at.
MOST_DEGREES = 100
Coefficients = Annotated[
    tuple[Annotated[float, Field(ge=0)], ...],
    Field(min_length=1, max_length=MOST_DEGREES - 1),
    BeforeValidator(lambda value: tuple(value) if isinstance(value, list) else value),
]

GAMMA = parameter("auto", "γ; auto is 1/d of the input, scale 1/(d·Var X)")
COEFFICIENTS = parameter(
    None, "a₀, a₁, … of the series Σ a_n (γ x·y)^n, each at least 0; null: none, for the other kernels"
)


class PolynomialMap(Step):
    """A map of the polynomial kernel (γ x·y + c₀)^p."""

    degree: Degree = parameter(2, "p, the degree of the kernel")
    gamma: Gamma = GAMMA
    coef0: Coef0 = parameter(1.0, "c₀")

    def exact(self, state: State, pair: KernelInputs) -> KernelInputs:
        return polynomial(pair, float(state["gamma"]), self.degree, self.coef0)


def check_series(step: Step, kernel: object, coefficients: Coefficients | None) -> None:
    """Refuse a series without coefficients, coefficients of another kernel, and parameters that do nothing."""
    if kernel != "series":
        if coefficients is not None:
            refuse_parameter("coefficients", "kernel: series with them", kernel)
        return
    if coefficients is None or not any(coefficients):
        refuse_parameter("coefficients", "numbers of which one is above 0, for a series", coefficients)
    for name in ("degree", "coef0"):
        if getattr(step, name) != type(step).model_fields[name].default:
            refuse_parameter(name, "none beside coefficients", getattr(step, name))


def fit_gamma(gamma: Gamma, X: Floats, rng: np.random.Generator) -> float:
    """γ as a number."""
    return resolve_gamma(gamma, find_kernel("polynomial"), X, rng)


def polynomial(pair: KernelInputs, gamma: float, degree: int, coef0: float) -> KernelInputs:
    """(γ x·y + c₀)^p, exactly."""
    return find_kernel("polynomial").gram(pair, KernelParameters(gamma=gamma, degree=degree, coef0=coef0))
