"""Make skewed columns nearly normal, with one exponent per column."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from kafeat.compiled.library import ARRAY, FLAG, SIZE, loop
from kafeat.contract.checks import ScalerLoop
from kafeat.contract.step import DOUBLE, Sample, Transform
from kafeat.contract.traits import ColumnTraits, NumberTraits, Traits
from kafeat.scalers._columns import ColumnScaler
from kafeat.types import Floats, State

_MOST_ROWS = 10_000
"""The most rows to fit the exponent to. Its standard error is then too small to affect any learner."""
_WIDEST = 10.0
_CHANCE = 5.4
"""Half of the 0.999 quantile of χ² with one degree of freedom: by chance, a log-likelihood rarely gains more."""


class Power(ColumnScaler):
    """(y(x) − μ)/σ, with y = ((1 + x)^λ − 1)/λ for x ≥ 0, and −((1 − x)^{2−λ} − 1)/(2 − λ) for x < 0.

    λ of each column maximizes the likelihood of normal values on the fit sample. μ and σ are the mean and the standard
    deviation of y there. λ is 1, which leaves x as it is, unless another value is better by more than chance. Skewed
    columns and heavy tails become nearly symmetric. Source: Yeo & Johnson 2000.
    """

    always: ClassVar[Traits] = Traits(
        columns=ColumnTraits(apart=True), numbers=NumberTraits(spreads="ignores")
    )
    learned: ClassVar[tuple[str, ...]] = ("exponent", "mean", "scale")

    def fit(self, sample: Sample, rng: np.random.Generator) -> State:
        X = sample.X
        exponents = np.array([_exponent(X[:, j]) for j in range(X.shape[1])])
        mean, scale = np.empty(len(exponents)), np.ones(len(exponents))
        for j, exponent in enumerate(exponents):
            bent = _bend(X[:, j].astype(np.float64), exponent)
            mean[j] = bent[0] + (bent - bent[0]).mean()
            spread = np.sqrt(np.mean((bent - mean[j]) ** 2))
            if spread > 10.0 * np.finfo(np.float64).eps * abs(mean[j]):
                scale[j] = spread
        return {"exponent": exponents, "mean": mean, "scale": scale}

    def bind(self, state: State, n_features_in: int, dtype: np.dtype[Any]) -> Transform:
        run = loop("power", DOUBLE, ARRAY, SIZE, SIZE, ARRAY, ARRAY, ARRAY, ARRAY, result=FLAG)
        if run is None or dtype != DOUBLE:
            return super().bind(state, n_features_in, dtype)
        numbers = (np.ascontiguousarray(state[name], DOUBLE) for name in self.learned)
        return ScalerLoop(self, state, n_features_in, run, *numbers)

    def scale(self, state: State, X: Floats) -> Floats:
        bent = _bend(X, state["exponent"])
        bent -= state["mean"]
        bent /= state["scale"]
        return bent


def _bend(x: Floats, exponent: Floats | float) -> Floats:
    """Return y for x (n, d) or (n,): sign(x)·(e^{p·log(1 + |x|)} − 1)/p, with p = λ for x ≥ 0 and 2 − λ below."""
    power = np.where(x >= 0.0, exponent, 2.0 - np.asarray(exponent)).astype(x.dtype)
    logs = np.log1p(np.abs(x))
    linear = np.abs(power) < np.finfo(x.dtype).eps  # for p → 0, (e^{pl} − 1)/p becomes l
    bent: Floats = np.expm1(power * logs)
    bent /= np.where(linear, 1.0, power)
    return np.copysign(np.where(linear, logs, bent), x)


def _exponent(x: Floats) -> float:
    """Return the λ of the largest log-likelihood, −n/2·log σ²(y) + (λ − 1)·Σ sign(x) log(1 + |x|)."""
    from scipy.optimize import minimize_scalar

    # at most `_MOST_ROWS` rows, evenly spaced
    x = x[:: -(-len(x) // _MOST_ROWS)].astype(np.float64)
    if np.ptp(x) <= 10.0 * np.finfo(np.float64).eps * np.abs(x).max():
        return 1.0  # which leaves x as it is
    jacobian = np.sum(np.copysign(np.log1p(np.abs(x)), x))

    def loss(exponent: float) -> float:
        with np.errstate(over="ignore", invalid="ignore"):
            variance = np.var(_bend(x, exponent))
        if not np.isfinite(variance) or variance < np.finfo(np.float64).tiny:
            return np.inf
        return float(0.5 * len(x) * np.log(variance) - (exponent - 1.0) * jacobian)

    found = minimize_scalar(loss, bounds=(-_WIDEST, _WIDEST), method="bounded", options={"xatol": 1e-6})
    return float(found.x) if found.fun < loss(1.0) - _CHANCE else 1.0
