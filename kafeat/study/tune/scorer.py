"""Score candidates on held-out rows, and measure the importance of columns and of the parts of a union."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import numpy as np

from kafeat.chain import Chain, FitCache, one_blas_thread
from kafeat.contract import cuts_by, share_work, turns
from kafeat.errors import DataError
from kafeat.jobs.fit import SampleSplit, learn_ridge, timed
from kafeat.maths import (
    PROPER,
    SCORES,
    PredictionTask,
    constant_predictions,
    fit_calibration,
    held_out_probabilities,
    of_all_classes,
)
from kafeat.study.importance import HeldOut, Losses, rows_to_shuffle, score_losses
from kafeat.study.learners import Tested
from kafeat.study.scores import resampled_scores
from kafeat.study.tune.all_rows import AllRows, Predictions, boosted
from kafeat.study.tune.problem import Problem
from kafeat.study.tune.space import BOOSTING, Candidate
from kafeat.study.tune.trials import RESAMPLES, Outcome, Size
from kafeat.types import Array, Floats

# Limits of the cache. A split keeps at most _MOST_CHAINS samples, with about _MOST_KEPT numbers in all.
_MOST_KEPT, _MOST_CHAINS, _MOST_SIZES = 1 << 23, 16, 3
# Scores of classes that are reported in addition to the deciding one.
_BESIDE = (SCORES["accuracy"], SCORES["balanced_accuracy"], SCORES["auc"], PROPER["classification"])


class Scorer:
    """Scores candidates on splits of the sample, or on all rows. Results do not depend on the number of jobs."""

    def __init__(self, problem: Problem) -> None:
        self._problem, self._space, self._all_rows = problem, problem.space, AllRows(problem)
        # Each entry of the cache holds copies of its rows, and the chains that were fitted on them.
        self._cached = lru_cache(_MOST_SIZES)(self._split_rows)

    def forget(self) -> None:
        """Empty the cache of splits and of the chains that were fitted on them."""
        self._cached.cache_clear()

    def score(self, candidate: Candidate, size: Size) -> Outcome:
        """Fit and score a candidate on all splits of a size, or return the reason why it failed."""
        started = time.perf_counter()
        try:
            made = (self._on_all_rows if size.one_pass else self._on_splits)(candidate, size)
            tested, chains, row_seconds, tasks = zip(*made, strict=True)
            outcome = self._outcome(Tested.joined(tested), tasks[0], size, candidate == BOOSTING)
        except DataError as error:
            return Outcome(float("-inf"), (), time.perf_counter() - started, failure=str(error))
        return replace(
            outcome,
            seconds=time.perf_counter() - started,
            columns=max(chain.n_components for chain in chains),
            row_seconds=min(row_seconds),
            model_bytes=max(chain.n_bytes for chain in chains),
        )

    def _on_all_rows(self, candidate: Candidate, size: Size) -> list[Predictions]:
        self.forget()  # a pass over all rows needs the memory
        rows = int(size.share * len(self._problem.table.labels))
        recipes = self._space.steps(candidate, size.width, rows)
        return [self._all_rows.tested(recipes, size, candidate == BOOSTING)]

    def _on_splits(self, candidate: Candidate, size: Size) -> list[Predictions]:
        splits, task = self._splits(size), self._problem.task

        def predictions(number: int) -> Predictions:
            split = splits[number]
            chain, Z = self._fitted(split, number, candidate, size)
            learn = partial(boosted, task, labels=split.train.labels) if candidate == BOOSTING else None
            model = (learn or partial(self._model, split))(Z)
            Z_test, seconds = timed(partial(split.test.features, chain))
            return Predictions(self._tested(split, model(Z_test), size), chain, seconds / len(Z_test), task)

        with one_blas_thread(linalg=True):
            jobs = min(self._problem.jobs, len(splits))
            return list(share_work(lambda: predictions, range(len(splits)), jobs))

    def _fitted(
        self, split: SampleSplit, number: int, candidate: Candidate, size: Size
    ) -> tuple[Chain, Floats]:
        """Return the chain, fitted on the training rows of a split, and their features (n, D)."""
        recipes = self._space.steps(candidate, size.width, len(split.train))
        chain = split.fit(recipes, np.random.default_rng([self._problem.seed, 6, number]))
        return chain, split.train.features(chain)

    def _model(self, split: SampleSplit, Z: Floats) -> Callable[[Floats], Floats]:
        """Return ridge, fitted on features (n, D) of the training rows of a split."""
        weights = self._weights(split.labels)
        learn = partial(learn_ridge, weights=None if weights is None else weights[: len(Z)])
        return split.model(Z, learn, self._problem.task)

    def _tested(self, split: SampleSplit, predicted: Floats, size: Size) -> Tested:
        """Return the predictions for the held-out rows of a split, with their labels."""
        keys = split.test.sample.keys
        groups = None if keys is None or keys.ordered else keys.values
        if groups is None and size.splits > size.parts:
            # Some rows are held out more than once. All predictions for a row are resampled together.
            groups = split.test.rows
        return Tested(predicted, split.test.labels, groups)

    def _weights(self, labels: Array) -> Floats | None:
        return self._problem.task.class_weights(labels) if self._problem.balanced else None

    def _outcome(self, tested: Tested, task: PredictionTask, size: Size, likely: bool = False) -> Outcome:
        """Return the scores of predictions. Outputs for classes are calibrated, except probabilities (`likely`)."""
        predicted, labels, groups, _ = tested
        probabilities = None if task.classes is None else predicted
        if task.classes is not None and not (likely or size.one_pass):
            finite = np.isfinite(predicted).all()
            targets, weights = task.targets(labels), self._weights(labels)
            probabilities = held_out_probabilities(predicted, targets, weights) if finite else None
        scoring, rng = (
            self._problem.scoring,
            np.random.default_rng([self._problem.seed, 10 if size.one_pass else 7]),
        )
        first = probabilities if scoring.needs_probabilities and probabilities is not None else predicted
        score = scoring.of(task, first, labels)
        if not np.isfinite(score):
            raise DataError(
                f"label: expected labels that differ among the {len(labels):,} rows held out, got equal ones"
            )
        resampled = resampled_scores(scoring, task, first, labels, RESAMPLES, rng, groups)
        beside = (
            {}
            if probabilities is None
            else {
                one.name: one.figure(task, probabilities if one.needs_probabilities else predicted, labels)
                for one in _BESIDE
            }
        )
        return Outcome(
            score=score,
            resampled=tuple(np.where(np.isfinite(resampled), resampled, score).tolist()),
            figures={name: value for name, value in beside.items() if np.isfinite(value)},
        )

    def parts(self, candidate: Candidate, size: Size) -> list[dict[str, Any]]:
        """Return entries: the score with all parts of a union, then without each part; empty without a union."""
        tested: dict[tuple[int, str, int], list[Tested]] = {}
        task = self._problem.task
        for number, split in enumerate(self._splits(size)):
            with one_blas_thread(linalg=True):
                chain, Z = self._fitted(split, number, candidate, size)
                Z_test = split.test.features(chain)
                left_out = [("", np.empty(0, np.intp)), *chain.parts] if len(chain.parts) > 1 else []
                for place, (name, columns) in enumerate(left_out):
                    predicted = self._model(split, np.delete(Z, columns, axis=1))(
                        np.delete(Z_test, columns, axis=1)
                    )
                    without = self._tested(split, predicted, size)
                    tested.setdefault((place, name, len(columns)), []).append(without)
        return [
            {
                "part": name,
                "columns": n,
                "score_without": self._outcome(Tested.joined(found), task, size).score,
            }
            for (_, name, n), found in tested.items()
        ]

    def importance(self, candidate: Candidate, size: Size) -> Losses | None:
        """Return, for each column of the table, how much the score of held-out rows falls if the column is shuffled."""
        places = self._problem.table.sampled.columns.named_places
        most, rng = rows_to_shuffle(len(places), size.width), np.random.default_rng([self._problem.seed, 8])
        held_out, known = list[HeldOut](), list[Array]()
        with one_blas_thread(linalg=True):
            for number, split in enumerate(self._splits(size) if most else ()):
                rows = np.sort(rng.permutation(len(split.test))[: most - sum(map(len, known))])
                if len(rows):
                    chain, Z = self._fitted(split, number, candidate, size)
                    model = self._model(split, Z)
                    held_out.append((split.test.sample.X[rows], partial(_predictions, chain, model)))
                    known.append(split.test.labels[rows])
            return self._losses(places, held_out, np.concatenate(known)) if known else None

    def _losses(self, places: dict[str, slice], held_out: list[HeldOut], labels: Array) -> Losses | None:
        """Return the losses of the deciding score. The calibration of probabilities is fitted before shuffling."""
        calibration = None
        if self._problem.scoring.needs_probabilities:
            scores = of_all_classes(np.concatenate([predict(X) for X, predict in held_out]))
            calibration = fit_calibration(scores, self._problem.task.targets(labels), self._weights(labels))

        def score(predicted: Floats) -> float:
            likely = predicted if calibration is None else calibration(of_all_classes(predicted))
            return self._problem.scoring.of(self._problem.task, likely, labels)

        return score_losses(places, held_out, score, self._problem.seed)

    def _splits(self, size: Size) -> list[SampleSplit]:
        """Return the splits of a size. Sizes that differ only in the width share splits and fitted chains."""
        return self._cached(size._replace(width=0))

    def _split_rows(self, size: Size) -> list[SampleSplit]:
        """Return the splits of a size. A split learns from the share `size.share` of its training rows."""
        table = self._problem.table
        sample = replace(table.sample, jobs=max(1, self._problem.jobs // size.splits))
        splits = list[SampleSplit]()
        for train, tested in self._numbers(size):
            numbers = max(1, (len(train) + len(tested)) * table.width)
            cache = FitCache(int(np.clip(_MOST_KEPT // numbers, 2, _MOST_CHAINS)))
            splits.append(SampleSplit.of(sample, train[: int(size.share * len(train))], tested, cache))
        return splits

    def _numbers(self, size: Size) -> Iterator[tuple[Array, Array]]:
        """Yield the row numbers (train, test) of each split. No row is tested twice before all were tested once."""
        table = self._problem.table
        for number in range(size.splits):
            shuffling, part = divmod(number, size.parts)
            rng = np.random.default_rng([self._problem.seed, 5, shuffling])
            order, keys = rng.permutation(len(table.labels))[: size.rows], table.sample.keys
            if keys is None:
                cuts = turns(len(order), [k * (len(order) // size.parts) for k in (part, part + 1)])
            else:
                cuts = cuts_by(keys.select(order).shuffled(rng), size.parts)
            train, test = cuts[-1 - part % len(cuts)]
            yield order[train], order[test]

    def constant(self, size: Size) -> float:
        """Return the score of a constant prediction. With groups or times, each split learns its own constant."""
        task, labels, scoring = self._problem.task, self._problem.table.labels, self._problem.scoring
        if self._problem.table.sample.keys is None:
            return scoring.of_constant(task, labels, labels)
        rows = list(self._numbers(size))
        predicted = [constant_predictions(task, labels[train], len(tested)) for train, tested in rows]
        held_out = np.concatenate([tested for _, tested in rows])
        return scoring.of(task, np.concatenate(predicted), labels[held_out])


def _predictions(chain: Chain, model: Callable[[Floats], Floats], X: Floats) -> Floats:
    """Return the predictions of a model from the features of rows X (n, d)."""
    return model(chain.transform(X).astype(np.float64))
