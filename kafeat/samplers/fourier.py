"""Random Fourier features."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self

import numpy as np
from pydantic import model_validator

from kafeat import spectra
from kafeat.bandwidth import Rule, resolve_gamma
from kafeat.kernels import KERNELS, KernelParameters
from kafeat.pair import Pair
from kafeat.step import PositiveFloat, PositiveInt, Sample, Step, Transform, parameter
from kafeat.trigonometric import CosineTransform, Features, count_frequencies, draw_state, refuse_odd
from kafeat.types import Shape, State


class Fourier(Step):
    """Random Fourier features for the rbf kernel: z(x)·z(y) ≈ exp(−γ‖x − y‖²).

    The kernel is E_ω[cos ω·(x − y)] with ω ~ N(0, 2γ I); m frequencies average it, so the error of every
    entry falls like 1/√m, whatever the number of inputs. Paired features, √(1/m)[cos ω_j·x, sin ω_j·x], m = D/2,
    have a lower variance than offset ones, √(2/D) cos(ω_j·x + b_j), at half the matrix product.
    Orthogonal frequencies spread the directions, which helps most for rows that are close.

    Source: Rahimi & Recht 2007, algorithm 1; Yu et al. 2016, section 3 (orthogonal).
    """

    kernel: Literal["rbf"] = parameter("rbf", "the kernel to approximate")
    gamma: PositiveFloat | Rule = parameter("median", "γ, or how it is read off the fit sample")
    n_components: PositiveInt = parameter(1024, "D, the number of outputs")
    frequencies: Literal["iid", "orthogonal"] = parameter("orthogonal", "how the frequencies are drawn")
    features: Features = parameter(
        "paired", "cosine and sine of each frequency, or cosines with random phases"
    )

    @model_validator(mode="after")
    def _even(self) -> Self:
        refuse_odd(self.n_components, self.features)
        return self

    @property
    def needs_coordinates(self) -> bool:
        return KERNELS[self.kernel].needs_coordinates

    def fit(self, sample: Sample, rng: np.random.Generator) -> State:
        of_gamma, of_draw = rng.spawn(2)
        gamma = resolve_gamma(self.gamma, KERNELS[self.kernel], sample.X, of_gamma)
        law = spectra.rbf()
        draw = law.orthogonal if self.frequencies == "orthogonal" else law.iid
        m = count_frequencies(self.n_components, self.features)
        frequencies = draw(m, sample.X.shape[1], gamma, of_draw)
        state = draw_state(frequencies, self.n_components, self.features, of_draw)
        return {**state, "gamma": np.array(gamma)}

    def state_shapes(self, state: State, n_features_in: int) -> Mapping[str, Shape]:
        m = count_frequencies(self.n_components, self.features)
        phases = {"phases": (m,)} if self.features == "offset" else {}
        return {"frequencies": (m, n_features_in), "gamma": (), **phases}

    def bind(self, state: State, n_features_in: int, dtype: np.dtype[Any]) -> Transform:
        return CosineTransform(state, dtype)

    def exact(self, state: State, pair: Pair) -> Pair:
        return KERNELS[self.kernel].gram(pair, KernelParameters(gamma=float(state["gamma"])))
