"""Choose parameters from the data: values by their validation score, the width by a target error.

`{validate: [...]}` may stand in the place of any parameter of any step. Its values are scored by a learner on the
features, on rows that the chain was not fitted on. With few combinations every one is tried. Otherwise one parameter
after the other is set to its best value while the others stay, until nothing changes.

`n_components: {target_error: 0.02}` doubles the width until the relative Frobenius error against the exact kernel, on
rows held out of the sample, is at or below the target, and then interpolates between the last two widths. A Nyström map
gets no more landmarks than there are rows. Every search is recorded, with its curve.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import product
from math import prod
from typing import Any

import numpy as np

from kafeat.chain.chain import Chain, FitCache
from kafeat.config.model import SearchOptions
from kafeat.contract.describe import spell
from kafeat.contract.step import DOUBLE, Sample, Step
from kafeat.errors import DataError, InvalidValueError, UsageError
from kafeat.evaluation.learners import FeaturesScorer, features_score
from kafeat.maths.kernel_error import relative_frobenius
from kafeat.model.provenance import Search
from kafeat.registry import build_step
from kafeat.types import Array, Floats

Recipe = dict[str, Any]


def limit_landmarks(recipes: list[Recipe], n_rows: int) -> int | None:
    """Let Nyström maps in `recipes` have at most `n_rows` landmarks and outputs. Return the most that were asked for.

    Returns
    -------
    int or None
        The largest number that was lowered, or None if the rows are enough.
    """
    lowered: list[int] = []
    for recipe in _landmark_maps(recipes):
        for key in ("n_components", "n_landmarks"):
            if isinstance(recipe.get(key), int) and recipe[key] > n_rows:
                lowered.append(recipe[key])
                recipe[key] = n_rows
    return max(lowered, default=None)


def _landmark_maps(node: Any) -> Iterator[Recipe]:
    """Yield the recipes of the Nyström maps whose landmarks are drawn from the rows."""
    mapping = isinstance(node, dict)
    if mapping and node.get("kind") == "nystroem" and isinstance(node.get("landmarks", "auto"), str):
        yield node
    for item in node.values() if mapping else node if isinstance(node, list | tuple) else ():
        yield from _landmark_maps(item)


# Rows that are used in all, and those held out of them.
_MOST_ROWS = 6000
_MOST_HELD_OUT = 1500
_LEAST_ROWS = 20


@dataclass(frozen=True)
class Subset:
    """Rows of a sample, and their numbers in it."""

    sample: Sample
    rows: Array

    def __len__(self) -> int:
        return len(self.rows)

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Change the row number of errors to that in the whole sample."""
        try:
            yield
        except InvalidValueError as refused:
            raise InvalidValueError(int(self.rows[refused.row]), refused.column, refused.problem) from None

    def features(self, chain: Chain) -> Floats:
        """Return the features of the rows in float64."""
        with self.counted():
            return chain.transform(self.sample.X).astype(np.float64)


def train_and_test(
    sample: Sample, rng: np.random.Generator, most_rows: int = _MOST_ROWS
) -> tuple[Subset, Subset]:
    """Return three quarters of the rows, and the rest."""
    order = _shuffled(sample, rng, most_rows)
    held = min(len(order) // 4, _MOST_HELD_OUT)
    return subset_of(sample, order[held:]), subset_of(sample, order[:held])


def folds_of(
    sample: Sample, rng: np.random.Generator, n_folds: int, most_rows: int
) -> list[tuple[Subset, Subset]]:
    """Return the rows of each fold after the rows of the others: to fit on, and to test on."""
    parts = np.array_split(_shuffled(sample, rng, most_rows), n_folds)
    return [
        (subset_of(sample, np.concatenate(parts[:i] + parts[i + 1 :])), subset_of(sample, parts[i]))
        for i in range(n_folds)
    ]


def _shuffled(sample: Sample, rng: np.random.Generator, most_rows: int) -> Array:
    order = rng.permutation(len(sample.X))[:most_rows]
    if len(order) < _LEAST_ROWS:
        raise DataError(f"expected at least {_LEAST_ROWS} rows to choose parameters on, got {len(order)}")
    return order


def subset_of(sample: Sample, rows: Array) -> Subset:
    """Return these rows, in ascending order."""
    rows = np.sort(rows)
    label = None if sample.label is None else sample.label[rows]
    # In float64 for every map, so that the choice does not depend on rounding.
    X = np.ascontiguousarray(sample.X[rows])
    numbers = rows if sample.rows is None else sample.rows[rows]
    return Subset(replace(sample, X=X, label=label, dtype=DOUBLE, rows=numbers), rows)


# Combinations up to which every one is tried, if the config says nothing.
_FEW = 36
_MOST_COMBINATIONS = 10_000
_MOST_ROUNDS = 5
# The width of a map while its values are chosen, if the width is to be found afterwards.
_WORKING_WIDTH = 256


def open_searches(node: Any, way: str, place: str = "steps") -> Iterator[tuple[str, Recipe, str]]:
    """Yield the place, the recipe and the key of every parameter that is to be chosen in this way."""
    if isinstance(node, list):
        for i, item in enumerate(node):
            yield from open_searches(item, way, f"{place}[{i}]")
    elif isinstance(node, dict):
        for key, value in node.items():
            if isinstance(value, dict) and list(value) == [way]:
                yield f"{place}.{key}", node, key
            else:
                yield from open_searches(value, way, f"{place}.{key}")


def fit_chain(
    recipes: list[Recipe], train: Subset, rng: np.random.Generator, cache: FitCache | None = None
) -> Chain:
    """Fit the chain on these rows, with a working width in the place of one that is still open."""
    settled = copy.deepcopy(recipes)
    for _, holder, key in list(open_searches(settled, "target_error")):
        holder[key] = min(_WORKING_WIDTH, 2 * (len(train) // 4))
    # All rows are enough for a width that these are not enough for.
    limit_landmarks(settled, len(train))
    steps = [build_step(recipe) for recipe in settled]
    with train.counted():
        return Chain.fit(steps, train.sample, copy.deepcopy(rng), cache=cache)


@contextmanager
def trying(values: Mapping[str, Any]) -> Iterator[None]:
    """Name the values that are tried in errors about the rows."""
    said = ", ".join(f"{place} = {_said(value)}" for place, value in values.items())
    try:
        yield
    except InvalidValueError as refused:
        if refused.column is not None:  # an input that is wrong with any value
            raise
        raise InvalidValueError(refused.row, None, f"with {said}: {refused.problem}") from None
    except DataError as error:
        raise DataError(f"{said}: {error}") from None


def _said(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else value if isinstance(value, str) else spell(value)


def choose_values(
    recipes: list[Recipe],
    folds: list[tuple[Subset, Subset]],
    rng: np.random.Generator,
    options: SearchOptions,
    scorer: FeaturesScorer = features_score,
) -> list[Search]:
    """Put the best values in the place of every `validate`, and return the record of each choice.

    A fold is the rows to fit on, and those to score on. `scorer` scores the features, by default with ridge.
    """
    searches = list(open_searches(recipes, "validate"))
    if not searches:
        return []
    values = {place: list(holder[key]["validate"]) for place, holder, key in searches}
    trials = _Trials(recipes, searches, folds, rng, options, scorer)
    count = prod(map(len, values.values()))
    if options.method == "full" or (options.method == "auto" and count <= _FEW):
        if count > _MOST_COMBINATIONS:
            raise DataError(
                f"validate: expected at most {_MOST_COMBINATIONS:,} combinations of values, got {count:,}: give fewer "
                "values, or search by coordinate"
            )
        for combination in product(*values.values()):
            trials.score(dict(zip(values, combination, strict=True)))
    else:
        _by_coordinate(trials, values)
    chosen = trials.best()
    for place, holder, key in searches:
        holder[key] = chosen[place]
    return [
        Search(parameter=place, chosen=chosen[place], values=own, scores=trials.curve(place, own, chosen))
        for place, own in values.items()
    ]


def _by_coordinate(trials: _Trials, values: Mapping[str, Sequence[Any]]) -> None:
    """Start from the middle of every list, and set one parameter after the other to its best value."""
    current = {place: own[len(own) // 2] for place, own in values.items()}
    for _ in range(_MOST_ROUNDS):
        before = dict(current)
        for place, own in values.items():
            scores = [trials.score({**current, place: value}) for value in own]
            current[place] = own[int(np.argmax(scores))]
        if current == before:
            return


@dataclass
class _Trials:
    """The scores of the combinations that were tried, means over the folds."""

    recipes: list[Recipe]
    searches: list[tuple[str, Recipe, str]]
    folds: list[tuple[Subset, Subset]]
    rng: np.random.Generator
    options: SearchOptions
    scorer: FeaturesScorer
    scores: dict[str, tuple[dict[str, Any], float]] = field(default_factory=dict)
    caches: list[FitCache] = field(init=False)

    def __post_init__(self) -> None:
        self.caches = [FitCache() for _ in self.folds]

    def score(self, values: dict[str, Any]) -> float:
        """Return the mean score over the folds with these values, by their places."""
        name = json.dumps(values)
        if name not in self.scores:
            with trying(values):
                each = [
                    self._score_of(values, train, test, cache)
                    for (train, test), cache in zip(self.folds, self.caches, strict=True)
                ]
            self.scores[name] = values, float(np.mean(each))
        return self.scores[name][1]

    def _score_of(self, values: dict[str, Any], train: Subset, test: Subset, cache: FitCache) -> float:
        of_train, of_test = train.sample.label, test.sample.label
        if of_train is None or of_test is None:
            raise TypeError("a search by score without a label has to be refused before the fit")
        before = {place: holder[key] for place, holder, key in self.searches}
        try:
            for place, holder, key in self.searches:
                holder[key] = values[place]
            chain = fit_chain(self.recipes, train, self.rng, cache)
        finally:
            for place, holder, key in self.searches:
                holder[key] = before[place]
        features = np.concatenate([subset.features(chain) for subset in (train, test)])
        labels = np.concatenate([of_train, of_test])
        found = self.scorer(features, labels, len(train), self.options.scoring)
        if not np.isfinite(found):
            raise DataError(
                f"validate: expected a score for every value, got none: labels must differ among the {len(test):,} rows"
                " held out"
            )
        return found

    def best(self) -> dict[str, Any]:
        """Return the values with the best score, the first of equal ones."""
        return max(self.scores.values(), key=lambda tried: tried[1])[0]

    def curve(self, place: str, own: Sequence[Any], chosen: Mapping[str, Any]) -> list[float]:
        """Return the score of every value of one parameter, with the chosen values of the others."""
        return [self.score({**chosen, place: value}) for value in own]


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
        if step.traits.unsaved is not None:
            raise UsageError(
                f"steps[{i}].{step.traits.unsaved}: parameters cannot be chosen from the data for it: give values"
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
    own = build_step({**holder, "n_components": _FIRST_WIDTH}).traits.own_kernel
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
