"""Sizes chosen from the data: γ by validation score, the width by the error that it is to reach.

`gamma: {validate: [0.01, 0.1, 1]}` fits the chain with each value on three quarters of the sample and keeps the one
whose features give a ridge model the best score on the rest. `n_components: {target_error: 0.02}` doubles the width
until the relative Frobenius error against the exact kernel, on rows held out of the sample, is at or below the target,
and then interpolates between the last two widths. Every search is recorded, with its curve.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from kafeat.chain import Chain
from kafeat.config import Config
from kafeat.errors import DataError, UsageError
from kafeat.evaluation.fidelity import relative_frobenius
from kafeat.evaluation.learners import features_score
from kafeat.provenance import Search
from kafeat.registry import build_step
from kafeat.step import DOUBLE, Sample, Step

# Rows that a search looks at, and those held out of them.
_MOST_ROWS = 6000
_MOST_HELD_OUT = 1500
_LEAST_ROWS = 20
# Widths that are tried.
_FIRST_WIDTH, _LAST_WIDTH = 16, 16_384
# While γ is looked for, a width that is yet to be found.
_WORKING_WIDTH = 256

Recipe = dict[str, Any]


def check_label(config: Config, label: object) -> None:
    """Refuse a config that needs a label where there is none, before the data are read."""
    if label is not None:
        return
    if config.prune is not None:
        raise UsageError("prune: expected a label to predict (--label COL), got none")
    for i, step in enumerate(config.steps):
        # what cannot be saved is refused for another reason
        for place, _, key in _searches({} if step.unsaved else step.recipe(), f"steps[{i}]"):
            if key == "gamma":
                raise _without_label(place)


def _without_label(place: str) -> UsageError:
    return UsageError(f"{place}: validate: expected a label to score by (--label COL), got none")


def settle(
    steps: Sequence[Step], sample: Sample, rng: np.random.Generator
) -> tuple[tuple[Step, ...], list[Search]]:
    """The steps with a number in the place of every search, and the record of each."""
    if not any(step.searches for step in steps):
        return tuple(steps), []
    for i, step in enumerate(steps):
        if step.unsaved is not None:
            raise UsageError(
                f"steps[{i}].{step.unsaved}: sizes cannot be chosen from the data for it: give numbers"
            )
    recipes = [step.recipe() for step in steps]
    found = [(place, holder, key) for place, holder, key in _searches(recipes)]
    train, test = _split(sample, rng)
    records = []
    # γ first: how many outputs a map needs depends on it.
    for place, holder, key in sorted(found, key=lambda entry: entry[2] != "gamma"):
        wanted = holder[key]
        if key == "gamma":
            record = _validate(recipes, holder, wanted["validate"], train, test, rng, place)
        else:
            record = _reach(recipes, holder, wanted["target_error"], train, test, rng, place)
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


def _split(sample: Sample, rng: np.random.Generator) -> tuple[Sample, Sample]:
    order = rng.permutation(len(sample.X))[:_MOST_ROWS]
    if len(order) < _LEAST_ROWS:
        raise DataError(f"expected at least {_LEAST_ROWS} rows to choose sizes on, got {len(order)}")
    held = min(len(order) // 4, _MOST_HELD_OUT)

    def rows(chosen: Any) -> Sample:
        label = None if sample.label is None else sample.label[chosen]
        # In float64 whatever the map: what is chosen does not depend on the last digits.
        return replace(sample, X=np.ascontiguousarray(sample.X[chosen]), label=label, dtype=DOUBLE)

    return rows(np.sort(order[held:])), rows(np.sort(order[:held]))


def _chain(recipes: list[Recipe], train: Sample, rng: np.random.Generator) -> Chain:
    """The chain as it would be fitted, searches that are still open at a working width."""
    settled = copy.deepcopy(recipes)
    for _, holder, key in list(_searches(settled)):
        holder[key] = "median" if key == "gamma" else min(_WORKING_WIDTH, 2 * (len(train.X) // 4))
    return Chain.fit([build_step(recipe) for recipe in settled], train, copy.deepcopy(rng))


def _validate(
    recipes: list[Recipe],
    holder: Recipe,
    values: Sequence[float],
    train: Sample,
    test: Sample,
    rng: np.random.Generator,
    place: str,
) -> dict[str, Any]:
    if train.label is None or test.label is None:
        raise _without_label(place)
    scores, wanted = [], holder["gamma"]
    for value in values:
        holder["gamma"] = value
        chain = _chain(recipes, train, rng)
        features = np.concatenate([chain.transform(train.X), chain.transform(test.X)])
        labels = np.concatenate([train.label, test.label])
        scores.append(features_score(features.astype(np.float64), labels, len(train.X)))
    holder["gamma"] = wanted
    numbers = [float(value) for value in values]
    return {"values": numbers, "scores": scores, "chosen": numbers[int(np.argmax(scores))]}


def _reach(
    recipes: list[Recipe],
    holder: Recipe,
    target: float,
    train: Sample,
    test: Sample,
    rng: np.random.Generator,
    place: str,
) -> dict[str, Any]:
    wanted, curve = holder["n_components"], {}

    def error(width: int) -> float:
        holder["n_components"] = width
        try:
            chain = _chain(recipes, train, rng)
            K = chain.exact(test.X, test.X)
            curve[width] = relative_frobenius(K, chain.transform(test.X).astype(np.float64))
        finally:
            holder["n_components"] = wanted
        return curve[width]

    chosen = _smallest(error, target, _last_width(holder, train), place)
    widths = sorted(curve)
    return {"target_error": target, "widths": widths, "errors": [curve[w] for w in widths], "chosen": chosen}


def _last_width(holder: Recipe, train: Sample) -> int:
    """A map of landmarks can have no more outputs than there are rows."""
    return min(_LAST_WIDTH, len(train.X)) if holder["kind"] == "nystroem" else _LAST_WIDTH


def _smallest(error: Callable[[int], float], target: float, last: int, place: str) -> int:
    """The smallest width at or below the target: by doublings, then by interpolation on logarithmic scales."""
    width, before = _FIRST_WIDTH, float("inf")
    while True:
        here = error(min(width, last))
        if here <= target:
            break
        if width >= last:
            raise DataError(
                f"{place}: target_error: expected an error of at most {target:g}, got {here:.3g} at {last:,} outputs: "
                "raise the target, or choose another map"
            )
        width, before = 2 * width, here
    if width == _FIRST_WIDTH:
        return width
    width, below = min(width, last), width // 2
    share = np.log(before / target) / np.log(before / max(here, 1e-12))
    between = round_up_to_even(below * (width / below) ** float(np.clip(share, 0.0, 1.0)))
    return between if below < between < width and error(between) <= target else width


def round_up_to_even(value: float) -> int:
    """Paired features come in twos."""
    return 2 * int(
        np.ceil(value / 2.0 - 1e-9)
    )  # a power that is a whole number may come out a trifle above it
