"""Histograms: random features of kernels that are products over the columns, for comparison."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np

from kafeat.contract.kernel_inputs import KernelInputs
from kafeat.contract.step import (
    N_COMPONENTS,
    PositiveFloat,
    Sample,
    Transform,
    Width,
    parameter,
)
from kafeat.contract.traits import NumberTraits, Traits
from kafeat.maths.fourier.features import (
    FEATURES,
    FREQUENCIES,
    WEIGHTS,
    RandomCosines,
    Weights,
    bind_random_features,
)
from kafeat.maths.fourier.transform import Features, log_warp
from kafeat.maths.kernel import KernelParameters
from kafeat.maths.kernels.shift_invariant import SkewedChi2Kernel, SkewedIntersectionKernel
from kafeat.types import State


class Skewed(RandomCosines):
    """Random features of skewed kernels. For chi2, z(x)·z(y) ≈ Π_i 2√(x_i + c)√(y_i + c)/(x_i + y_i + 2c).

    As a function of log(x + c), the kernel is shift-invariant, with the frequency density sech(πω) in each coordinate,
    so these are Fourier features after a logarithm. With `kernel: intersection`, the kernel is Π_i min(√((x_i + c)/(y_i
    + c)), √((y_i + c)/(x_i + c))), with the density Cauchy(0, ½). The error of every entry falls like 1/√D. Inputs must
    lie above −c. `frequencies: learned` and `weights: fitted` work as in `fourier`.

    Source: Li, Ionescu & Sminchisescu 2010, section 3.
    """

    always: ClassVar[Traits] = Traits(numbers=NumberTraits(spreads="ignores", refuses_negative=True))

    kernel: Literal["chi2", "intersection"] = parameter("chi2", "the skewed kernel to approximate")
    skewedness: PositiveFloat = parameter(1.0, "c, added to every input; inputs must be above -c")
    n_components: Width = N_COMPONENTS
    frequencies: Literal["iid", "qmc", "learned"] = FREQUENCIES
    features: Features = FEATURES
    weights: Weights = WEIGHTS

    @property
    def _exact(self) -> SkewedChi2Kernel | SkewedIntersectionKernel:
        return SkewedChi2Kernel() if self.kernel == "chi2" else SkewedIntersectionKernel()

    def fit(self, sample: Sample, rng: np.random.Generator) -> State:
        logs = log_warp(self.skewedness)(sample.X, np.empty_like(sample.X))
        return self.draw(self._exact.log_frequencies(), logs, sample, rng)

    def bind(self, state: State, n_features_in: int, dtype: np.dtype[Any]) -> Transform:
        return bind_random_features(state, n_features_in, dtype, log_warp(self.skewedness))

    def exact(self, state: State, pair: KernelInputs) -> KernelInputs:
        return self._exact.gram(pair, KernelParameters.of(self))
