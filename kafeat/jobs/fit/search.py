"""Choose parameters from the data: values by their validation score, the width by a target error.

`{validate: [...]}` may replace any parameter of any step. A learner scores each value on features of rows that the
chain was not fitted on. If there are few combinations, all are tried. Otherwise one parameter after the other is set to
its best value while the others stay, until nothing changes.

`n_components: {target_error: 0.02}` doubles the width until the relative Frobenius error against the exact kernel, on
held-out rows of the sample, is at or below the target, and then interpolates between the last two widths. A Nyström map
gets at most as many landmarks as there are rows. Every search is recorded, with its curve.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from math import prod
from typing import Any, Self

import numpy as np

from kafeat.chain.chain import Chain, FitCache
from kafeat.config.model import SearchOptions
from kafeat.contract.describe import spell
from kafeat.contract.folds import Folded, cuts_by, turns
from kafeat.contract.step import DOUBLE, Sample, Step
from kafeat.contract.tile import contiguous
from kafeat.errors import DataError, InvalidValueError, UsageError
from kafeat.maths.calibration import held_out_probabilities
from kafeat.maths.kernel_error import relative_frobenius
from kafeat.maths.ridge import NormalEquations
from kafeat.maths.scoring import score_for
from kafeat.maths.task import PredictionTask, TaskKind, task_of
from kafeat.model.provenance import ChosenParameter
from kafeat.registry import build_step
from kafeat.types import Array, Floats

Recipe = dict[str, Any]


def limit_landmarks(recipes: list[Recipe], n_rows: int) -> int | None:
    """Limit Nyström maps in `recipes` to `n_rows` landmarks and outputs.

    Return the largest number before it was lowered, or None if there are enough rows.
    """
    lowered: list[int] = []
    for recipe in nested(recipes):
        # Landmarks that the user gives are not drawn from the rows.
        if recipe["kind"] != "nystroem" or not isinstance(recipe.get("landmarks", "auto"), str):
            continue
        for key in ("n_components", "n_landmarks"):
            if isinstance(recipe.get(key), int) and recipe[key] > n_rows:
                lowered.append(recipe[key])
                recipe[key] = n_rows
    return max(lowered, default=None)


def nested(node: Any) -> Iterator[Recipe]:
    """Yield the recipes of all steps, including those inside unions."""
    mapping = isinstance(node, dict)
    if mapping and "kind" in node:
        yield node
    for item in node.values() if mapping else node if isinstance(node, list | tuple) else ():
        yield from nested(item)


_MOST_HELD_OUT = 1500
_LEAST_ROWS = 20


@dataclass(frozen=True)
class Subset:
    """Rows of a sample, and their row numbers in the sample."""

    sample: Sample
    rows: Array

    def __len__(self) -> int:
        return len(self.rows)

    @contextmanager
    def counted(self) -> Iterator[None]:
        """In the block, let errors name a row by its number in the whole sample."""
        try:
            yield
        except InvalidValueError as refused:
            raise refused.at(int(self.rows[refused.row])) from None

    @property
    def labels(self) -> Array:
        """The labels of the rows."""
        return self.sample.needed_label

    def features(self, chain: Chain) -> Floats:
        """Return the features of the rows in float64."""
        with self.counted():
            return chain.transform(self.sample.X).astype(np.float64)


def subset_of(sample: Sample, rows: Array) -> Subset:
    """Return the rows of a sample with these numbers, in ascending order."""
    rows = np.sort(rows)
    label = None if sample.label is None else sample.label[rows]
    keys = None if sample.keys is None else sample.keys.select(rows)
    # In float64 for every map, so that the choice does not depend on rounding.
    X = contiguous(sample.X[rows])
    numbers = rows if sample.rows is None else sample.rows[rows]
    chosen = replace(sample, X=X, label=label, dtype=DOUBLE, rows=numbers, keys=keys, stream=None)
    return Subset(chosen, rows)


# If the config names no method, and there are at most this many combinations, all of them are tried.
_FEW = 36
_MOST_COMBINATIONS = 10_000
_MOST_ROUNDS = 5
# If the width of a map is searched, the map has at most this width while values of other parameters are chosen.
_WORKING_WIDTH = 256


def open_searches(node: Any, way: str, place: str = "steps") -> Iterator[tuple[str, Recipe, str]]:
    """Yield each parameter that is to be chosen by `way`, such as "validate": its place, its recipe and its key."""
    if isinstance(node, list):
        for i, item in enumerate(node):
            yield from open_searches(item, way, f"{place}[{i}]")
    elif isinstance(node, dict):
        for key, value in node.items():
            if isinstance(value, dict) and list(value) == [way]:
                yield f"{place}.{key}", node, key
            else:
                yield from open_searches(value, way, f"{place}.{key}")


def _settled(recipes: list[Recipe], way: str, values: Mapping[str, Any]) -> list[Recipe]:
    """Return recipes in which `values`, by place, replace searches of this `way`. Searches without a value stay."""
    settled = copy.deepcopy(recipes)
    for place, holder, key in list(open_searches(settled, way)):
        holder[key] = values.get(place, holder[key])
    return settled


def fit_chain(
    recipes: list[Recipe], train: Subset, rng: np.random.Generator, cache: FitCache | None = None
) -> Chain:
    """Fit the chain on these rows, with a provisional width if the width is still to be searched."""
    settled = copy.deepcopy(recipes)
    for _, holder, key in list(open_searches(settled, "target_error")):
        holder[key] = min(_WORKING_WIDTH, 2 * (len(train) // 4))
    # With fewer rows than landmarks, all rows are landmarks.
    limit_landmarks(settled, len(train))
    steps = [build_step(recipe) for recipe in settled]
    with train.counted():
        return Chain.fit(steps, train.sample, copy.deepcopy(rng), cache=cache)


Learn = Callable[[Floats, Array, Folded, PredictionTask], Callable[[Floats], Floats]]
"""Learns from features (n, D) and labels (n,) in folds. Returns a function that predicts (m, k) from features."""


def learn_ridge(
    Z: Floats, labels: Array, folded: Folded, task: PredictionTask, weights: Floats | None = None
) -> Callable[[Floats], Floats]:
    """Learn ridge regression, with the penalty that is best over the folds."""
    Y = task.targets(labels)
    ridge = NormalEquations(Z.shape[1], Y.shape[1], folds=folded.folds)
    ridge.add(Z, Y, folded.parts, weights)
    return ridge.model(ridge.search())


@dataclass(frozen=True)
class SampleSplit:
    """Rows of a sample to fit on, rows to score on, and a cache of steps that are fitted on the training rows."""

    train: Subset
    test: Subset
    cache: FitCache

    @classmethod
    def of(cls, sample: Sample, train: Array, test: Array, cache: FitCache | None = None) -> Self:
        """Return the split of a sample into rows with the numbers `train` (n,) and `test` (m,)."""
        return cls(subset_of(sample, train), subset_of(sample, test), cache or FitCache())

    def fit(self, recipes: list[Recipe], rng: np.random.Generator) -> Chain:
        """Fit the chain on the rows to fit on."""
        return fit_chain(recipes, self.train, rng, self.cache)

    @property
    def labels(self) -> Array:
        """The labels of the rows to fit on, followed by those of the rows to score on."""
        return np.concatenate([self.train.labels, self.test.labels])

    def model(self, Z: Floats, learn: Learn, task: PredictionTask) -> Callable[[Floats], Floats]:
        """Learn from features (n, D) of the rows to fit on. Return a function that predicts from float64 features."""
        return learn(Z, self.train.labels, Folded.of(self.train.sample.keys, len(self.train)), task)


def splits_of(
    sample: Sample, rng: np.random.Generator, most_rows: int, n_folds: int | None = None
) -> list[SampleSplit]:
    """Draw `most_rows` rows or fewer. Hold out each of `n_folds` folds in turn, or only a quarter if it is None."""
    order = rng.permutation(len(sample.X))[:most_rows]
    n, keys = len(order), None if sample.keys is None else sample.keys.select(order)
    if n < _LEAST_ROWS:
        raise DataError(f"expected at least {_LEAST_ROWS} rows to choose parameters on, got {n}")
    if n_folds is None:
        count = min(n // 4, _MOST_HELD_OUT)
        held = None if keys is None else keys.last(count, rng)
        cuts = turns(n, (0, count)) if held is None else [(~held, held)]
    elif keys is None:
        cuts = turns(n, np.cumsum([0, *map(len, np.array_split(order, n_folds))]).tolist())
    else:
        cuts = cuts_by(keys.shuffled(rng), n_folds)
    return [SampleSplit.of(sample, order[train], order[test]) for train, test in cuts]


@contextmanager
def trying(values: Mapping[str, Any]) -> Iterator[None]:
    """In the block, let errors about rows name the values that are being tried."""
    said = ", ".join(f"{place} = {spell_value(value)}" for place, value in values.items())
    try:
        yield
    except InvalidValueError as refused:
        if refused.column is not None:  # the input is wrong, not the values that are tried
            raise
        raise InvalidValueError(refused.row, None, f"with {said}: {refused.problem}") from None
    except DataError as error:
        raise DataError(f"{said}: {error}") from None


def spell_value(value: Any) -> str:
    """Return a value of a parameter as text."""
    return f"{value:g}" if isinstance(value, float) else value if isinstance(value, str) else spell(value)


ScoreOn = Callable[[SampleSplit, list[Recipe]], float]
"""Fits recipes on a split, and returns their score on its held-out rows."""


def _choose_values(
    recipes: list[Recipe], folds: list[SampleSplit], score_on: ScoreOn, options: SearchOptions
) -> list[ChosenParameter]:
    """Choose a value for each `validate` by the mean score over the folds. Return all values with their scores."""
    values = {place: holder[key]["validate"] for place, holder, key in open_searches(recipes, "validate")}
    tried: dict[str, tuple[dict[str, Any], float]] = {}

    def score(chosen: dict[str, Any]) -> float:
        name = json.dumps(chosen)
        if name not in tried:
            settled = _settled(recipes, "validate", chosen)
            with trying(chosen):
                each = [score_on(fold, settled) for fold in folds]
            tried[name] = chosen, float(np.mean(each))
        return tried[name][1]

    _try_values(score, values, options)
    best = max(tried.values(), key=lambda one: one[1])[0]
    return [
        ChosenParameter(
            parameter=place,
            chosen=best[place],
            values=own,
            scores=[score({**best, place: value}) for value in own],
        )
        for place, own in values.items()
    ]


def _try_values(
    score: Callable[[dict[str, Any]], float], values: Mapping[str, Sequence[Any]], options: SearchOptions
) -> None:
    """Score every combination of the values, or only the combinations that `_by_coordinate` reaches."""
    count = prod(map(len, values.values()))
    if options.method == "coordinate" or (options.method == "auto" and count > _FEW):
        _by_coordinate(score, values)
        return
    if count > _MOST_COMBINATIONS:
        raise DataError(
            f"validate: expected at most {_MOST_COMBINATIONS:,} combinations of values, got {count:,}: give fewer "
            "values, or set `search: {method: coordinate}`"
        )
    for combination in product(*values.values()):
        score(dict(zip(values, combination, strict=True)))


def _by_coordinate(score: Callable[[dict[str, Any]], float], values: Mapping[str, Sequence[Any]]) -> None:
    """Start from the middle of every list, and set one parameter after the other to its best value."""
    current = {place: own[len(own) // 2] for place, own in values.items()}
    for _ in range(_MOST_ROUNDS):
        before = dict(current)
        for place, own in values.items():
            scores = [score({**current, place: value}) for value in own]
            current[place] = own[int(np.argmax(scores))]
        if current == before:
            return


# The smallest and the largest width to try.
_FIRST_WIDTH, _LAST_WIDTH = 16, 16_384


def settle(
    steps: Sequence[Step],
    sample: Sample,
    rng: np.random.Generator,
    options: SearchOptions,
    learn: Learn,
    kind: TaskKind,
) -> tuple[tuple[Step, ...], list[ChosenParameter]]:
    """Return the steps with a value in place of every search, and the record of each search.

    `kind` is the task of the labels that score the values.
    """
    if not any(step.searches for step in steps):
        return tuple(steps), []
    for i, step in enumerate(steps):
        if step.traits.unsaved is not None:
            raise UsageError(
                f"steps[{i}].{step.traits.unsaved}: with it, no parameter can be chosen from the data: give values"
            )

    recipes = [step.recipe() for step in steps]
    [split] = splits_of(sample, rng, options.rows)
    folds = [split] if options.folds is None else splits_of(sample, rng, options.rows, options.folds)
    records = []
    # Values first, because the width that a map needs depends on them.
    if any(open_searches(recipes, "validate")):
        score_on = partial(_score, rng=rng, learn=learn, kind=kind, scoring=options.scoring)
        records = _choose_values(recipes, folds, score_on, options)
        recipes = _settled(recipes, "validate", {record.parameter: record.chosen for record in records})
    for place, holder, key in list(open_searches(recipes, "target_error")):
        records.append(_reach(recipes, holder, place, split, rng))
        holder[key] = records[-1].chosen
    return tuple(build_step(recipe) for recipe in recipes), records


def _score(
    split: SampleSplit,
    recipes: list[Recipe],
    rng: np.random.Generator,
    learn: Learn,
    kind: TaskKind,
    scoring: str,
) -> float:
    """Return the score of recipes on the held-out rows of a split."""
    chain, task, labels = split.fit(recipes, rng), task_of(split.labels, kind), split.test.labels
    predicted = split.model(split.train.features(chain), learn, task)(split.test.features(chain))
    score = score_for(scoring, task.kind)
    if score.needs_probabilities:
        predicted = held_out_probabilities(predicted, task.targets(labels))
    found = score.of(task, predicted, labels)
    if not np.isfinite(found):
        raise DataError(
            "validate: expected a score for every value, got none: labels must differ among the "
            f"{len(labels):,} rows held out"
        )
    return found


def _reach(
    recipes: list[Recipe], holder: Recipe, place: str, split: SampleSplit, rng: np.random.Generator
) -> ChosenParameter:
    """Search the smallest width of the step `holder` that reaches its target error. Return the record of the search."""
    target, errors = holder["n_components"]["target_error"], dict[int, float]()
    traits = build_step({**holder, "n_components": _FIRST_WIDTH}).traits
    got = traits.exact.own or (traits.exact.none and f"none ({traits.exact.none})")
    if got is not None:
        raise UsageError(f"{place}: target_error: expected a map of a given kernel, got {got}: give a number")

    def error(width: int) -> float:
        with trying({place: width}):
            chain = fit_chain(_settled(recipes, "target_error", {place: width}), split.train, rng)
            X = split.test.sample.X
            errors[width] = relative_frobenius(chain.exact(X, X), split.test.features(chain))
        if np.isinf(errors[width]):
            raise DataError(f"{place}: target_error: expected a kernel that is not 0 on all rows, got zeros")
        return errors[width]

    # A Nyström map has at most as many outputs as there are rows.
    last = min(_LAST_WIDTH, len(split.train)) if holder["kind"] == "nystroem" else _LAST_WIDTH
    chosen, widths = _smallest(error, target, last, place), sorted(errors)
    return ChosenParameter(
        parameter=place,
        chosen=chosen,
        target_error=target,
        widths=widths,
        errors=[errors[width] for width in widths],
    )


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
    # Round up to an even number, because many maps have pairs of features. 1e-9 allows for rounding errors.
    between = 2 * int(np.ceil(below * (width / below) ** float(np.clip(share, 0.0, 1.0)) / 2.0 - 1e-9))
    return between if below < between < width and error(between) <= target else width
