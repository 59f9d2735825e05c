"""Screen scalers, kernels, γ and metrics by exact kernel ridge regression on few rows, with the best penalty."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from math import inf
from threading import Lock

import numpy as np

from kafeat.chain import one_blas_thread
from kafeat.contract import RowKeys, TextRows, cuts_by, endable, share_work
from kafeat.errors import DataError
from kafeat.jobs.fit import SampleSplit, nested, subset_of
from kafeat.maths import errors_of_others
from kafeat.study.tune.problem import Problem
from kafeat.study.tune.space import Candidate

EXACT_ROWS = 700
"""The number of rows for kernel ridge regression. The eigendecomposition of their matrix takes tenths of a second."""
_PARTS = 3  # folds of the cross-validation
# The number of best pairs of scaler and kernel whose γ is searched.
_PAIRS = 2
# The number of kernels to try as maps. The first _SORTS of them differ in the kernel, or in having a metric.
_LEADERS, _SORTS = 6, 4


@dataclass
class Screen:
    """The errors of kernels on some rows of the sample, as shares of the error of a constant prediction.

    `errors` grows as kernels are tried, so a screening that is stopped keeps its results.
    """

    problem: Problem
    errors: dict[Candidate, float] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def found(self, like: Candidate, seconds: float = inf) -> list[Candidate]:
        """Return the best of the kernels that are tried in these seconds, with text and categories coded as in `like`.

        First comes the best kernel of each of up to four sorts, then the other kernels by error. A sort is a kind of
        kernel with a metric, or without one.
        """
        with suppress(TimeoutError):
            endable(partial(self.run, like), seconds)
        ranked = self.ranked
        sorts = {(one.map, one.metric == "none"): one for one in reversed(ranked)}
        first = sorted(sorts.values(), key=ranked.index)[:_SORTS]
        return list(dict.fromkeys([*first, *ranked]))[:_LEADERS]

    def run(self, like: Candidate) -> None:
        """Try scalers with kernels, then γ around the best, then metrics."""
        space = self.problem.space
        with one_blas_thread(linalg=True):
            self._try(space.kernels(like))
            for _ in range(2):
                self._try(near for one in self._best(_PAIRS) for near in space.gammas(one))
            for again in (space.with_metrics, space.gammas):
                self._try(near for one in self._best(1) for near in again(one))

    @property
    def ranked(self) -> list[Candidate]:
        """The kernels, best first. Kernels with equal errors differ only in name, so only the first is listed."""
        found = {error: one for one, error in reversed(self.errors.items()) if error < inf}
        return [found[error] for error in sorted(found)]

    def _best(self, count: int) -> list[Candidate]:
        """Return the `count` best kernels that differ in more than γ."""
        found = dict[Candidate, Candidate]()
        for one in self.ranked:
            found.setdefault(replace(one, gamma=None), one)
        return list(found.values())[:count]

    def _try(self, kernels: Iterable[Candidate]) -> None:
        def one(kernel: Candidate) -> None:
            with suppress(DataError, np.linalg.LinAlgError):  # the kernel does not suit the table
                self.errors[kernel] = self._error(kernel)

        new = [kernel for kernel in dict.fromkeys(kernels) if kernel not in self.errors]
        self.errors |= dict.fromkeys(new, inf)  # fixes the order of keys before threads set values
        share_work(lambda: one, new, max(1, min(self.problem.jobs, len(new))))

    def _error(self, kernel: Candidate) -> float:
        """Return the squared error on held-out rows with the best penalty, divided by the error of the mean label."""
        recipes = self.problem.space.steps(kernel, self.problem.space.width, EXACT_ROWS)
        for step in nested(recipes):
            if step["kind"] == "nystroem":
                step |= {"n_components": 2, "landmarks": "uniform"}  # unused by the exact kernel
        errors, constant = 0.0, 0.0
        for split in self._splits:
            with self._lock:  # threads share the cache of fits
                chain = split.fit(recipes, np.random.default_rng([self.problem.seed, 6]))
            X, others = split.train.sample.X, split.test.sample.X
            Y, held = (self.problem.task.targets(one.labels) for one in (split.train, split.test))
            errors += errors_of_others(chain.exact(X, X), Y, chain.exact(others, X), held).sum(axis=1)
            constant += float(np.square(held - Y.mean(axis=0)).sum())
        return float(np.min(errors) / constant)

    @cached_property
    def _splits(self) -> list[SampleSplit]:
        """Cross-validation folds of EXACT_ROWS rows. Equal rows share a fold, so no row is predicted from a copy."""
        sample, seed = self.problem.table.sample, self.problem.seed
        some = np.random.default_rng([seed, 5, 0]).permutation(len(sample.X))[:EXACT_ROWS]
        sample = subset_of(sample, some).sample
        keys, X = sample.keys, sample.X
        if keys is None:
            texts = isinstance(X, TextRows)  # every row with text counts as different
            rows = np.arange(len(X))[:, None] if texts else np.nan_to_num(np.asarray(X))
            groups = np.unique(rows, axis=0, return_inverse=True)[1]
            keys = RowKeys(groups.reshape(-1).astype(np.float64), ordered=False)
        cuts = cuts_by(keys.shuffled(np.random.default_rng([seed, 9])), _PARTS)
        return [SampleSplit.of(sample, np.flatnonzero(train), np.flatnonzero(held)) for train, held in cuts]
