"""The constant and the linear part of a polynomial kernel, carried exactly beside a sketch of the rest.

(γ x·y + c₀)^p = c₀^p + p c₀^{p−1} γ x·y + …: one output holds the first term and d outputs the second. A sketch is a
linear map of the tensor u ⊗ … ⊗ u, u = [√γ x, √c₀], so the sketch of the other terms is a sum of products as well. It
stays unbiased, and only the rest has a variance.

Source: Kar & Karnick 2012, section 6 (H0/1), where features are drawn; here for sketches.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from kafeat.contract.step import MONTE_CARLO, N_COMPONENTS, Traits, Width
from kafeat.contract.tile import SparseRows
from kafeat.maths.dot_products import PolynomialMap
from kafeat.types import Array, Floats, State


@dataclass(frozen=True)
class ExactTerms:
    """√(c₀^p) of the first output, and the factor √(p c₀^{p−1} γ) of the d inputs that come next, or None."""

    constant: float
    linear: float | None

    def count(self, d: int) -> int:
        """Return the number of outputs that carry them."""
        return 1 + (0 if self.linear is None else d)

    def write(self, X: Floats | SparseRows, out: Floats) -> None:
        """Write them into the first outputs of rows X (n, d)."""
        out[:, 0] = self.constant
        if self.linear is None:
            return
        carried, factor = out[:, 1 : 1 + X.shape[1]], out.dtype.type(self.linear)
        if isinstance(X, SparseRows):
            carried[...] = 0.0
            carried[X.row_of, X.columns] = X.values.astype(out.dtype) * factor
        else:
            np.multiply(X, factor, out=carried)


class PolynomialSketch(PolynomialMap):
    """A sketch in D outputs, of which the first may carry terms of the kernel exactly."""

    always: ClassVar[Traits] = Traits(error_slopes=MONTE_CARLO, needs_coordinates=False)

    n_components: Width = N_COMPONENTS

    def exact_terms(self, state: State) -> ExactTerms | None:
        """Return the terms that the outputs of a fitted sketch carry; None if the sketch is of the whole kernel."""
        if "linear" not in state:
            return None
        p, c = self.degree, self.coef0
        linear = p * c ** (p - 1) * float(state["gamma"]) if state["linear"].any() else None
        return ExactTerms(float(np.sqrt(c**p)), None if linear is None else float(np.sqrt(linear)))

    def n_sketched(self, state: State, n_features_in: int) -> int:
        """Return the number of outputs that no term takes."""
        terms = self.exact_terms(state)
        return self.n_components - (0 if terms is None else terms.count(n_features_in))

    def choose_terms(self, X: Floats, gamma: float, least: int) -> dict[str, Array]:
        """Return the part of a state that tells which terms are carried, empty for none.

        The rest keeps at least `least` outputs. The variance of a sketch is at most of the size of the mean squared
        ‖rest(x)‖²‖rest(y)‖² over its outputs; the linear part is carried where that makes it smaller.
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
    """Return Π_q (x_q + c_q) without the product of all c_q, and with `linear` without the terms of one x_q too.

    By recurrence over the factors x_q, so that nothing cancels. No factor is written to.
    """
    first, *others = constants
    stream = iter(factors)
    x = next(stream)
    rest = np.zeros_like(x) if linear else x
    lower, below = x, first  # the terms of one x_q, and of none
    for i, (x, c) in enumerate(zip(stream, others, strict=True)):
        if linear:
            rest = lower * x + rest * (x + c) if i else lower * x
            lower = lower * c + below * x
        else:
            rest = rest * (x + c) + below * x
        below = below * c
    return rest
