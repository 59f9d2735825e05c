"""One run of tune: the search over the maps of a table, the choice, and the result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import NamedTuple

import numpy as np

from kafeat._version import __version__
from kafeat.config import Config
from kafeat.errors import DataError
from kafeat.jobs.evaluate.inputs import RereadableData
from kafeat.jobs.fit.fit import fit_reader
from kafeat.jobs.fit.labels import LabelArgument, label_names
from kafeat.jobs.fit.messages import Listener
from kafeat.jobs.tune.budget import Budget
from kafeat.jobs.tune.comments import comments
from kafeat.jobs.tune.journal import Journal
from kafeat.jobs.tune.last_step import check_predictor
from kafeat.jobs.tune.notes import notes
from kafeat.jobs.tune.search import Search
from kafeat.jobs.tune.space import SearchSpace
from kafeat.jobs.tune.table import with_columns
from kafeat.jobs.tune.test_rows import Score, score_test_rows
from kafeat.jobs.tune.text import commented
from kafeat.jobs.tune.trials import Scorer, sizes
from kafeat.jobs.tune.tuning import Tuning, curve_of, table_of
from kafeat.jobs.tune.widths import Choice, Chooser
from kafeat.maths.scoring import ScoringName, highest_score, score_of, score_of_constant
from kafeat.maths.task import PredictionTask, TaskKind, task_of
from kafeat.model.feature_map import FeatureMap

LEAST_ROWS = 20
"""Fewer rows than these are refused, as nothing can be chosen on them."""


class Scoring(NamedTuple):
    """The rows and the score that maps are judged by."""

    split: str | None
    task: TaskKind
    name: ScoringName
    jobs: int


class Outcome(NamedTuple):
    """The chosen map and its config; an interrupted run has no score on the test rows."""

    choice: Choice
    config: Config
    test: Score | None
    interrupted: bool


@dataclass(frozen=True)
class Tuner:
    """The search over the maps of `space` for the labels of `data`; `start` holds the settings beside the steps."""

    data: RereadableData
    label: LabelArgument
    start: Config
    budget: Budget
    space: SearchSpace
    scoring: Scoring

    @cached_property
    def goal(self) -> PredictionTask:
        """The task of the labels. Labels and scores with which nothing can be learned are refused."""
        table = self.space.table
        if len(table.labels) < LEAST_ROWS:
            raise DataError(
                f"{table.place}: expected at least {LEAST_ROWS} rows to choose on, got {len(table.labels)}"
            )
        try:
            goal = task_of(table.labels, self.scoring.task)
            score_of(self.scoring.name, goal, np.zeros_like(goal.targets(table.labels)), table.labels)
        except DataError as error:
            raise DataError(f"{table.place}: {error}") from None
        check_predictor(self.start, goal, table.place)
        if goal.classes is not None and 2 * len(goal.classes) > len(table.labels):
            raise DataError(
                f"{table.place}: label: expected classes that several rows have, got {len(goal.classes):,} in "
                f"{len(table.labels):,} rows: name a column to predict, not one that tells the rows apart"
            )
        return goal

    @cached_property
    def scorer(self) -> Scorer:
        """The scores of maps, on rows of the table."""
        return Scorer(self.space, self.goal, self.scoring.name, self.start.seed, self.scoring.jobs)

    def journal(
        self, path: str | None, resume: bool, seeds: int, listener: Listener
    ) -> AbstractContextManager[Journal | None]:
        """Open the file of trials, whose key changes with the data and with everything that trials depend on."""
        if path is None:
            return nullcontext()
        table, (split, task, scoring, _jobs) = self.space.table, self.scoring
        of_goal = (self.goal.classes is None, split, task, scoring, seeds)
        key = (__version__, table.digest, self.start.digest(), self.budget, of_goal, table.labels.tolist())
        return Journal(path, sha256(repr(key).encode()).hexdigest(), resume, listener.warn)

    def search(
        self,
        seeds: int,
        trials: int | None,
        seconds: float | None,
        record: Journal | None,
        with_curve: bool,
        started: float,
    ) -> Search:
        """Return the search, whose trials the journal records; its seconds count from `started`."""
        run = self.scorer.score if record is None else record.remembering(self.scorer.score)
        rows = len(self.space.table.labels)
        planned = sizes(rows, self.budget.searched(self.start.dtype), seeds)
        # The chosen map is fitted on all rows for the score of the test rows.
        last_fit = 0.0 if self.scoring.split is None else rows / planned[-1].rows
        later = self.budget.later_trials(with_curve) + last_fit
        return Search(self.space, planned, run, trials, seconds, later, started=started)

    def run(self, search: Search, stops: tuple[type[BaseException], ...], with_curve: bool) -> Outcome:
        """Make the trials, choose, and score the test rows; after an exception of `stops`, choose by what is there."""
        chooser = Chooser(search, self.budget, self.start.dtype, highest_score(self.scoring.name))
        choice = None
        try:
            search.search()
            choice = chooser.choose(with_curve)
            config = self._config(choice)
            return Outcome(choice, config, self._test_score(config), interrupted=False)
        except stops:
            if not search.trials:
                raise
            choice = choice or chooser.first()
            return Outcome(choice, self._config(choice), None, interrupted=True)

    def fit(self, config: Config, data: RereadableData) -> FeatureMap:
        """Fit a config on the training rows."""
        with data.open() as source:
            return fit_reader(config, source, self.label, split=self.scoring.split)

    def result(
        self,
        search: Search,
        outcome: Outcome,
        importance: dict[str, float] | None,
        words: Sequence[str],
        fit: Callable[[], FeatureMap],
    ) -> Tuning:
        """Return the result; `words` are the arguments of commands that read the same data."""
        (choice, config, test, interrupted), (_split, task, scoring, _jobs) = outcome, self.scoring
        best, names, n = choice.chosen, label_names(self.label), len(search.trials)
        predictor = None if self.start.predictor is None else self.start.predictor.kind
        labels = self.space.table.labels
        constant = score_of_constant(scoring, self.goal, labels, labels)
        said = tuple(notes(search, choice, self.budget, self.goal, task, constant, predictor))
        text = comments(self.space.table, names, choice, self._score_name, constant, said, n)
        return Tuning(
            config,
            commented(config, list(text)),
            best.outcome.columns,
            best.outcome.score,
            best.outcome.error,
            constant,
            self._score_name,
            test,
            table_of(choice.leaders),
            curve_of(choice.points, best, np.dtype(config.dtype).itemsize),
            importance,
            n,
            said,
            interrupted,
            words,
            names,
            fit,
        )

    def _config(self, choice: Choice) -> Config:
        """Return the config of the chosen map for all training rows."""
        chosen, table = choice.chosen, self.space.table
        steps = self.space.steps(chosen.candidate, chosen.size.width, len(table.labels))
        predictor = [] if self.start.predictor is None else [self.start.predictor.recipe()]
        return with_columns(self.start, table.groups, [*steps, *predictor])

    def _test_score(self, config: Config) -> Score | None:
        """Return the score on the test rows, if there are any."""
        split, task, scoring, jobs = self.scoring
        if split is None:
            return None
        fm = self.fit(config, self.data)
        return score_test_rows(fm, self.data, self.label, split, task, scoring, jobs)

    @property
    def _score_name(self) -> str:
        if self.scoring.name != "auto":
            return "R²" if self.scoring.name == "r2" else self.scoring.name
        return "R²" if self.goal.classes is None else "accuracy"
