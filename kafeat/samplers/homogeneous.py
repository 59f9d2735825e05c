"""Histograms and counts: the chi2, intersection, hellinger and jensen_shannon kernels, without randomness."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from pydantic import Field

from kafeat.compiled.library import ARRAY, FLAG, SIZE, Loop, address, loop
from kafeat.contract.checks import refuse_negative
from kafeat.contract.kernel_inputs import Coordinates, KernelInputs
from kafeat.contract.step import PositiveFloat, Sample, Step, Transform, parameter, refuse_parameter
from kafeat.contract.tile import Rows, SparseRows, dense, is_feature_major, runs, shaped
from kafeat.contract.traits import NumberTraits, Traits
from kafeat.maths import windows
from kafeat.maths.kernel import KernelParameters
from kafeat.maths.kernels.histograms import ADDITIVE
from kafeat.maths.windows import ratio_weights, widest_ratio
from kafeat.types import ArrayOf, Floats, Scratch, Shapes, State

# Ratios that the sample does not contain count a little, so that a fitted window also suits other data. In the mean
# error, they have this share of all weights. In the largest error, their errors are multiplied by this factor.
_UNSEEN_SHARE = 1e-3
_UNSEEN_WEIGHT = 1.0 / 30.0
# `criterion: auto` minimizes the largest error if the error of the sample's kernel grows by at most this factor. It
# grows 1.3 to 1.45 times for uniform numbers, 1.8 to 2.5 for bags of words, and 2.5 to 3 for histograms of one kind.
_DEARER = 1.6
# For this comparison: the most rows, the most numbers in their features, and the most terms of their exact kernel.
_ROWS = 256
_MOST_FEATURES = 1 << 22
_MOST_ENTRIES = 1 << 26


if TYPE_CHECKING:
    KernelName = str
else:
    KernelName = Literal[tuple(ADDITIVE)]


class Homogeneous(Step):
    """Homogeneous kernel map: z(x)·z(y) ≈ Σ_i (x_i y_i)^{γ/2} 𝒦(log(y_i/x_i)), where 𝒦 is the signature of the kernel.

    chi2: 2xy/(x + y); intersection: min(x, y); hellinger: √(xy), which one feature gives exactly; jensen_shannon: ½x
    log₂((x + y)/x) + ½y log₂((x + y)/y). For γ ≠ 1, these formulas are multiplied by (xy)^{(γ − 1)/2}. 𝒦(ω) is
    sech(ω/2) for chi2, exp(−|ω|/2) for intersection, and 1 for hellinger. The window determines κ_j and L. The outputs
    come in blocks of one output per input: √(x^γ) times √κ₀, then √(2κ₁) cos(L log x), √(2κ₁) sin(L log x), √(2κ₂)
    cos(2L log x) and so on, up to n. All outputs are 0 at x = 0. The error is √((xy)^γ) ε(log y/x), ε(ω) = κ₀ + 2 Σ_j
    κ_j cos(jLω) − 𝒦(ω). The error falls fast with n, but slowly for intersection, whose 𝒦 has a kink.

    Source: Vedaldi & Zisserman 2012, equations 15 (uniform window) and 18 (rectangular), table 2 (periods).
    """

    kernel: KernelName = parameter("chi2", "the additive kernel to approximate")
    order: Annotated[int, Field(ge=0, le=1000)] | None = parameter(
        None, "n; there are 2n + 1 outputs per input; null: 1, and 0 for hellinger"
    )
    homogeneity: PositiveFloat = parameter(1.0, "γ: scaling the inputs by s scales the kernel by s^γ")
    window: Literal["minimax", "uniform", "rectangular", "fitted"] = parameter(
        "minimax",
        "chooses κ_j and L: for the least largest error, as samples of the spectrum, from one period of the signature, "
        "or for the least error on the sample",
    )
    period: Annotated[float, Field(ge=1)] | None = parameter(
        None, "Λ = 2π/L; null: tabulated for uniform and rectangular, else the best one"
    )
    criterion: Literal["auto", "mean", "max"] = parameter(
        "auto",
        "the error that a fitted window minimizes: the mean squared one over pairs of entries, or the largest one; "
        "auto: the largest, unless the sample's kernel then has a much larger error",
    )
    negative: Literal["error", "signed"] = parameter(
        "error", "reject negative inputs, or give them the outputs of |x| with a minus sign"
    )

    @property
    def traits(self) -> Traits:
        return replace(
            super().traits, numbers=NumberTraits(spreads="ignores", refuses_negative=self.negative == "error")
        )

    def check_parameters(self) -> None:
        if self.kernel == "hellinger":
            if self.order:
                refuse_parameter("order", "0 for hellinger, whose one feature √x is exact", self.order)
            if self.period is not None:
                refuse_parameter("period", "none for hellinger, which has no frequencies", self.period)

    @property
    def n(self) -> int:
        """The order: by default 1, and 0 for hellinger."""
        if self.order is None:
            return 0 if self.kernel == "hellinger" else 1
        return self.order

    def fit(self, sample: Sample, rng: np.random.Generator) -> State:
        if self.negative == "error":
            refuse_negative(sample.X)
        frequencies, coefficients = self._coefficients(sample.X, rng)
        return {"frequencies": frequencies, "coefficients": coefficients}

    def _coefficients(self, X: Floats, rng: np.random.Generator) -> windows.Coefficients:
        if self.kernel == "hellinger":
            return np.empty(0), np.ones(1)
        kernel, order, period = self.kernel, self.n, self.period
        if self.window == "uniform":
            return windows.uniform(kernel, order, period)
        if self.window == "rectangular":
            return windows.rectangular(kernel, order, period)
        if self.window == "fitted":
            ratios, weights = ratio_weights(X, self.homogeneity, rng)
            if weights.any():
                return self._fitted(ratios, weights, X, rng)
        return windows.minimax(kernel, order, period)

    def _fitted(
        self, ratios: Floats, weights: Floats, X: Floats, rng: np.random.Generator
    ) -> windows.Coefficients:
        kernel, order, period = self.kernel, self.n, self.period
        # The ratios of the largest entries are in the tail, so only 1e-5 of the weight may lie above `widest`.
        widest = widest_ratio(ratios, weights, 1e-5)
        unseen = np.exp(-ratios)
        weights = weights / weights.sum() + _UNSEEN_SHARE * unseen / unseen.sum()
        if self.criterion != "max":
            least_mean = windows.least_squares(kernel, order, period, ratios, weights)
            if self.criterion == "mean":
                return least_mean
        least_max = windows.minimax(kernel, order, period, widest, _UNSEEN_WEIGHT)
        if self.criterion == "max" or order > windows.MOST_SOLVED:
            return least_max
        rows = _some_rows(X, order, rng)
        of_max, of_mean = (self._kernel_error(window, rows) for window in (least_max, least_mean))
        return least_max if of_max <= _DEARER * of_mean else least_mean

    def _kernel_error(self, window: windows.Coefficients, X: Floats) -> float:
        """Return ‖ZZᵀ − K‖_F on the rows X for a map with this window."""
        state = dict(zip(("frequencies", "coefficients"), window, strict=True))
        transform = self.bind(state, X.shape[1], X.dtype)
        Z = np.empty((len(X), transform.n_features_out))
        transform.apply(X, Z, transform.scratch(len(X)))
        return float(np.linalg.norm(Z @ Z.T - self.exact(state, Coordinates(X, X)).dots))

    def error_curve(self, state: State, X: Floats) -> tuple[Floats, Floats, Floats]:
        """Return ω = log(y/x) ≥ 0, the error k̂(ω) − 𝒦(ω) relative to (xy)^(γ/2), and the weight of each ω in X."""
        ratios, weights = ratio_weights(X, self.homogeneity, np.random.default_rng(0))
        used = max(2, int(np.searchsorted(np.cumsum(weights), 0.999 * weights.sum())) + 1)
        ratios, weights = ratios[:used], weights[:used]
        waves = np.cos(np.outer(ratios, state["frequencies"])) @ state["coefficients"][1:]
        near = state["coefficients"][0] + 2.0 * waves
        return ratios, near - ADDITIVE[self.kernel].signature(ratios), weights

    def state_shapes(self, state: State, n_features_in: int) -> Shapes:
        return {"frequencies": (self.n,), "coefficients": ArrayOf((self.n + 1,), sign="of at least 0")}

    def n_features_out(self, state: State, n_features_in: int) -> int:
        return n_features_in * (2 * self.n + 1)

    def bind(self, state: State, n_features_in: int, dtype: np.dtype[Any]) -> Transform:
        return _HomogeneousTransform(self, state, n_features_in, dtype)

    def exact(self, state: State, pair: KernelInputs) -> KernelInputs:
        return ADDITIVE[self.kernel].gram(pair, KernelParameters.of(self))


def _some_rows(X: Floats, order: int, rng: np.random.Generator) -> Floats:
    """Return random rows in float64, few enough for the cost of their features and of their exact kernel."""
    n, d = X.shape
    most = min(_ROWS, _MOST_FEATURES // (d * (2 * order + 1)), int(np.sqrt(_MOST_ENTRIES / d)))
    return X[np.sort(rng.choice(n, min(n, max(most, 2)), replace=False))].astype(np.float64)


class _HomogeneousTransform(Transform):
    """A transform of each entry by itself, in the same way for every column. The outputs of 0 are 0.

    With homogeneity 1 or 2, a compiled loop computes it. Otherwise, NumPy computes one logarithm and one power per
    entry, then cosines and sines.
    """

    gives_sparse = True

    def __init__(self, recipe: Homogeneous, state: State, n_features: int, dtype: np.dtype[Any]) -> None:
        self.n_features_in = n_features
        self.n_features_out = n_features * (2 * recipe.n + 1)
        # the amplitudes of the first output and of each pair of cosine and sine
        coefficients = state["coefficients"].copy()
        coefficients[1:] *= 2.0
        self._frequencies = state["frequencies"].astype(dtype)
        self._amplitudes = np.sqrt(coefficients).astype(dtype)
        self._exponent = recipe.homogeneity / 2.0
        self._signed, self._dtype = recipe.negative == "signed", dtype
        tile = (ARRAY, SIZE, SIZE, SIZE)
        run = loop("homogeneous", dtype, *tile, ARRAY, ARRAY, SIZE, FLAG, FLAG, ARRAY, SIZE, SIZE)
        self._loop = run if recipe.homogeneity in (1.0, 2.0) else None

    def to_sparse(self, X: Rows) -> tuple[SparseRows, None]:
        from scipy.sparse import csr_array, hstack

        rows = SparseRows.of(X)
        if not self._signed and rows.values.min(initial=0.0) < 0.0:
            refuse_negative(dense(X))
        of_entries = copy(self)
        of_entries.n_features_in, of_entries.n_features_out = 1, self.n_features_out // self.n_features_in
        outputs = np.empty((len(rows.values), of_entries.n_features_out), rows.dtype)
        of_entries.apply(rows.values[:, None], outputs, of_entries.scratch(len(outputs)))
        parts = [csr_array((values, rows.columns, rows.starts), shape=X.shape) for values in outputs.T]
        return SparseRows.of(hstack(parts, format="csr")), None

    def scratch(self, rows: int) -> Scratch:
        entries = rows * self.n_features_in
        return np.empty(entries if self._loop else (3, entries), dtype=self._dtype)

    def apply(self, X: Floats, out: Floats, scratch: Scratch) -> None:
        if not self._signed:
            refuse_negative(X)
        if self._loop:
            self._by_loop(self._loop, X, out, scratch)
            return
        # All passes use the memory order of the output, because the other order costs five times as much.
        feature_major = is_feature_major(out)
        root, logs, angles = (shaped(flat, X.shape, feature_major) for flat in scratch)
        blocks = np.split(out, self.n_features_out // self.n_features_in, axis=1)
        self._roots(X, root, logs)
        np.multiply(root, self._amplitudes[0], out=blocks[0])
        if not len(self._frequencies):
            return
        # log 0 would be −∞, and 0·cos(∞) is NaN. The root is 0 there, so any finite logarithm will do.
        np.maximum(logs, np.finfo(self._dtype).smallest_subnormal, out=logs)
        np.log(logs, out=logs)
        for j, (frequency, amplitude) in enumerate(zip(self._frequencies, self._amplitudes[1:], strict=True)):
            cos, sin = blocks[2 * j + 1 : 2 * j + 3]
            np.multiply(logs, frequency, out=angles)
            np.cos(angles, out=cos)
            np.sin(angles, out=sin)
            scaled = np.multiply(root, amplitude, out=angles)
            cos *= scaled
            sin *= scaled

    def _by_loop(self, run: Loop, X: Floats, out: Floats, scratch: Floats) -> None:
        feature_major = is_feature_major(out)
        if feature_major:
            entries = shaped(scratch, X.shape, True)
            entries[...] = X
        else:
            entries = np.ascontiguousarray(X)
        numbers, step = map(address, (self._frequencies, self._amplitudes)), out.strides[1] // out.itemsize
        run(
            address(entries), *runs(entries, feature_major), *numbers, len(self._frequencies), self._exponent == 1.0,
            self._signed, address(out), runs(out, feature_major)[2], self.n_features_in * step,
        )  # fmt: skip

    def _roots(self, X: Floats, root: Floats, sizes: Floats) -> None:
        """Write the root |x|^(γ/2) of each entry, with the sign of x, and the size |x|."""
        if self._signed:
            np.abs(X, out=sizes)
        else:
            sizes[...] = X
        if self._exponent == 0.5:
            np.sqrt(sizes, out=root)
        elif self._exponent == 1.0:
            root[...] = sizes
        else:
            np.power(sizes, self._exponent, out=root)
        if self._signed:
            np.copysign(root, X, out=root)
