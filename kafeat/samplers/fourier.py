"""Random Fourier features for rbf, laplacian, matern and others: many features, fast, or trained for a label."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import numpy as np
from pydantic import Field

from kafeat.chain.chain import own_coordinates
from kafeat.contract.kernel_inputs import Coordinates, Gram, KernelInputs
from kafeat.contract.step import (
    AS_TUPLE,
    N_COMPONENTS,
    PositiveFloat,
    Sample,
    Transform,
    Width,
    parameter,
    refuse_parameter,
)
from kafeat.contract.traits import ExactTraits, Traits
from kafeat.errors import DataError
from kafeat.maths.bandwidth import Rule, resolve_gamma
from kafeat.maths.fourier.features import (
    FEATURES,
    WEIGHTS,
    Frequencies,
    RandomCosines,
    Weights,
    bind_random_features,
    length_scales,
)
from kafeat.maths.fourier.transform import Features
from kafeat.maths.kernel import KernelParameters, ShiftInvariantKernel
from kafeat.maths.kernels import find_kernel, kernel_names
from kafeat.types import Shapes, State

_DIRECTIONS = ("orthogonal", "structured", "fastfood")

if TYPE_CHECKING:
    KernelName = str
else:
    KernelName = Literal[kernel_names(ShiftInvariantKernel)]

LengthScales = Annotated[
    tuple[PositiveFloat, ...],
    Field(min_length=1),
    AS_TUPLE,
]


_SUPERVISED = "frequencies: supervised"


class Fourier(RandomCosines):
    """Random Fourier features: z(x)·z(y) ≈ k(x − y) = E_ω[cos ω·(x − y)].

    The cosine is averaged over m frequencies from the kernel's distribution, so the error of every entry falls like
    1/√m for any input. Paired features are √a_j [cos ω_j·x, sin ω_j·x], m = D/2, offset ones √(2a_j) cos(ω_j·x + b_j).
    The distribution of ω is N(0, 2γI) for rbf. In each coordinate it is Cauchy(0, γ) for laplacian and Laplace(0, √γ)
    for cauchy. It is N(0, γI)·√(2ν/χ²_{2ν}) for matern; N(0, 2γsI), s ~ Gamma(α, rate α), for rational_quadratic.

    Source: Rahimi & Recht 2007, algorithm 1; Yu et al. 2016 (orthogonal, structured); Le, Sarlós & Smola 2013
    (fastfood); Avron et al. 2016 (qmc); weights, learning and supervision: this project.
    """

    kernel: KernelName = parameter("rbf", "the kernel to approximate")
    gamma: PositiveFloat | Rule = parameter("median", "γ, or a rule to compute it from the fit sample")
    nu: PositiveFloat = parameter(1.5, "ν, the smoothness of matern")
    alpha: PositiveFloat = parameter(1.0, "α, the mixture of rational_quadratic")
    length_scale: PositiveFloat | LengthScales = parameter(
        1.0, "ℓ: inputs are divided by it before γ applies; one number, or one for each input"
    )
    n_components: Width = N_COMPONENTS
    frequencies: Frequencies = parameter(
        "learned",
        "how the frequencies are drawn, or learned from the sample (least error; slow to fit on wide inputs), or "
        "trained for the label (supervised)",
    )
    features: Features = FEATURES
    weights: Weights = WEIGHTS

    @property
    def traits(self) -> Traits:
        supervised = self.frequencies == "supervised"
        traits = super().traits
        return replace(
            traits,
            label=traits.label.needing({_SUPERVISED: "to train for"} if supervised else {}),
            exact=ExactTraits(
                self._exact.needs_coordinates or isinstance(self.length_scale, tuple) or supervised,
                own=_SUPERVISED if supervised else None,
            ),
        )

    def check_parameters(self) -> None:
        super().check_parameters()
        if self.frequencies in _DIRECTIONS and self._exact.needs_coordinates:
            refuse_parameter(
                "frequencies",
                f"'iid', 'qmc', 'learned' or 'supervised' for the kernel {self.kernel}",
                repr(self.frequencies),
            )

    @property
    def _exact(self) -> ShiftInvariantKernel:
        return cast(ShiftInvariantKernel, find_kernel(self.kernel))

    def fit(self, sample: Sample, rng: np.random.Generator) -> State:
        of_gamma, of_features = rng.spawn(2)
        scales = length_scales(self.length_scale, sample.X.shape[1])
        X = sample.X if scales is None else sample.X * scales
        if not np.isfinite(X).all():
            raise DataError(
                "fourier: length_scale: expected rows that float64 can hold when divided by it, got larger ones"
            )
        gamma = resolve_gamma(self.gamma, self._exact, X, of_gamma)
        law = self._exact.frequencies(KernelParameters.of(self, gamma))
        return {"gamma": np.array(gamma), **self.draw(law, X, sample, of_features)}

    def state_shapes(self, state: State, n_features_in: int) -> Shapes:
        return {"gamma": (), **super().state_shapes(state, n_features_in)}

    def check_state(self, state: State, n_features_in: int) -> None:
        super().check_state(state, n_features_in)
        length_scales(self.length_scale, n_features_in)

    def bind(self, state: State, n_features_in: int, dtype: np.dtype[Any]) -> Transform:
        scales = length_scales(self.length_scale, n_features_in)
        return bind_random_features(state, n_features_in, dtype, input_scale=scales)

    def exact(self, state: State, pair: KernelInputs) -> KernelInputs:
        if self.traits.exact.own:
            return own_coordinates(self, state, pair)
        if self.length_scale != 1.0:
            if isinstance(pair, Coordinates):
                scales = length_scales(self.length_scale, pair.x.shape[1])
                if scales is not None:
                    pair = Coordinates(pair.x * scales, pair.y * scales)
            elif not isinstance(self.length_scale, tuple):
                square = self.length_scale**2
                x, y = pair.squared_norms
                pair = Gram(pair.dots / square, (x / square, y / square))
        return self._exact.gram(pair, KernelParameters.of(self, float(state["gamma"])))
