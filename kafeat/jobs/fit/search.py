"""Choose sizes from the data: γ by its validation score, the width by a target error.

`gamma: {validate: [0.01, 0.1, 1]}` fits the chain with each value on three quarters of the sample and keeps the one
whose features give a ridge model the best score on the rest. `n_components: {target_error: 0.02}` doubles the width
until the relative Frobenius error against the exact kernel, on rows held out of the sample, is at or below the target,
and then interpolates between the last two widths. Every search is recorded, with its curve.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from kafeat.chain.chain import Chain
from kafeat.contract.step import Sample, Step
from kafeat.errors import DataError, InvalidValueError, UsageError
from kafeat.evaluation.kernel_error import relative_frobenius
from kafeat.evaluation.learners import features_score
from kafeat.jobs.fit.subsets import Subset, train_and_test
from kafeat.model.provenance import Search
from kafeat.registry import build_step

# Widths that are tried.
_FIRST_WIDTH, _LAST_WIDTH = 16, 16_384
# While γ is looked for, a width that is yet to be found.
_WORKING_WIDTH = 256

Recipe = dict[str, Any]


def settle(
    steps: Sequence[Step], sample: Sample, rng: np.random.Generator
) -> tuple[tuple[Step, ...], list[Search]]:
    """Return the steps with a number in the place of every search, and the record of each search."""
    if not any(step.searches for step in steps):
        return tuple(steps), []
    for i, step in enumerate(steps):
        if step.unsaved is not None:
            raise UsageError(
                f"steps[{i}].{step.unsaved}: sizes cannot be chosen from the data for it: give numbers"
            )
    recipes = [step.recipe() for step in steps]
    searches = list(_searches(recipes))
    train, test = train_and_test(sample, rng)
    records = []
    # γ first, as the width that a map needs depends on it.
    for place, holder, key in sorted(searches, key=lambda entry: entry[2] != "gamma"):
        search = holder[key]
        if key == "gamma":
            record = _validate(recipes, holder, search["validate"], train, test, rng, place)
        else:
            record = _reach(recipes, holder, search["target_error"], train, test, rng, place)
        holder[key] = record["chosen"]
        records.append(Search(parameter=place, **record))
    return tuple(build_step(recipe) for recipe in recipes), records


def _searches(node: Any, place: str = "steps") -> Iterator[tuple[str, Recipe, str]]:
    if isinstance(node, list):
        for i, item in enumerate(node):
            yield from _searches(item, f"{place}[{i}]")
    elif isinstance(node, dict):
        for key, value in node.items():
            if key in ("gamma", "n_components") and isinstance(value, dict):
                yield f"{place}.{key}", node, key
            else:
                yield from _searches(value, f"{place}.{key}")


def _chain(recipes: list[Recipe], train: Subset, rng: np.random.Generator) -> Chain:
    """Fit the chain, with working values in the place of searches that are still open."""
    settled = copy.deepcopy(recipes)
    for _, holder, key in list(_searches(settled)):
        holder[key] = "median" if key == "gamma" else min(_WORKING_WIDTH, 2 * (len(train) // 4))
    with train.counted():
        return Chain.fit([build_step(recipe) for recipe in settled], train.sample, copy.deepcopy(rng))


@contextmanager
def _trying(place: str, value: float) -> Iterator[None]:
    """Name the value that is tried in errors about the rows."""
    try:
        yield
    except InvalidValueError as refused:
        if refused.column is not None:  # an input that is wrong with any value
            raise
        raise InvalidValueError(refused.row, None, f"with {place} = {value:g}: {refused.problem}") from None
    except DataError as error:
        raise DataError(f"{place} = {value:g}: {error}") from None


def _validate(
    recipes: list[Recipe],
    holder: Recipe,
    values: Sequence[float],
    train: Subset,
    test: Subset,
    rng: np.random.Generator,
    place: str,
) -> dict[str, Any]:
    of_train, of_test = train.sample.label, test.sample.label
    if of_train is None or of_test is None:
        raise TypeError(f"{place}: a search by score without a label has to be refused before the fit")
    labels = np.concatenate([of_train, of_test])
    scores, search = [], holder["gamma"]
    for value in values:
        holder["gamma"] = value
        with _trying(place, value):
            chain = _chain(recipes, train, rng)
            features = np.concatenate([subset.features(chain) for subset in (train, test)])
            scores.append(features_score(features, labels, len(train)))
    holder["gamma"] = search
    if not np.isfinite(scores).all():
        raise DataError(
            f"{place}: validate: expected a score for every value, got none: labels must differ among the "
            f"{len(test):,} rows held out"
        )
    numbers = [float(value) for value in values]
    return {"values": numbers, "scores": scores, "chosen": numbers[int(np.argmax(scores))]}


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

    def error(width: int) -> float:
        holder["n_components"] = width
        try:
            with _trying(place, width):
                chain = _chain(recipes, train, rng)
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
