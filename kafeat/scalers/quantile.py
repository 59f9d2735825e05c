"""Replace values by their ranks, so that heavy tails and odd scales no longer matter."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from kafeat.compiled.library import ARRAY, REAL, SIZE, loop
from kafeat.contract.checks import ScalerLoop, count_rows
from kafeat.contract.step import DOUBLE, PositiveFloat, Sample, Scaler, Transform, parameter
from kafeat.contract.traits import ColumnTraits, NumberTraits, Traits
from kafeat.types import Array, Floats, Shapes, State

_CELLS = 2048
"""The number of cells into which the compiled loop divides a column's range, to start searches."""


class Quantile(Scaler):
    """z = Φ⁻¹(F(x)), or F(x) for `output: uniform`, with the distribution function F of each column in the fit sample.

    F is 0 below the quantiles of the sample, linear between them, and 1 above them. Where several quantiles are equal,
    F is the mean of their first and last level. A column of one value becomes 0, or 1/2. Normal values end at ±`clip`.
    """

    always: ClassVar[Traits] = Traits(
        columns=ColumnTraits(apart=True), numbers=NumberTraits(spreads="ignores")
    )

    output: Literal["normal", "uniform"] = parameter("normal", "distribution of the output columns")
    n_quantiles: Annotated[int, Field(ge=2, le=10_000)] = parameter(
        1000, "quantiles between which F is interpolated, at most one for each row of the sample"
    )
    clip: PositiveFloat = parameter(3.0, "largest size of normal values, in standard deviations")

    def fit(self, sample: Sample, rng: np.random.Generator) -> State:
        n = len(sample.X)
        # Rounded, because rounding errors in positions would make quantiles that are equal differ a little.
        positions = np.linspace(0.0, n - 1.0, max(2, min(self.n_quantiles, n))).round(9)
        below = positions.astype(np.int64)
        share = positions - below
        quantiles = np.empty((len(positions), sample.X.shape[1]))
        for j in range(sample.X.shape[1]):
            ascending = np.sort(sample.X[:, j])
            after = ascending[np.minimum(below + 1, n - 1)]
            quantiles[:, j] = (1.0 - share) * ascending[below] + share * after
        # rounding must not make a quantile smaller than the one before
        return {"quantiles": np.maximum.accumulate(quantiles)}

    def state_shapes(self, state: State, n_features_in: int) -> Shapes:
        return {"quantiles": (count_rows(state, "quantiles"), n_features_in)}

    def check_state(self, state: State, n_features_in: int) -> None:
        if not 2 <= len(state["quantiles"]) <= self.n_quantiles:
            raise ValueError(f"state.quantiles: expected from 2 to {self.n_quantiles:,} rows")
        if (np.diff(state["quantiles"], axis=0) < 0.0).any():
            raise ValueError("state.quantiles: expected ascending numbers in every column")

    def bind(self, state: State, n_features_in: int, dtype: np.dtype[Any]) -> Transform:
        search = (ARRAY, ARRAY, SIZE, ARRAY, SIZE, ARRAY, ARRAY)
        run = loop("quantile", DOUBLE, ARRAY, SIZE, SIZE, *search, REAL, ARRAY)
        if run is None or dtype != DOUBLE:
            return super().bind(state, n_features_in, dtype)
        quantiles = np.ascontiguousarray(state["quantiles"].T, DOUBLE)
        levels = np.array([_mean_levels(ascending) for ascending in quantiles])
        # Every search starts in the cell of its value, and takes as many steps as the longest search of its column.
        cells = [_cells(ascending) for ascending in quantiles]
        first, steps = (np.array([cell[i] for cell in cells], np.int32) for i in (0, 2))
        scales = np.array([scale for _, scale, _ in cells])
        known = quantiles, levels, quantiles.shape[1], first, _CELLS, scales, steps
        clip = 0.0 if self.output == "uniform" else self.clip
        return ScalerLoop(self, state, n_features_in, run, *known, clip)

    def scale(self, state: State, X: Floats) -> Floats:
        quantiles = state["quantiles"]
        levels = np.linspace(0.0, 1.0, len(quantiles))
        scaled = np.empty(X.shape, dtype=X.dtype)
        for j, column in enumerate(quantiles.T):
            x, ascending = X[:, j], np.ascontiguousarray(column)
            # At equal quantiles, np.interp returns the level of the last one, or of the first if signs are reversed.
            from_below = np.interp(x, ascending, levels)
            from_above = np.interp(-x, -ascending[::-1], -levels[::-1])
            scaled[:, j] = 0.5 * (from_below - from_above)
        return scaled if self.output == "uniform" else _normal(scaled, self.clip)


def _normal(F: Floats, clip: float) -> Floats:
    from scipy.special import ndtri

    with np.errstate(divide="ignore"):
        values: Floats = ndtri(F)
    np.clip(values, -clip, clip, out=values)
    return values


def _mean_levels(ascending: Floats) -> Floats:
    """Return the level of each quantile. Equal quantiles have the mean of their first and last level."""
    first, last = (np.searchsorted(ascending, ascending, side) for side in ("left", "right"))
    return (first + (last - 1)) * (0.5 / (len(ascending) - 1))


def _cells(ascending: Floats) -> tuple[Array, float, int]:
    """Return for each cell the quantile where a search starts, the cells per unit of x, and the most search steps."""
    with np.errstate(over="ignore", divide="ignore"):
        scale = _CELLS / (ascending[-1] - ascending[0])
    if not 0.0 < scale < np.inf:  # all values are in one cell
        return np.zeros(_CELLS, np.intp), 0.0, (len(ascending) - 1).bit_length()
    # computed exactly like the C loop, so that both agree on the cell of a value
    places = np.minimum((ascending - ascending[0]) * scale, _CELLS - 1).astype(np.intp)
    first = np.maximum(np.searchsorted(places, np.arange(_CELLS)) - 1, 0)
    last = np.searchsorted(places, np.arange(_CELLS), "right") - 1
    return first, float(scale), int((last - first).max()).bit_length()
