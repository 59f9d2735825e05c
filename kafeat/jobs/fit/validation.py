"""Choose values of parameters by the score of a learner on the features, on rows that the chain was not fitted on.

`{validate: [...]}` may stand in the place of any parameter of any step. With few combinations every one is tried.
Otherwise one parameter after the other is set to its best value while the others stay, until nothing changes.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import product
from math import prod
from typing import Any

import numpy as np

from kafeat.chain.chain import Chain, FitCache
from kafeat.config.model import SearchOptions
from kafeat.contract.describe import spell
from kafeat.errors import DataError, InvalidValueError
from kafeat.evaluation.learners import FeaturesScorer, features_score
from kafeat.jobs.fit.landmarks import limit_landmarks
from kafeat.jobs.fit.subsets import Subset
from kafeat.model.provenance import Search
from kafeat.registry import build_step

Recipe = dict[str, Any]

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
