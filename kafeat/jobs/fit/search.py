"""Choose parameters from the data: values by their validation score, the width by a target error.

`gamma: {validate: [0.01, 0.1, 1]}` is in `validation`. `n_components: {target_error: 0.02}` doubles the width until the
relative Frobenius error against the exact kernel, on rows held out of the sample, is at or below the target, and then
interpolates between the last two widths. Every search is recorded, with its curve.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from kafeat.config.model import SearchOptions
from kafeat.contract.step import Sample, Step
from kafeat.errors import DataError, UsageError
from kafeat.evaluation.kernel_error import relative_frobenius
from kafeat.evaluation.learners import FeaturesScorer, features_score
from kafeat.jobs.fit.subsets import Subset, folds_of, train_and_test
from kafeat.jobs.fit.validation import Recipe, choose_values, fit_chain, open_searches, trying
from kafeat.model.provenance import Search
from kafeat.registry import build_step

# Widths that are tried.
_FIRST_WIDTH, _LAST_WIDTH = 16, 16_384


def settle(
    steps: Sequence[Step],
    sample: Sample,
    rng: np.random.Generator,
    options: SearchOptions,
    scorer: FeaturesScorer = features_score,
) -> tuple[tuple[Step, ...], list[Search]]:
    """Return the steps with a value in the place of every search, and the record of each search."""
    if not any(step.searches for step in steps):
        return tuple(steps), []
    for i, step in enumerate(steps):
        if step.unsaved is not None:
            raise UsageError(
                f"steps[{i}].{step.unsaved}: parameters cannot be chosen from the data for it: give values"
            )
    recipes = [step.recipe() for step in steps]
    train, test = train_and_test(sample, rng, options.rows)
    folds = [(train, test)] if options.folds is None else folds_of(sample, rng, options.folds, options.rows)
    # Values first, as the width that a map needs depends on them.
    records = choose_values(recipes, folds, rng, options, scorer)
    for place, holder, key in list(open_searches(recipes, "target_error")):
        record = _reach(recipes, holder, holder[key]["target_error"], train, test, rng, place)
        holder[key] = record["chosen"]
        records.append(Search(parameter=place, **record))
    return tuple(build_step(recipe) for recipe in recipes), records


def _reach(
    recipes: list[Recipe],
    holder: Recipe,
    target: float,
    train: Subset,
    test: Subset,
    rng: np.random.Generator,
    place: str,
) -> dict[str, Any]:
    search, curve = holder["n_components"], {}
    own = build_step({**holder, "n_components": _FIRST_WIDTH}).own_kernel
    if own is not None:
        raise UsageError(f"{place}: target_error: expected a map of a given kernel, got {own}: give a number")

    def error(width: int) -> float:
        holder["n_components"] = width
        try:
            with trying({place: width}):
                chain = fit_chain(recipes, train, rng)
                X = test.sample.X
                curve[width] = relative_frobenius(chain.exact(X, X), test.features(chain))
        finally:
            holder["n_components"] = search
        if np.isinf(curve[width]):
            raise DataError(f"{place}: target_error: expected a kernel that is not 0 on all rows, got zeros")
        return curve[width]

    chosen = _smallest(error, target, _last_width(holder, train), place)
    widths = sorted(curve)
    return {"target_error": target, "widths": widths, "errors": [curve[w] for w in widths], "chosen": chosen}


def _last_width(holder: Recipe, train: Subset) -> int:
    """Return the largest width to try: a Nyström map has at most as many outputs as there are rows."""
    return min(_LAST_WIDTH, len(train)) if holder["kind"] == "nystroem" else _LAST_WIDTH


def _smallest(error: Callable[[int], float], target: float, last: int, place: str) -> int:
    """Find the smallest width that reaches the target: double it, then interpolate on logarithmic scales."""
    width, before = _FIRST_WIDTH, float("inf")
    while True:
        reached = error(min(width, last))
        if reached <= target:
            break
        if width >= last:
            raise DataError(
                f"{place}: target_error: expected an error of at most {target:g}, got {reached:.3g} at {last:,} "
                "outputs: raise the target, or choose another map"
            )
        width, before = 2 * width, reached
    if width == _FIRST_WIDTH:
        return width
    width, below = min(width, last), width // 2
    share = np.log(before / target) / np.log(before / max(reached, 1e-12))
    between = round_up_to_even(below * (width / below) ** float(np.clip(share, 0.0, 1.0)))
    return between if below < between < width and error(between) <= target else width


def round_up_to_even(value: float) -> int:
    """Round up to an even number, as many maps have pairs of features."""
    # A power that is a whole number may come out slightly above it.
    return 2 * int(np.ceil(value / 2.0 - 1e-9))
