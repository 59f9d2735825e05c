"""Random features of the skewed kernels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self

import numpy as np
from pydantic import model_validator

from kafeat import kernels, spectra
from kafeat.kernels import KernelParameters
from kafeat.pair import Pair
from kafeat.step import PositiveFloat, PositiveInt, Sample, Step, Transform, parameter
from kafeat.trigonometric import (
    CosineTransform,
    Features,
    count_frequencies,
    draw_state,
    log_warp,
    refuse_odd,
)
from kafeat.types import Shape, State


class Skewed(Step):
    """Random features for the skewed chi2 kernel: z(x)·z(y) ≈ Π_i 2√(x_i + c)√(y_i + c)/(x_i + y_i + 2c).

    On log(x + c) the kernel is shift-invariant, with the frequency density sech(πω) in each coordinate, so it is
    Fourier features behind a logarithm. The error of every entry falls like 1/√D. Inputs must lie above −c.

    Source: Li, Ionescu & Sminchisescu 2010, section 3.
    """

    kernel: Literal["chi2"] = parameter("chi2", "the skewed kernel to approximate")
    skewedness: PositiveFloat = parameter(1.0, "c, added to every input; inputs must be above -c")
    n_components: PositiveInt = parameter(1024, "D, the number of outputs")
    frequencies: Literal["iid"] = parameter("iid", "how the frequencies are drawn")
    features: Features = parameter(
        "paired", "cosine and sine of each frequency, or cosines with random phases"
    )

    @model_validator(mode="after")
    def _even(self) -> Self:
        refuse_odd(self.n_components, self.features)
        return self

    def fit(self, sample: Sample, rng: np.random.Generator) -> State:
        log_warp(self.skewedness)(sample.X, np.empty_like(sample.X))
        m = count_frequencies(self.n_components, self.features)
        frequencies = spectra.skewed_chi2().iid(m, sample.X.shape[1], 1.0, rng)
        return draw_state(frequencies, self.n_components, self.features, rng)

    def state_shapes(self, state: State, n_features_in: int) -> Mapping[str, Shape]:
        m = count_frequencies(self.n_components, self.features)
        phases = {"phases": (m,)} if self.features == "offset" else {}
        return {"frequencies": (m, n_features_in), **phases}

    def bind(self, state: State, n_features_in: int, dtype: np.dtype[Any]) -> Transform:
        return CosineTransform(state, dtype, log_warp(self.skewedness))

    def exact(self, state: State, pair: Pair) -> Pair:
        return kernels.skewed_chi2(pair, KernelParameters(skewedness=self.skewedness))
