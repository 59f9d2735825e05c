"""Score candidates: fit the chain and ridge on a part of the rows, and predict the others."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from kafeat.chain.blas import one_blas_thread
from kafeat.chain.chain import Chain
from kafeat.chain.fit_step import FitCache
from kafeat.errors import DataError
from kafeat.evaluation.learners import held_out_predictions
from kafeat.jobs.fit.subsets import Subset, subset_of
from kafeat.jobs.fit.validation import fit_chain
from kafeat.jobs.tune.space import Candidate, SearchSpace
from kafeat.jobs.tune.table import TunedTable
from kafeat.maths.scoring import ScoringName, score_of
from kafeat.maths.task import PredictionTask

# Test parts of one shuffling, which do not overlap.
_PARTS = 4
_MOST_HELD_OUT = 2000
RESAMPLES = 40
# Numbers that the samples between the steps of chains may hold for one split.
_MOST_KEPT, _MOST_CHAINS = 1 << 23, 16


class Size(NamedTuple):
    """The rows, the width and the number of splits of a trial. A draft is only to find the best candidates."""

    rows: int
    width: int
    splits: int
    draft: bool = False


@dataclass(frozen=True)
class Outcome:
    """The score of a trial, and its values for resampled test rows, which are the same for all trials of a size.

    `columns` is the number of output columns, which may be smaller than that of the size. `failure` says why there is
    no score.
    """

    score: float
    resampled: tuple[float, ...]
    seconds: float
    columns: int = 0
    failure: str | None = None

    @property
    def error(self) -> float:
        """The standard error of the score."""
        return float(np.std(self.resampled))

    def noise(self, other: Outcome) -> float:
        """Return the standard error of the difference to another trial of the same size."""
        return float(np.std(np.subtract(self.resampled, other.resampled)))


class _Split(NamedTuple):
    train: Subset
    test: Subset
    cache: FitCache
    number: int


class Scorer:
    """Scores candidates on splits of the sample. What is learned does not depend on the number of jobs."""

    def __init__(
        self, space: SearchSpace, task: PredictionTask, scoring: ScoringName, seed: int, jobs: int
    ) -> None:
        self._space, self._task, self._scoring, self._seed, self._jobs = space, task, scoring, seed, jobs
        self._splits: dict[tuple[int, int], list[_Split]] = {}

    def score(self, candidate: Candidate, size: Size) -> Outcome:
        """Return the mean score over the splits."""
        splits, started = self._splits_of(size), time.perf_counter()

        def one(split: _Split) -> tuple[list[float], int]:
            chain = self._fitted(candidate, size, split)
            return self._scores(chain, split), chain.n_outputs

        try:
            with one_blas_thread(linalg=True), ThreadPoolExecutor(min(self._jobs, len(splits))) as pool:
                results = list(pool.map(one, splits))
        except DataError as error:
            return Outcome(float("-inf"), (), time.perf_counter() - started, failure=str(error))
        means = np.mean([scores for scores, _ in results], axis=0)
        columns = max(columns for _, columns in results)
        return Outcome(float(means[0]), tuple(means[1:].tolist()), time.perf_counter() - started, columns)

    def _fitted(self, candidate: Candidate, size: Size, split: _Split) -> Chain:
        """Return the chain of a candidate, fitted on the training rows of a split."""
        recipes = self._space.steps(candidate, size.width, len(split.train), size.draft)
        return fit_chain(
            recipes, split.train, np.random.default_rng([self._seed, 6, split.number]), split.cache
        )

    def _scores(self, chain: Chain, split: _Split) -> list[float]:
        """Return the score on the test rows of a split, and on resamples of them."""
        Z = np.concatenate([part.features(chain) for part in (split.train, split.test)])
        of_train, labels = (self._space.table.labels[part.rows] for part in (split.train, split.test))
        predicted = held_out_predictions(Z, np.concatenate([of_train, labels]), len(split.train), self._task)
        score = score_of(self._scoring, self._task, predicted, labels)
        if not np.isfinite(score):
            raise DataError(
                f"label: expected labels that differ among the {len(labels):,} rows held out, got equal ones"
            )
        rng = np.random.default_rng([self._seed, 7, split.number])
        draws = [rng.integers(len(labels), size=len(labels)) for _ in range(RESAMPLES)]
        resampled = [score_of(self._scoring, self._task, predicted[rows], labels[rows]) for rows in draws]
        return [score, *np.where(np.isfinite(resampled), resampled, score).tolist()]

    def _splits_of(self, size: Size) -> list[_Split]:
        key = (size.rows, size.splits)  # sizes that differ in the width alone share rows and fits
        if key not in self._splits:
            self._splits[key] = [
                _split(self._space.table, size.rows, number, self._seed) for number in range(size.splits)
            ]
        return self._splits[key]


def _split(table: TunedTable, most_rows: int, number: int, seed: int) -> _Split:
    """Return a quarter of the rows to test on, after the rest; four splits in a row share no test row."""
    shuffling, part = divmod(number, _PARTS)
    order = np.random.default_rng([seed, 5, shuffling]).permutation(len(table.labels))[:most_rows]
    held = min(len(order) // _PARTS, _MOST_HELD_OUT)
    test = np.zeros(len(order), dtype=bool)
    test[part * held : (part + 1) * held] = True
    most = int(np.clip(_MOST_KEPT // max(1, len(order) * table.width), 2, _MOST_CHAINS))
    return _Split(
        subset_of(table.sample, order[~test]),
        subset_of(table.sample, order[test]),
        FitCache(most),
        number,
    )


def sizes(rows: int, width: int, splits: int) -> Sequence[Size]:
    """Return the sizes of trials: small ones to screen, middle ones, and the wanted one."""
    return [
        Size(min(rows, 1500), max(min(width, 64), width // 4), min(2, splits), True),
        Size(min(rows, 3000), max(min(width, 64), width // 2), min(2, splits), True),
        Size(min(rows, _MOST_ROWS), width, splits),
    ]


_MOST_ROWS = 6000
