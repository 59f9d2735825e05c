"""Screen scalers, kernels, γ and metrics by kernel ridge on few rows: without landmarks, and with every penalty."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from math import inf
from threading import Lock

import numpy as np

from kafeat.chain import Chain, FitCache, one_blas_thread
from kafeat.contract import Folds, RowKeys, TextRows, cuts_by, endable, share_work
from kafeat.errors import DataError
from kafeat.jobs.fit import Recipe, Subset, fit_chain, nested, subset_of
from kafeat.maths import errors_of_others, errors_without_parts
from kafeat.registry import build_step
from kafeat.study.tune.problem import Problem
from kafeat.study.tune.space import Candidate, metric_is_idle
from kafeat.study.tune.trials import IDLE
from kafeat.types import Floats, Mask

EXACT_ROWS = 700
"""Rows of the exact machine. The eigendecomposition of their kernel takes some tenths of a second."""
# Parts that are left out in turn, and how many of them steps that learn from the label are fitted again for.
_PARTS, _REFITS = 10, 3
# Pairs of scaler and kernel whose γ is searched.
_PAIRS = 2
# Kernels that go on to maps, and how many of them differ in the kernel, or in having a metric.
_LEADERS, _SORTS = 6, 4


@dataclass
class Screen:
    """The errors of kernels on some rows of the sample, as shares of the error of a constant.

    `errors` grows as kernels are tried, so a screen that is stopped keeps its findings.
    """

    problem: Problem
    errors: dict[Candidate, float] = field(default_factory=dict)
    _refit_scale: float = 1.0
    """The ratio of a kernel's error without a metric to its error by refits, which learn from fewer rows."""
    _cache: FitCache = field(default_factory=FitCache)
    _lock: Lock = field(default_factory=Lock)

    def found(self, like: Candidate, seconds: float = inf) -> list[Candidate]:
        """Return the best kernels that are tried within so many seconds, and that read words and categories so."""
        with suppress(TimeoutError):
            endable(partial(self.run, like), seconds)
        return self.leaders

    def run(self, like: Candidate) -> None:
        """Try kernels that read words and categories like a candidate: scalers, then γ, then metrics."""
        with one_blas_thread(linalg=True):
            self._try(self.problem.space.kernels(like))
            for _ in range(2):
                self._try(near for one in self._best(_PAIRS) for near in self.problem.space.gammas(one))
            for best in self._best(1):
                self._refit_scale = self.errors[best] / self._error(best, refit=True)
                self._try(self.problem.space.with_metrics(best))
            for best in self._best(1):
                self._try(self.problem.space.gammas(best))

    @property
    def leaders(self) -> list[Candidate]:
        """The kernels that go on: the best, the best of each sort, and then the best that differ only in γ."""
        ranked = self.ranked
        sorts = {(one.map, one.metric == "none"): one for one in reversed(ranked)}
        first = sorted(sorts.values(), key=ranked.index)[:_SORTS]
        return list(dict.fromkeys([*first, *ranked]))[:_LEADERS] if ranked else []

    @property
    def ranked(self) -> list[Candidate]:
        """The kernels, the one with the least error first."""
        known = (one for one in self.errors if self.errors[one] < inf)
        return sorted(known, key=lambda one: self.errors[one])

    def _best(self, count: int) -> list[Candidate]:
        """Return the best kernels that differ in more than γ."""
        return list({replace(one, gamma=None): one for one in reversed(self.ranked)}.values())[
            : -count - 1 : -1
        ]

    def _try(self, kernels: Iterable[Candidate]) -> None:
        def one(kernel: Candidate) -> None:
            try:
                scale = 1.0 if kernel.metric == "none" else self._refit_scale
                self.errors[kernel] = scale * self._error(kernel)
            except (DataError, np.linalg.LinAlgError):  # a kernel that does not suit the table
                return

        new = [kernel for kernel in dict.fromkeys(kernels) if kernel not in self.errors]
        self.errors |= dict.fromkeys(new, inf)  # in an order that does not depend on threads
        share_work(lambda: one, new, max(1, min(self.problem.jobs, len(new))))

    def _error(self, kernel: Candidate, refit: bool = False) -> float:
        """Return the error with the best penalty, as a share of that of the mean."""
        recipes, Y, keys = self._recipes(kernel), self._targets, self._keys
        if refit or keys.ordered or any(build_step(one).traits.label.taken for one in recipes):
            errors, constant = self._without_cuts(recipes)
        else:
            X = self._subset.sample.X
            K = self._fitted(recipes, self._subset, self._cache).exact(X, X)
            errors = errors_without_parts(K, Y, Folds.by(keys, _PARTS).parts(keys.values))
            constant = np.square(Y - Y.mean(axis=0)).sum(axis=1)
        return float(errors.mean(axis=1).min() / constant.mean())

    def _without_cuts(self, recipes: list[Recipe]) -> tuple[Floats, Floats]:
        """Return the errors of rows by chains that have not seen them, and those of a constant."""
        found, idle = list[tuple[Floats, Floats]](), list[bool]()
        for train, held, known, cache in self._cuts:
            chain = self._fitted(recipes, known, cache)
            idle.append(metric_is_idle(chain))
            X, Y, others = known.sample.X, self._targets, self._subset.sample.X[np.flatnonzero(held)]
            errors = errors_of_others(chain.exact(X, X), Y[train], chain.exact(others, X), Y[held])
            found.append((errors, np.square(Y[held] - Y[train].mean(axis=0)).sum(axis=1)))
        if all(idle):
            raise DataError(IDLE)
        every = [np.concatenate(parts, axis=-1) for parts in zip(*found, strict=True)]
        return every[0], every[1]

    def _recipes(self, kernel: Candidate) -> list[Recipe]:
        """Return the steps of a kernel, which needs no landmarks."""
        recipes = self.problem.space.steps(kernel, self.problem.space.width, len(self._subset))
        for step in nested(recipes):
            if step["kind"] == "nystroem":
                step |= {"n_components": 2, "landmarks": "uniform"}
        return recipes

    def _fitted(self, recipes: list[Recipe], rows: Subset, cache: FitCache) -> Chain:
        """Return the chain, fitted by one thread at a time, because threads share the fits."""
        with self._lock:
            return fit_chain(recipes, rows, np.random.default_rng([self.problem.seed, 6]), cache)

    @cached_property
    def _cuts(self) -> list[tuple[Mask, Mask, Subset, FitCache]]:
        """Masks of the rows to learn from and to hold out, the rows to learn from, and the fits on them."""
        cuts = cuts_by(self._keys, _REFITS)
        sample = self._subset.sample
        return [(train, held, subset_of(sample, np.flatnonzero(train)), FitCache()) for train, held in cuts]

    @cached_property
    def _subset(self) -> Subset:
        sample = self.problem.table.sample
        rows = np.random.default_rng([self.problem.seed, 5, 0]).permutation(len(sample.X))[:EXACT_ROWS]
        return subset_of(sample, rows)

    @cached_property
    def _targets(self) -> Floats:
        return self.problem.task.targets(self._subset.labels)

    @cached_property
    def _keys(self) -> RowKeys:
        """The keys of the rows, in another order. Equal rows are a group, so that no row is predicted from its copy."""
        sample, rng = self._subset.sample, np.random.default_rng([self.problem.seed, 9])
        keys = sample.keys
        if keys is None:
            X = sample.X.numbers if isinstance(sample.X, TextRows) else np.asarray(sample.X)
            alike = X.shape[1] and not isinstance(sample.X, TextRows)
            groups = (
                np.unique(np.nan_to_num(X), axis=0, return_inverse=True)[1] if alike else np.arange(len(X))
            )
            keys = RowKeys(groups.reshape(-1).astype(np.float64), ordered=False)
        return keys.shuffled(rng)
