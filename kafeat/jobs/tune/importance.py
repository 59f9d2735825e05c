"""The share of each input column in a metric that is learned from the label after the chosen scaler."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kafeat.chain.chain import sources_of
from kafeat.errors import DataError
from kafeat.jobs.fit.subsets import subset_of
from kafeat.jobs.fit.validation import fit_chain
from kafeat.jobs.tune.space import Candidate, SearchSpace

_MOST_ROWS = 6000


def column_importance(space: SearchSpace, chosen: Candidate, seed: int) -> dict[str, float] | None:
    """Return the shares, the largest first, from the chosen metric, or else from one weight for each column.

    None if too few rows or no difference among the columns say anything.
    """
    if chosen.map == "base":
        chosen = space.default()
    metric = "diagonal" if chosen.metric == "none" else chosen.metric
    recipes = space.steps(replace(chosen, metric=metric, map="rbf", gamma=1.0), 2, 2)[:-1]
    table = space.table
    rows = np.random.default_rng([seed, 8]).permutation(len(table.labels))[:_MOST_ROWS]
    subset = subset_of(table.sample, rows)
    try:
        chain = fit_chain(recipes, subset, np.random.default_rng([seed, 9]))
    except DataError:
        return None
    weights = chain.steps[-1].state["importance"]
    if "error_kept" not in chain.steps[-1].state or not np.ptp(weights) > 0.0:
        return None
    sources = sources_of(chain.steps[:-1])
    if sources is None:
        return None
    names = table.sample.names or tuple(f"column {j}" for j in range(table.sample.X.shape[1]))
    shares = np.bincount(sources, weights, len(names))
    return {str(names[j]): float(shares[j]) for j in np.argsort(-shares, kind="stable")}
