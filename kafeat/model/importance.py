"""The shares of columns in a metric that was learned from a label."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kafeat.model.feature_map import FeatureMap


class Importance(NamedTuple):
    """The share of each input of a step in its metric, the heaviest first, and the number of directions that count.

    `directions` is the least number of eigenvalues that sum to 90 % of all.
    """

    shares: dict[str, float]
    directions: int


def importance_of(fm: FeatureMap, i: int) -> Importance | None:
    """Return what the step with this index has learned of its inputs, None if it learns no metric."""
    state = fm.chain.steps[i].state
    if "importance" not in state:
        return None
    weights, spectrum = state["importance"], state["spectrum"]
    kept = all(before.step.columnwise for before in fm.chain.steps[:i])
    names = fm.columns.names if kept else [f"input {j}" for j in range(len(weights))]
    shares = {names[j]: float(weights[j]) for j in np.argsort(-weights, kind="stable")}
    return Importance(shares, int(np.searchsorted(np.cumsum(spectrum), 0.9 * spectrum.sum()) + 1))


def first_importance(fm: FeatureMap) -> dict[str, float] | None:
    """Return the shares of the columns in the first metric of the chain, None if there is none."""
    every = (importance_of(fm, i) for i in range(len(fm.chain.steps)))
    return next((found.shares for found in every if found is not None), None)
