"""Choose scaler, metric, kernel, γ and map for a table and its label, in one search."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from time import monotonic
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kafeat._version import __version__
from kafeat.config import Config
from kafeat.errors import DataError, UsageError
from kafeat.jobs.evaluate.candidates import MOST_SEEDS
from kafeat.jobs.evaluate.inputs import RereadableData, rereadable
from kafeat.jobs.evaluate.report import report_folder
from kafeat.jobs.fit.fit import fit_reader
from kafeat.jobs.fit.labels import LabelArgument, label_argument, label_names
from kafeat.jobs.fit.messages import SILENT, Listener
from kafeat.jobs.transform.options import InputOptions
from kafeat.jobs.tune.journal import Journal
from kafeat.jobs.tune.notes import commented, comments, notes
from kafeat.jobs.tune.report import column_importance, write_tuning
from kafeat.jobs.tune.search import Choice, Chooser, Search, Trial
from kafeat.jobs.tune.space import (
    Budget,
    PredictorKind,
    SearchSpace,
    check_predictor,
    load_start,
    seconds_of,
    with_predictor,
)
from kafeat.jobs.tune.table import check_base, read_table, with_columns
from kafeat.jobs.tune.test_rows import Score, score_test_rows
from kafeat.jobs.tune.trials import Scorer, sizes
from kafeat.jobs.tune.tuning import Tuning, curve_of, table_of
from kafeat.maths.scoring import ScoringName, highest_score, score_of, score_of_constant
from kafeat.maths.task import PredictionTask, TaskKind, class_numbers, task_of
from kafeat.model.feature_map import FeatureMap
from kafeat.runtime.environment import count_jobs
from kafeat.types import TableLike

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
        # Text as codes: a file of some kilobytes may repeat a long label in every row.
        text = table.labels.dtype.kind == "O"
        labels = [one.tolist() for one in (class_numbers(table.labels) if text else [table.labels])]
        key = (__version__, table.digest, self.start.digest(), self.budget, of_goal, labels)
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


# A trial may take longer than those before it, and the chosen map is fitted, so the search ends before the time.
_SHARE_OF_TIME = 0.88


def tune(
    data: str | os.PathLike[str] | TableLike,
    label: str | Sequence[str] | npt.ArrayLike,
    columns: int | None = None,
    *,
    max_bytes_per_row: int | None = None,
    time: float | str | None = None,
    trials: int | None = None,
    split: str | None = None,
    task: TaskKind = "auto",
    scoring: ScoringName = "auto",
    base: str | os.PathLike[str] | Mapping[str, object] | Config | None = None,
    predictor: PredictorKind | None = None,
    seeds: int = 2,
    jobs: int | None = None,
    reading: InputOptions | None = None,
    progress: Callable[[Search, Trial], None] | None = None,
    listener: Listener = SILENT,
    report: str | None = None,
    journal: str | None = None,
    resume: bool = False,
    config_name: str = "best.yaml",
    stops: tuple[type[BaseException], ...] = (KeyboardInterrupt,),
    write: Callable[[Tuning], None] | None = None,
) -> Tuning:
    """Choose the config of a map: scaler, metric, kernel, γ, map and width, by the score of ridge on its features.

    Candidates are fitted on a part of the rows and scored on others. The same data, seed and number of trials give the
    same config.

    Parameters
    ----------
    data : str, path, array (n_rows, n_features), sparse matrix or table
        Rows with numbers, text, times and missing values: in memory, or the path or URI of a file or data set.
    label : str, list of str, array (n_rows,) or (n_rows, k)
        Column to predict, or its values. Several columns of numbers are predicted together; their scores are averaged.
        A list of text names columns, unless it has an entry for every row.
    columns : int or None, default None
        Number of output columns of the map; None tries the best map with several and takes the knee of the curve.
    max_bytes_per_row : int or None, default None
        Largest number of bytes of the features of a row.
    time : float, str or None, default None
        Number of seconds, or a duration such as "90s", "10m" or "1h", that the search may take; it takes longer only
        for the first trial. None makes all trials.
    trials : int or None, default None
        Number of trials after which the search ends; None makes all trials.
    split : str or None, default None
        Column that says train or test. The choice is made on training rows, and the test rows are scored once.
    task : {"auto", "classification", "regression"}, default "auto"
        Kind of prediction; "auto" decides by the labels.
    scoring : str, default "auto"
        Score to maximize; "auto" is the accuracy for classes and R² for numbers.
    base : str, path, mapping, Config or None, default None
        Config to start from: its seed, columns and other settings are kept, and its steps, if it has some, are one of
        the candidates.
        A predictor at its end is kept.
    predictor : {"ridge", "logistic"} or None, default None
        Predictor to end the config in, if `base` has none. The search itself is the same.
    seeds : int, default 2
        Number of splits, each with random draws of its own, that the last candidates are scored on.
    jobs : int or None, default None
        Number of threads; None takes all cores. It never changes the result.
    reading : InputOptions or None, default None
        Options for reading a file.
    progress : callable or None, default None
        Called with the search and the trial after each trial.
    listener : Listener, default SILENT
        Callbacks for warnings about the columns.
    report : str or None, default None
        Folder for a page with figures.
    journal : str or None, default None
        File that records the trials. One with trials is refused without `resume`; a complete search removes it, after
        the report and `write`.
    resume : bool, default False
        Take the trials from the journal if data and arguments are the same.
    config_name : str, default "best.yaml"
        Name of the file of the config, for the commands on the page.
    stops : tuple of exceptions, default (KeyboardInterrupt,)
        Exceptions that end the search with the best config so far.
    write : callable or None, default None
        Called with the result to write it. If it fails, the journal stays.

    Returns
    -------
    Tuning
        The config, its score, and the trials.

    Raises
    ------
    kafeat.errors.DataError
        The data cannot be read, or there is nothing to learn from them.
    kafeat.errors.UsageError
        An argument is invalid.

    Examples
    --------
    >>> import kafeat, numpy as np
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> tuning = kafeat.tune(X, np.sin(X[:, 0]), columns=32, trials=4, jobs=1)
    >>> tuning.fit().n_components
    32
    """
    started = monotonic()
    start, own = load_start(base)
    start = with_predictor(start, predictor, task)
    budget = Budget(columns, max_bytes_per_row)
    seconds = seconds_of(time)
    _check(trials, seeds)
    budget.check(start.dtype)
    check_base(start)
    with report_folder(report), rereadable(data, reading) as source:
        with source.open() as first:
            given = label_argument(label, first.rows)
        table = read_table(source, start, given, split, listener)
        judged = Scoring(split, task, scoring, count_jobs(jobs))
        space = SearchSpace(table, own)
        tuner = Tuner(source, given, start, budget, space, judged)
        seconds = None if seconds is None else _SHARE_OF_TIME * seconds
        with tuner.journal(journal, resume, seeds, listener) as record:
            search = tuner.search(seeds, trials, seconds, record, report is not None, started)
            if progress is not None:
                search.tell = lambda trial: progress(search, trial)
            outcome = tuner.run(search, stops, with_curve=report is not None)
            if record is not None:
                record.complete = not outcome.interrupted

            def fit() -> FeatureMap:
                with rereadable(data, reading) as again:
                    return tuner.fit(outcome.config, again)

            chosen = outcome.choice.chosen.candidate
            importance = None if report is None else column_importance(space, chosen, start.seed)
            tuning = tuner.result(search, outcome, importance, _words(data, split, reading), fit)
            if report is not None:
                write_tuning(report, tuning, source.name, config_name)
            if write is not None:
                write(tuning)
    return tuning


def _words(data: object, split: str | None, reading: InputOptions | None) -> list[str]:
    """Return the arguments of commands that read the same data: the file, and how it is divided and read."""
    if not isinstance(data, str | os.PathLike):
        return []
    reading = reading or InputOptions()
    return [
        os.fspath(data),
        *(["", ""] if split is None else ["--split", split]),
        *([] if reading.input_format is None else ["--input-format", reading.input_format]),
        *([] if reading.delimiter == "," else ["--delimiter", reading.delimiter]),
        *(["--no-header"] if reading.no_header else []),
    ]


def _check(trials: int | None, seeds: int) -> None:
    for name, value, most in (("trials", trials, None), ("seeds", seeds, MOST_SEEDS)):
        if value is not None and (value < 1 or (most is not None and value > most)):
            bounds = "at least 1" if most is None else f"1 to {most:,}"
            raise UsageError(f"{name}: expected {bounds}, got {value}")
