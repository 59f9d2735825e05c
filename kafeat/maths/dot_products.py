"""Parameters γ, p, c₀ and aₙ for maps of dot-product kernels, and base classes for maps of the polynomial kernel.

Sketches carry the constant and the linear part of a polynomial kernel exactly. In (γ x·y + c₀)^p = c₀^p + p c₀^{p−1} γ
x·y + …, one output holds the first term and d outputs hold the second. The remaining outputs sketch the rest of the
kernel. A sketch is linear in the tensor u ⊗ … ⊗ u, u = [√γ x, √c₀], so terms can be subtracted from it. All outputs
together stay unbiased, and only the outputs of the sketch have a variance.

Source: Kar & Karnick 2012, section 6 (H0/1), who do this for random Maclaurin features.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from kafeat.contract.kernel_inputs import KernelInputs
from kafeat.contract.step import (
    AS_TUPLE,
    N_COMPONENTS,
    PositiveFloat,
    Step,
    Width,
    parameter,
    refuse_beside,
    refuse_parameter,
)
from kafeat.contract.tile import SparseRows
from kafeat.contract.traits import ExactTraits, Traits
from kafeat.maths.bandwidth import resolve_gamma
from kafeat.maths.kernel import KernelParameters
from kafeat.maths.kernels import find_kernel
from kafeat.types import Array, Floats, State

Gamma = PositiveFloat | Literal["auto", "scale"]
Degree = Annotated[int, Field(ge=1, le=64)]
Coef0 = Annotated[float, Field(ge=0)]

# Terms of a series from this degree on are left out.
MOST_DEGREES = 100
Coefficients = Annotated[
    tuple[Annotated[float, Field(ge=0)], ...],
    Field(min_length=1, max_length=MOST_DEGREES - 1),
    AS_TUPLE,
]

GAMMA = parameter("auto", "γ; for d inputs, auto is 1/d, scale 1/(d·Var X)")
COEFFICIENTS = parameter(
    None, "a₀, a₁, … of the series Σ a_n (γ x·y)^n, each at least 0; null: none, for the other kernels"
)


class PolynomialMap(Step):
    """A map of the polynomial kernel (γ x·y + c₀)^p."""

    always: ClassVar[Traits] = Traits(exact=ExactTraits(needs_coordinates=False))

    degree: Degree = parameter(2, "p, the degree of the kernel")
    gamma: Gamma = GAMMA
    coef0: Coef0 = parameter(1.0, "c₀")

    def exact(self, state: State, pair: KernelInputs) -> KernelInputs:
        return find_kernel("polynomial").gram(pair, KernelParameters.of(self, float(state["gamma"])))


def check_series(step: Step, kernel: object, coefficients: Coefficients | None) -> None:
    """Raise an error for a series without coefficients, for coefficients without a series, or for unused parameters."""
    if kernel != "series":
        if coefficients is not None:
            refuse_parameter("coefficients", "kernel: series with them", kernel)
        return
    if coefficients is None or not any(coefficients):
        refuse_parameter("coefficients", "at least one number above 0 for a series", coefficients)
    refuse_beside(step, ("degree", "coef0"), "coefficients")


def fit_gamma(gamma: Gamma, X: Floats, rng: np.random.Generator) -> float:
    """Return γ of a polynomial kernel: the number `gamma`, or the value that the rule `gamma` has on X (n, d)."""
    return resolve_gamma(gamma, find_kernel("polynomial"), X, rng)


@dataclass(frozen=True)
class ExactTerms:
    """Terms of a kernel that the first outputs carry exactly: a constant, and d inputs times a factor."""

    constant: float | None = None
    linear: float | None = None

    def count(self, d: int) -> int:
        """Return the number of outputs that carry these terms for d inputs."""
        return (self.constant is not None) + (0 if self.linear is None else d)

    def write(self, X: Floats | SparseRows, out: Floats) -> None:
        """Write the terms into the first outputs, for rows X (n, d)."""
        if self.constant is not None:
            out[:, 0] = self.constant
        if self.linear is None:
            return
        end = self.count(X.shape[1])
        carried, factor = out[:, end - X.shape[1] : end], out.dtype.type(self.linear)
        if isinstance(X, SparseRows):
            carried[...] = 0.0
            carried[X.row_of, X.columns] = X.values.astype(out.dtype) * factor
        else:
            np.multiply(X, factor, out=carried)


class PolynomialSketch(PolynomialMap):
    """A sketch with D outputs. Its first outputs may carry terms of the kernel exactly."""

    n_components: Width = N_COMPONENTS

    def exact_terms(self, state: State) -> ExactTerms:
        """Return the terms √(c₀^p) and √(p c₀^{p−1} γ) x that the outputs of a fitted sketch carry."""
        if "linear" not in state:  # the whole kernel is sketched
            return ExactTerms()
        p, c = self.degree, self.coef0
        linear = p * c ** (p - 1) * float(state["gamma"]) if state["linear"].any() else None
        return ExactTerms(float(np.sqrt(c**p)), None if linear is None else float(np.sqrt(linear)))

    def n_sketched(self, state: State, n_features_in: int) -> int:
        """Return the number of outputs that sketch the rest of the kernel: all but those of exact terms."""
        return self.n_components - self.exact_terms(state).count(n_features_in)

    def choose_terms(self, X: Floats, gamma: float, least: int) -> dict[str, Array]:
        """Return {"linear": whether the linear part is exact as well as the constant}, or {} if no term is exact.

        At least `least` outputs must be left to sketch the rest r(x, y) of the kernel. The variance of these outputs is
        at most about the squared mean of r(x, x), divided by the number of these outputs. The linear part is exact if
        this reduces the bound.
        """
        p, c, D = self.degree, self.coef0, self.n_components
        if c == 0.0 or least > D - 1:
            return {}
        dots = gamma * np.einsum("ij,ij->i", X, X)
        without_constant = float(((dots + c) ** p - c**p).mean())
        without_linear = without_constant - float((p * c ** (p - 1) * dots).mean())
        left = D - 1 - X.shape[1]
        linear = left >= least and without_linear**2 * (D - 1) < without_constant**2 * left
        return {"linear": np.array(linear)}


def rest_of_product(factors: Iterable[Array], constants: Sequence[Array], linear: bool) -> Array:
    """Return Π_q (x_q + c_q) without its term Π_q c_q and, with `linear`, without its terms that have only one x_q.

    A recurrence over the factors x_q avoids cancellation. No factor is modified.
    """
    first, *others = constants
    stream = iter(factors)
    x = next(stream)
    rest = np.zeros_like(x) if linear else x
    lower, below = x, first  # the sum of the terms with one x_q, and the term with none
    for i, (x, c) in enumerate(zip(stream, others, strict=True)):
        if linear:
            rest = lower * x + rest * (x + c) if i else lower * x
            lower = lower * c + below * x
        else:
            rest = rest * (x + c) + below * x
        below = below * c
    return rest
