"""The shares of columns in a metric that was learned from a label."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kafeat.chain.chain import sources_of
from kafeat.model.feature_map import FeatureMap


class Importance(NamedTuple):
    """The share of each column in the metric of a step, the largest first, and the number of directions that count.

    They are what the metric stretches, and not what columns are worth: a rare category has a large slope. Where the
    steps before it mix columns, the shares are those of the inputs of the step.

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
    sources = sources_of(fm.chain.steps[:i]) if i else np.arange(len(weights))
    if sources is None:
        names: Sequence[str] = [f"input {j}" for j in range(len(weights))]
    else:
        names, weights = fm.columns.names, np.bincount(sources, weights, fm.chain.n_features_in)
    shares = {names[j]: float(weights[j]) for j in np.argsort(-weights, kind="stable")}
    return Importance(shares, int(np.searchsorted(np.cumsum(spectrum), 0.9 * spectrum.sum()) + 1))
