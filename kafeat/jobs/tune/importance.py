"""The share of each input column in a metric that is learned from the label after the chosen scaler."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kafeat.chain.chain import Chain
from kafeat.errors import DataError
from kafeat.jobs.fit.subsets import Subset, subset_of
from kafeat.jobs.fit.validation import fit_chain
from kafeat.jobs.tune.space import Candidate, SearchSpace
from kafeat.types import Array

_MOST_ROWS = 6000
_PROBED_ROWS = 512


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
    names = table.sample.names or tuple(f"column {j}" for j in range(table.sample.X.shape[1]))
    shares = weights if _one_to_one(chain) else _by_column(chain, subset, weights)
    return {str(names[j]): float(shares[j]) for j in np.argsort(-shares, kind="stable")}


def _one_to_one(chain: Chain) -> bool:
    """Return true if each input of the metric belongs to the column with its number."""
    return all(one.step.columnwise or one.step.kind == "normalize" for one in chain.steps[:-1])


def _by_column(chain: Chain, subset: Subset, weights: Array) -> Array:
    """Return the sums of the weights of those inputs of the metric that change with each column."""
    before, X = Chain(chain.steps[:-1]), subset.sample.X[:_PROBED_ROWS]
    outputs, shares = before.transform(X), np.zeros(X.shape[1])
    for j in range(X.shape[1]):
        changed = X.copy()
        changed[:, j] = np.roll(X[:, j], 1)
        shares[j] = weights[(before.transform(changed) != outputs).any(axis=0)].sum()
    return shares
