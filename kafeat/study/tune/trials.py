"""Score candidates on rows that their maps were not fitted on, and weigh columns."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from math import ceil
from typing import Annotated, Any, NamedTuple

import numpy as np
from pydantic import Field, FiniteFloat

from kafeat.chain.blas import one_blas_thread
from kafeat.chain.chain import Chain, FitCache
from kafeat.contract.folds import cuts_by, turns
from kafeat.contract.threads import share_work
from kafeat.errors import DataError
from kafeat.jobs.fit.looks import Recipe
from kafeat.jobs.fit.map_on_data import timed
from kafeat.jobs.fit.search import SampleSplit, learn_ridge
from kafeat.maths.calibration import fit_calibration, held_out_probabilities, of_all_classes
from kafeat.maths.scoring import PROPER, SCORES, Score, constant_predictions
from kafeat.maths.task import PredictionTask
from kafeat.study.importance import HeldOut, Losses, rows_to_shuffle, score_losses
from kafeat.study.learners import Tested
from kafeat.study.scores import resampled_scores
from kafeat.study.tune.boosted import boosted
from kafeat.study.tune.input import TunedTable
from kafeat.study.tune.space import RAW, Candidate, SearchSpace
from kafeat.types import Array, Floats

RESAMPLES = 40
MOST_MAP_ROWS = 40_000
"""Rows that a map is fitted on, so that memory stays below a bound that the rows of the sample do not set."""
# Numbers that the samples between the steps of chains may hold for one split, and sizes whose splits are held.
_MOST_KEPT, _MOST_CHAINS, _MOST_SIZES = 1 << 23, 16, 3


class Size(NamedTuple):
    """The rows, the width and the number of splits of a trial, and the share of the rows that a split holds out.

    `share` is that of the training rows to learn from. In `one_pass` all rows of the data are read.
    """

    rows: int
    width: int
    splits: int
    held: float = 0.25
    share: float = 1.0
    one_pass: bool = False

    @property
    def parts(self) -> int:
        """The number of splits that hold out every row once."""
        return round(1.0 / self.held)

    @property
    def learned(self) -> int:
        """The number of rows that a split does not hold out."""
        return self.rows - int(self.held * self.rows)

    @property
    def scored(self) -> float:
        """The number of rows that all splits hold out."""
        return self.splits * self.held * self.rows

    @property
    def work(self) -> float:
        """The number of rows that all splits learn from, which the time of a trial grows with."""
        return self.splits * self.share * self.learned

    def smaller(self) -> Size:
        """Return the size with fewer splits, or with one split of fewer rows."""
        if self.splits > 1:
            return self._replace(splits=self.splits - 1)
        return self._replace(rows=self.rows * 3 // 4)

    def error(self, resampled: Sequence[float]) -> float:
        """Return the standard error of a score from its values for resampled rows.

        Splits share training rows, so that their scores vary less than those of new data (Nadeau & Bengio 2003).
        """
        n = min(self.splits, self.parts)
        overlap = self.held / (self.share * (1.0 - self.held)) if n > 1 else 0.0
        return float(np.std(resampled) * np.sqrt(1.0 + n * overlap))


# The last trials hold out a tenth, so that a model that is scored has seen nearly as many rows as that of the last fit:
# of rows in memory as often as it takes to score this many rows, or every row once. Of more rows there is one split, in
# which a tenth may be few.
_SCORED, _SCORED_ONCE = 3_000, 2_000


def in_parts(size: Size) -> Size:
    """Return the size with as many splits as it takes to score enough rows, or every row once."""
    wanted = min(ceil(_SCORED / (size.held * size.rows)), size.parts)
    return size._replace(splits=max(wanted, size.splits))


def in_one_pass(rows: int, width: int, held: float) -> Size:
    """Return the size of trials on all rows, of which at least this share, or enough, are scored."""
    share = min(max(_SCORED_ONCE / rows, held), 0.25)
    return Size(rows, width, 1, share, one_pass=True)


@dataclass(frozen=True)
class Outcome:
    """The score of a trial, and its values for resampled test rows, which are the same for all trials of a size.

    `columns` is the number of output columns, which may be smaller than that of the size. `failure` says why there is
    no score. `figures` holds the other scores of classes by their names, `row_seconds` the seconds that a row took, and
    `model_bytes` what the map has learned.
    """

    score: Annotated[float, Field(lt=float("inf"))]
    resampled: tuple[FiniteFloat, ...]
    seconds: Annotated[FiniteFloat, Field(ge=0.0)] = 0.0
    columns: Annotated[int, Field(ge=0, lt=1 << 31)] = 0
    failure: str | None = None
    figures: dict[str, FiniteFloat] = field(default_factory=dict)
    row_seconds: Annotated[FiniteFloat, Field(ge=0.0)] = 0.0
    model_bytes: Annotated[int, Field(ge=0)] = 0

    def noise(self, other: Outcome) -> float:
        """Return the standard error of the difference to another trial of the same size."""
        return float(np.std(np.subtract(self.resampled, other.resampled)))


@dataclass(frozen=True)
class Trial:
    """A candidate that was scored at a size; numbers count from 1. A `later` one tries the chosen map once more."""

    number: int
    candidate: Candidate
    size: Size
    outcome: Outcome
    later: bool = False
    rung: str = ""

    @property
    def error(self) -> float:
        """The standard error of the score."""
        return self.size.error(self.outcome.resampled)

    @property
    def columns(self) -> int:
        """The number of columns that it has, or that it was made for if it failed."""
        return self.outcome.columns or self.size.width


# Scores of classes that stand beside the one that decides.
_BESIDE = (SCORES["accuracy"], SCORES["balanced_accuracy"], SCORES["auc"], PROPER["classification"])


class Scorer:
    """Scores candidates on splits of the sample. What is learned does not depend on the number of jobs.

    With `balanced` every class counts the same. Trials of more rows than fit a split of the sample are left to
    `on_all_rows`, with the steps and the size.
    """

    def __init__(
        self,
        space: SearchSpace,
        task: PredictionTask,
        scoring: Score,
        *,
        seed: int,
        jobs: int,
        on_all_rows: Callable[[list[Recipe], Size], Outcome],
        boosted_on_all_rows: Callable[[list[Recipe], Size], Tested],
        balanced: bool = False,
    ) -> None:
        self._space, self._task, self._scoring, self._seed, self._jobs = space, task, scoring, seed, jobs
        self._balanced, self._on_all_rows = balanced, on_all_rows
        self._boosted_on_all_rows = boosted_on_all_rows
        # Each has copies of its rows and fits of chains on them.
        self._cached = lru_cache(_MOST_SIZES)(self._split_rows)

    def forget(self) -> None:
        """Drop the splits, and the fits on them."""
        self._cached.cache_clear()

    def score(self, candidate: Candidate, size: Size) -> Outcome:
        """Return the score of the predictions of all splits."""
        started = time.perf_counter()
        try:
            if size.one_pass:
                self.forget()  # their memory is needed for other things now
                rows = int(size.share * len(self._space.table.labels))
                return self._on_all_rows(self._space.steps(candidate, size.width, rows), size)
            splits = self._splits(size)
            with one_blas_thread(linalg=True):
                made = share_work(
                    lambda: lambda k: self._on(splits[k], k, candidate, size),
                    range(len(splits)),
                    min(self._jobs, len(splits)),
                )
            outcome = self._outcome(
                [one.tested for one in made],
                size,
                columns=max(one.columns for one in made),
                row_seconds=min(one.row_seconds for one in made),
                model_bytes=max(one.model_bytes for one in made),
            )
            return replace(outcome, seconds=time.perf_counter() - started)
        except DataError as error:
            return Outcome(float("-inf"), (), time.perf_counter() - started, failure=str(error))

    def _on(self, split: SampleSplit, number: int, candidate: Candidate, size: Size) -> _OnSplit:
        """Return what is predicted on one split."""
        chain = self._fitted(split, number, candidate, size)
        model = self._model(split, split.train.features(chain))
        Z, seconds = timed(partial(split.test.features, chain))
        row_seconds, tested = seconds / len(split.test), self._tested(split, model(Z), size)
        return _OnSplit(tested, chain.n_components, row_seconds, chain.n_bytes)

    def _fitted(self, split: SampleSplit, number: int, candidate: Candidate, size: Size) -> Chain:
        recipes = self._space.steps(candidate, size.width, len(split.train))
        return split.fit(recipes, np.random.default_rng([self._seed, 6, number]))

    def _model(self, split: SampleSplit, Z: Floats) -> Callable[[Floats], Floats]:
        """Return ridge on features (n, D) of the rows to learn from."""
        weights = self._weights(split.labels)
        learn = partial(learn_ridge, weights=None if weights is None else weights[: len(Z)])
        return split.model(Z, learn, self._task)

    def _tested(self, split: SampleSplit, predicted: Floats, size: Size) -> Tested:
        """Return what is predicted of the rows that a split holds out, with their labels."""
        keys = split.test.sample.keys
        groups = None if keys is None or keys.ordered else keys.values
        if groups is None and size.splits > size.parts:
            groups = split.test.rows  # resampled together, as some rows are held out more than once
        return Tested(predicted, split.test.labels, groups)

    def _weights(self, labels: Array) -> Floats | None:
        return self._task.class_weights(labels) if self._balanced else None

    def _outcome(self, tested: Sequence[Tested], size: Size, **costs: Any) -> Outcome:
        """Return the outcome of the predictions of all splits, whose probabilities are calibrated together."""
        every = Tested.joined(tested)
        predicted, labels, *_ = every
        probabilities, task = None, self._task
        if task.classes is not None and np.isfinite(predicted).all():
            weights = self._weights(labels)
            probabilities = held_out_probabilities(predicted, task.numbers(labels), weights)
        rng = np.random.default_rng([self._seed, 7])
        return outcome_of(task, self._scoring, every, probabilities, rng, **costs)

    def boosted(self, size: Size) -> Outcome:
        """Return the score of gradient boosting on the raw columns, on the same rows."""
        steps = self._space.steps(RAW, self._space.width, size.learned)
        if size.one_pass:
            tested, stream = self._boosted_on_all_rows(steps, size), 10
        else:
            chains = [self._fitted(one, number, RAW, size) for number, one in enumerate(self._splits(size))]
            tested, stream = Tested.joined([
                self._tested(one, boosted(self._task, one.train.features(chain), one.train.labels,
                             one.test.features(chain)), size)
                for one, chain in zip(self._splits(size), chains, strict=True)
            ]), 7  # fmt: skip
        likely = None if self._task.classes is None else tested.predicted
        rng = np.random.default_rng([self._seed, stream])
        return outcome_of(self._task, self._scoring, tested, likely, rng)

    def parts(self, candidate: Candidate, size: Size) -> list[dict[str, Any]]:
        """Return the parts of a union with the score without each, after the score with all; none without a union."""
        tested: dict[tuple[int, str, int], list[Tested]] = {}
        for number, split in enumerate(self._splits(size)):
            with one_blas_thread(linalg=True):
                chain = self._fitted(split, number, candidate, size)
                Z, Z_test = split.train.features(chain), split.test.features(chain)
                left_out = [("", np.empty(0, np.intp)), *chain.parts] if len(chain.parts) > 1 else []
                for place, (name, columns) in enumerate(left_out):
                    predicted = self._model(split, np.delete(Z, columns, axis=1))(
                        np.delete(Z_test, columns, axis=1)
                    )
                    without = self._tested(split, predicted, size)
                    tested.setdefault((place, name, len(columns)), []).append(without)
        return [
            {"part": name, "columns": n, "score_without": self._outcome(found, size).score}
            for (_, name, n), found in tested.items()
        ]

    def importance(self, candidate: Candidate, size: Size) -> Losses | None:
        """Return what the score of rows held out loses without each column of the table."""
        places = self._space.table.sampled.columns.named_places
        most, rng = rows_to_shuffle(len(places), size.width), np.random.default_rng([self._seed, 8])
        held_out, known = list[HeldOut](), list[Array]()
        with one_blas_thread(linalg=True):
            for number, split in enumerate(self._splits(size) if most else ()):
                rows = np.sort(rng.permutation(len(split.test))[: most - sum(map(len, known))])
                if len(rows):
                    chain = self._fitted(split, number, candidate, size)
                    model = self._model(split, split.train.features(chain))
                    held_out.append((split.test.sample.X[rows], partial(_predictions, chain, model)))
                    known.append(split.test.labels[rows])
            return self._losses(places, held_out, np.concatenate(known)) if known else None

    def _losses(self, places: dict[str, slice], held_out: list[HeldOut], labels: Array) -> Losses | None:
        """Return the losses of the score that decides; probabilities are calibrated before anything is shuffled."""
        calibration = None
        if self._scoring.needs_probabilities:
            scores = of_all_classes(np.concatenate([predict(X) for X, predict in held_out]))
            calibration = fit_calibration(scores, self._task.numbers(labels), self._weights(labels))

        def score(predicted: Floats) -> float:
            likely = predicted if calibration is None else calibration(of_all_classes(predicted))
            return self._scoring.of(self._task, likely, labels)

        return score_losses(places, held_out, score, self._seed)

    def _splits(self, size: Size) -> list[SampleSplit]:
        """Return the splits; sizes that differ in the width alone share rows and fits."""
        return self._cached(size._replace(width=0))

    def _split_rows(self, size: Size) -> list[SampleSplit]:
        table = self._space.table
        table = replace(table, sample=replace(table.sample, jobs=max(1, self._jobs // size.splits)))
        return [_split(table, size, number, self._seed) for number in range(size.splits)]


def _predictions(chain: Chain, model: Callable[[Floats], Floats], X: Floats) -> Floats:
    """Return what a model predicts from the features of rows X (n, d)."""
    return model(chain.transform(X).astype(np.float64))


class _OnSplit(NamedTuple):
    """Predictions of the rows that a split holds out, and the width, the seconds a row and the bytes of the map."""

    tested: Tested
    columns: int
    row_seconds: float
    model_bytes: int


def outcome_of(
    task: PredictionTask,
    scoring: Score,
    tested: Tested,
    probabilities: Floats | None,
    rng: np.random.Generator,
    **costs: Any,
) -> Outcome:
    """Return the outcome of predictions, with the other scores of classes if there are probabilities of them."""
    predicted, labels, groups, _ = tested
    first = probabilities if scoring.needs_probabilities and probabilities is not None else predicted
    score = scoring.of(task, first, labels)
    if not np.isfinite(score):
        raise DataError(
            f"label: expected labels that differ among the {len(labels):,} rows held out, got equal ones"
        )
    resampled = resampled_scores(scoring, task, first, labels, RESAMPLES, rng, groups)
    return Outcome(
        score=score,
        resampled=tuple(np.where(np.isfinite(resampled), resampled, score).tolist()),
        figures={} if probabilities is None else _figures_beside(task, predicted, probabilities, labels),
        **costs,
    )


def _figures_beside(
    task: PredictionTask, predicted: Floats, probabilities: Floats, labels: Array
) -> dict[str, float]:
    """Return the scores of classes by their names, as far as they are defined."""
    figures = {
        score.name: score.figure(task, probabilities if score.needs_probabilities else predicted, labels)
        for score in _BESIDE
    }
    return {name: value for name, value in figures.items() if np.isfinite(value)}


def _split(table: TunedTable, size: Size, number: int, seed: int) -> SampleSplit:
    """Return the rows to test on, after a share of the rest."""
    train, tested = _rows_of_split(table, size, number, seed)
    most = int(np.clip(_MOST_KEPT // max(1, (len(train) + len(tested)) * table.width), 2, _MOST_CHAINS))
    return SampleSplit.of(table.sample, train[: int(size.share * len(train))], tested, FitCache(most))


def _rows_of_split(table: TunedTable, size: Size, number: int, seed: int) -> tuple[Array, Array]:
    """Return the rows to learn from and those to test on; splits of one shuffling share no test row."""
    shuffling, part = divmod(number, size.parts)
    rng = np.random.default_rng([seed, 5, shuffling])
    order, sample = rng.permutation(len(table.labels))[: size.rows], table.sample
    if sample.keys is None:
        cuts = turns(len(order), [k * (len(order) // size.parts) for k in (part, part + 1)])
    else:
        cuts = cuts_by(sample.keys.select(order).shuffled(rng), size.parts)
    train, tested = (order[mask] for mask in cuts[-1 - part % len(cuts)])
    return train, tested


def constant_score(scoring: Score, task: PredictionTask, table: TunedTable, size: Size, seed: int) -> float:
    """Return the score of a constant prediction; of groups or times held out, it is that of the other rows."""
    labels = table.labels
    if table.sample.keys is None:
        return scoring.of_constant(task, labels, labels)
    rows = [_rows_of_split(table, size, number, seed) for number in range(size.splits)]
    predicted = [constant_predictions(task, labels[train], len(tested)) for train, tested in rows]
    held_out = np.concatenate([tested for _, tested in rows])
    return scoring.of(task, np.concatenate(predicted), labels[held_out])


class TestScore(NamedTuple):
    """A score and its standard error, from resampled rows; None where the labels of the rows define none."""

    value: float | None
    error: float | None
    rows: int
