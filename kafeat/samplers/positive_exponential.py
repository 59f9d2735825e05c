"""The exponential kernel, which softmax attention uses, with outputs that are never negative."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np

from kafeat.contract.checks import remedy
from kafeat.contract.kernel_inputs import KernelInputs
from kafeat.contract.memory import blocks
from kafeat.contract.step import (
    N_COMPONENTS,
    InTwos,
    Sample,
    Transform,
    Width,
    parameter,
)
from kafeat.contract.tile import is_feature_major, shaped
from kafeat.contract.traits import ExactTraits, Traits
from kafeat.errors import InvalidValueError
from kafeat.maths.dot_products import GAMMA, Gamma, fit_gamma
from kafeat.maths.fourier.features import DIRECTIONS, Directions, draw_directions
from kafeat.maths.kernel import KernelParameters
from kafeat.maths.kernels.dot_products import ExponentialKernel
from kafeat.types import ArrayOf, Floats, Scratch, Shapes, State

# Random pairs for a median. It need not be precise, because the variance changes little near the best tilt.
_PAIRS = 10_000


class PositiveExponential(InTwos):
    """Positive random features: z(x)·z(y) ≈ e^{γ x·y}, unbiased, with outputs that are never negative.

    With w ~ N(0, I), an output is √(1/D) (1 − 4A)^{d/4} exp(A‖w‖² + √(γ(1 − 4A)) w·x − γ‖x‖²/2); A = 0 is the plain
    form. `hyperbolic` uses every w together with −w, which at equal D multiplies the variance by 1 − exp(−γ‖x + y‖²).
    `tilt: fitted` uses the A < 0 that is best for the median of γ‖x + y‖² in the fit sample. Every A is unbiased, and A
    < 0 reduces the weight of large w. Orthogonal directions are spread more evenly. The error falls like 1/√D and grows
    like exp(γ‖x + y‖²/2).

    Source: Choromanski et al. 2021, lemma 1 and theorem 2; Likhosherstov et al. 2022, theorem 4.1 (A).
    """

    always: ClassVar[Traits] = Traits(exact=ExactTraits(needs_coordinates=False))
    twos = ("features", "hyperbolic", "for hyperbolic features")

    gamma: Gamma = GAMMA
    n_components: Width = N_COMPONENTS
    directions: Directions = DIRECTIONS
    features: Literal["hyperbolic", "plain"] = parameter("hyperbolic", "w together with −w, or w alone")
    tilt: Literal["fitted", "none"] = parameter("fitted", "A from the fit sample, or 0")

    def fit(self, sample: Sample, rng: np.random.Generator) -> State:
        of_gamma, of_tilt, of_draw = rng.spawn(3)
        d = sample.X.shape[1]
        gamma = fit_gamma(self.gamma, sample.X, of_gamma)
        tilt = best_tilt(gamma * _median_sum(sample.X, of_tilt), d) if self.tilt == "fitted" else 0.0
        directions = draw_directions(self.directions, self.n_drawn, d, of_draw)
        return {"directions": directions, "gamma": np.array(gamma), "tilt": np.array(tilt)}

    def state_shapes(self, state: State, n_features_in: int) -> Shapes:
        tilt = ArrayOf((), sign="of at most 0")
        return {"directions": (self.n_drawn, n_features_in), "gamma": (), "tilt": tilt}

    def bind(self, state: State, n_features_in: int, dtype: np.dtype[Any]) -> Transform:
        return _ExponentialTransform(state, self.n_components, dtype)

    def exact(self, state: State, pair: KernelInputs) -> KernelInputs:
        return ExponentialKernel().gram(pair, KernelParameters.of(self, float(state["gamma"])))


def best_tilt(phi: float, d: int) -> float:
    """Return the A of least variance for one direction at ‖x + y‖² = φ (Likhosherstov et al. 2022, theorem 4.1)."""
    # A = (1 − 1/ρ)/8, where ρ in (0, 1] solves 2φρ² + (2φ + d)ρ − d = 0. This form avoids cancellation, and φ².
    share = 2.0 * phi / d
    return float((1.0 - 0.5 * (np.hypot(share + 1.0, np.sqrt(4.0 * share)) + share + 1.0)) / 8.0)


def _median_sum(X: Floats, rng: np.random.Generator) -> float:
    """Return the median of ‖x + y‖² over random pairs of rows, which outliers do not change."""
    first, second = rng.integers(len(X), size=(2, _PAIRS))
    parts = [
        ((X[first[some]].astype(np.float64) + X[second[some]]) ** 2).sum(axis=1)
        for some in blocks(_PAIRS, X.shape[1])
    ]
    return float(np.median(np.concatenate(parts)))


def exponent_terms(state: State, n_components: int) -> tuple[Floats, Floats, float]:
    """Return V (m, d), s (m,) and r, with which the exponents of a row x are ±v·x + s − ‖r x‖²."""
    w, gamma, tilt = state["directions"], float(state["gamma"]), float(state["tilt"])
    d = w.shape[1]
    shifts = tilt * (w**2).sum(axis=1) + d / 4.0 * np.log1p(-4.0 * tilt) - 0.5 * np.log(n_components)
    return np.sqrt(gamma * (1.0 - 4.0 * tilt)) * w, shifts, float(np.sqrt(gamma / 2.0))


class _ExponentialTransform(Transform):
    """A transform by one matrix product; exponents are written into the output, then replaced by exponentials."""

    def __init__(self, state: State, n_components: int, dtype: np.dtype[Any]) -> None:
        w, shifts, root = exponent_terms(state, n_components)
        self.n_features_in, self.n_features_out = w.shape[1], n_components
        self._w, self._shifts = np.ascontiguousarray(w, dtype=dtype), shifts.astype(dtype)
        self._root = dtype.type(root)
        bounds = np.finfo(dtype)
        self._low, self._high = float(np.log(bounds.tiny)), float(np.log(bounds.max))
        self._dtype = dtype

    def scratch(self, rows: int) -> Scratch:
        m, d = self._w.shape
        return np.empty(rows * m, dtype=self._dtype), np.empty((rows, d), dtype=self._dtype)

    def apply(self, X: Floats, out: Floats, scratch: Scratch) -> None:
        m, (flat, scaled) = len(self._w), scratch
        angles = shaped(flat, (len(X), m), is_feature_major(out))
        np.matmul(X, self._w.T, out=angles)
        np.multiply(X, self._root, out=scaled)
        squares = np.einsum("ij,ij->i", scaled, scaled)[:, None]
        parts = (out[:, :m], out[:, m:]) if self.n_features_out > m else (out,)
        for part, combine in zip(parts, (np.add, np.subtract), strict=False):
            combine(self._shifts, angles, out=part)
            part -= squares
        self._refuse_range(out)
        np.exp(out, out=out)

    def _refuse_range(self, exponents: Floats) -> None:
        """Raise an error for a row whose largest output overflows or vanishes: its kernel would be lost."""
        largest = exponents.max(axis=1)
        bad = ~((largest > self._low) & (largest < self._high))
        if bad.any():
            row = int(np.argmax(bad))
            raise InvalidValueError(
                row,
                None,
                f"expected a largest exponent from {self._low:.4g} to {self._high:.4g}, which {self._dtype} can hold, "
                f"got {largest[row]:.4g}: lower gamma, {remedy(self._dtype)}",
            )
