"""Choose scaler, metric, kernel, γ and map for a table and its label, in one search."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from hashlib import sha256
from math import inf
from time import monotonic

import numpy as np

from kafeat._version import __version__
from kafeat.config import Config
from kafeat.contract.threads import endable
from kafeat.errors import DataError
from kafeat.io.storage.location import location_of
from kafeat.jobs.fit.fit import fit_reader
from kafeat.jobs.fit.intervals import random_folds
from kafeat.jobs.fit.labels import LabelArgument, label_argument, label_names
from kafeat.jobs.fit.looks import with_columns
from kafeat.jobs.fit.messages import SILENT, Listener
from kafeat.jobs.fit.predictor import with_class_weight
from kafeat.jobs.fit.reread import RereadableData, rereadable
from kafeat.jobs.fit.split_by import with_selection, with_split_by
from kafeat.jobs.options import with_keywords
from kafeat.maths.scoring import PROPER, SCORES, Score, score_for
from kafeat.maths.task import Kind, PredictionTask, class_numbers, task_of
from kafeat.model.feature_map import FeatureMap
from kafeat.runtime.environment import count_jobs
from kafeat.study.records import Table
from kafeat.study.report.document import report_folder
from kafeat.study.tune.all_rows import AllRows
from kafeat.study.tune.budget import Budget
from kafeat.study.tune.choice import Choice, choose, compared, first_choice, with_twice_the_rows
from kafeat.study.tune.input import check_base, read_table
from kafeat.study.tune.journal import TrialJournal
from kafeat.study.tune.notes import commented, comments, notes
from kafeat.study.tune.options import TuneOptions
from kafeat.study.tune.result import DataArguments, Tuning, curve_of, learning_curve_of, table_of
from kafeat.study.tune.rungs import Search, most_in_memory, rungs_of
from kafeat.study.tune.screen import Screen
from kafeat.study.tune.space import (
    Candidate,
    SearchSpace,
    check_predictor,
    load_start,
    seconds_of,
    with_predictor,
)
from kafeat.study.tune.trials import Outcome, Scorer, Size, TestScore, Trial, constant_score

LEAST_ROWS = 20
"""Fewer rows than these are refused, as nothing can be chosen on them."""


@dataclass(frozen=True, kw_only=True)
class Tuner:
    """The search that was asked for, over the maps of `space`; `start` holds the settings beside the steps."""

    asked: TuneOptions
    data: RereadableData
    label: LabelArgument
    start: Config
    budget: Budget
    space: SearchSpace

    @property
    def kind(self) -> Kind:
        """The task that was asked for, or that of the labels of all rows."""
        return self.space.table.summary.kind if self.asked.task == "auto" else self.asked.task

    @property
    def taken_for(self) -> str:
        """The line that says if the label is read as numbers or classes, and why."""
        return self.space.table.summary.taken_for(self.asked.task, "--task {}")

    @cached_property
    def goal(self) -> PredictionTask:
        """The task of the labels. Labels and scores with which nothing can be learned are refused."""
        table = self.space.table
        if len(table.labels) < LEAST_ROWS:
            raise DataError(
                f"{table.place}: expected at least {LEAST_ROWS} rows to choose on, got {len(table.labels)}"
            )
        try:
            goal = task_of(table.labels, self.kind)
            score_for(self.asked.scoring, goal.kind)
        except DataError as error:
            raise DataError(f"{table.place}: {error}") from None
        check_predictor(self.start, goal, table.place)
        if goal.classes is not None and 2 * len(goal.classes) > len(table.labels):
            numbers = goal.classes.dtype.kind != "O"
            raise DataError(
                f"{table.place}: label: expected classes that several rows have, got {len(goal.classes):,} different "
                f"{'numbers' if numbers else 'texts'} such as {goal.classes[0]!s:.40} in {len(table.labels):,} rows: "
                + ("--task regression predicts numbers" if numbers else "text like this cannot be predicted")
            )
        return goal

    @property
    def chosen_by(self) -> Score:
        """The score that decides."""
        if self.asked.scoring != "auto":
            return SCORES[self.asked.scoring]
        return SCORES["balanced_accuracy"] if self.balanced else PROPER[self.goal.kind]

    @property
    def balanced(self) -> bool:
        """True if every class counts the same."""
        return self.start.predictor is not None and self.start.predictor.class_weight == "balanced"

    def journal(
        self, path: str | None, resume: bool, listener: Listener
    ) -> AbstractContextManager[TrialJournal | None]:
        """Open the file of trials, whose key changes with the data and with everything that trials depend on."""
        if path is None:
            return nullcontext()
        table = self.space.table
        asked = self.asked
        of_goal = (self.goal.classes is None, asked.split, asked.task, asked.scoring, asked.seeds, asked.rows)
        # Text as codes: a file of some kilobytes may repeat a long label in every row.
        text = table.labels.dtype.kind == "O"
        labels = [one.tolist() for one in (class_numbers(table.labels) if text else [table.labels])]
        dialect = self.data.reading.dialect_options
        key = (__version__, table.sampled.digest, self.start.digest(), self.budget, of_goal, labels, dialect)
        return TrialJournal(path, sha256(repr(key).encode()).hexdigest(), resume, listener.warn)

    @property
    def said(self) -> dict[str, str]:
        """The options that decide what is chosen and are not the defaults."""
        given = {
            "task": self.asked.task,
            "scoring": self.asked.scoring,
            "split-by": self.start.split_by,
            "rows": self.asked.rows,
            "from": self.asked.base if isinstance(self.asked.base, str) else None,
        }
        return {name: str(value) for name, value in given.items() if value not in ("auto", None)}

    @property
    def all_rows(self) -> AllRows:
        """The rows that the last candidates are scored on."""
        table = self.space.table
        return AllRows(
            data=self.data, label=self.label, split=self.asked.split, start=self.start, groups=table.groups,
            sampled=table.sampled, task=self.goal, scoring=self.chosen_by, jobs=self.space.jobs,
            weight=self.asked.weight,
        )  # fmt: skip

    @cached_property
    def screen(self) -> Screen:
        """The errors of kernels by the exact machine."""
        return Screen(self.space, self.goal, self.start.seed, self.space.jobs)

    @cached_property
    def scorer(self) -> Scorer:
        """The scores of candidates on splits of the sample."""
        return Scorer(
            self.space, self.goal, self.chosen_by, seed=self.start.seed, jobs=self.space.jobs,
            on_all_rows=self.all_rows.outcome, boosted_on_all_rows=self.all_rows.boosted, balanced=self.balanced,
        )  # fmt: skip

    def search(self, trials: int | None, seconds: float | None, record: TrialJournal | None) -> Search:
        """Return the search, whose trials the journal records."""
        table = self.space.table
        rows, count = len(table.labels), table.sampled.n_rows
        every = min(self.asked.rows or count, count)

        def score(candidate: Candidate, size: Size, seconds: float | None) -> Outcome:
            try:
                return endable(partial(self.scorer.score, candidate, size), seconds)
            except TimeoutError:
                self.scorer.forget()  # what is ended may still write to the fits that it shares
                raise

        return Search(
            space=self.space,
            rungs=rungs_of(rows, every, self.budget.searched, self.asked.seeds, table.sample.keys),
            run=score if record is None else record.remembering(score),
            screened=self._screened,
            scoring=self.chosen_by,
            budget=self.budget,
            most_trials=trials,
            seconds=inf if seconds is None else seconds,
            last_fit=0.0 if self.asked.split is None else _LAST_FIT,
        )

    def _screened(self, like: Candidate, seconds: float) -> Sequence[Candidate]:
        """Return the best kernels of the exact machine that it tries in this time."""
        screen = self.screen
        with suppress(TimeoutError):
            endable(partial(screen.run, like), None if seconds == inf else max(0.0, seconds))
        return screen.leaders

    def run(self, search: Search, stops: tuple[type[BaseException], ...]) -> Choice:
        """Make the trials, choose, and score the test rows; after an exception of `stops`, choose by what is there."""
        choice = None
        try:
            search.search()
            predicts = self.start.predictor is not None
            choice = first_choice(search)
            if self.asked.boosting:
                self._boost(search, choice)
            choose(search, choice, predicts, with_curve=self.asked.report is not None)
            if self.asked.split is not None:
                choice.test = endable(partial(self._test_score, choice, self.asked.split))
            if self.asked.report is not None:
                best = choice.chosen
                sampled = self._in_memory(search, best)
                choice.losses = endable(partial(self.scorer.importance, best.candidate, sampled))
                choice.parts = endable(partial(self.scorer.parts, best.candidate, sampled))
        except stops:
            if all(trial.outcome.failure for trial in search.trials):
                raise
            choice = choice or first_choice(search)
            choice.interrupted = True
        return choice

    def _boost(self, search: Search, choice: Choice) -> None:
        """Score gradient boosting on the rows of the chosen map, in the time that is left."""
        left = search.seconds - search.elapsed
        try:
            size = choice.chosen.size
            choice.boosted = endable(
                partial(self.scorer.boosted, size), None if left == inf else max(0.0, left)
            )
        except TimeoutError:
            choice.without_boosting = "there was no time"
        except DataError as error:
            choice.without_boosting = str(error)

    @staticmethod
    def _in_memory(search: Search, best: Trial) -> Size:
        """Return the size of the trial, or that of the last rung before all rows were read."""
        return best.size if not best.size.one_pass else search.rungs[-2][1]

    def _test_score(self, choice: Choice, split: str) -> TestScore:
        """Return the score of the chosen map, fitted on the training rows, on the test rows."""
        fm = self.fit(
            with_predictor(self.config(choice), "ridge", self.asked.task), self.data, intervals=False
        )
        return self.all_rows.test_score(fm, split)

    def config(self, choice: Choice) -> Config:
        """Return the config of the chosen map for all training rows."""
        chosen, table = choice.chosen, self.space.table
        steps = self.space.steps(chosen.candidate, chosen.size.width, len(table.labels))
        predictor = [] if self.start.predictor is None else [self.start.predictor.recipe()]
        return with_columns(self.start, table.groups, [*steps, *predictor])

    def weight_of(self, config: Config) -> str | None:
        """Return the column of weights if the config ends in a predictor, which alone knows them."""
        return None if config.predictor is None else self.asked.weight

    def fit(self, config: Config, data: RereadableData, intervals: bool) -> FeatureMap:
        """Fit a config on the training rows, with what predicts intervals if they are asked for."""
        with data.open() as source:
            return fit_reader(
                config, source, self.label, split=self.asked.split, weight=self.weight_of(config), jobs=self.space.jobs,
                intervals=intervals,
            )  # fmt: skip

    def _fit_seconds(self, config: Config, best: Trial) -> float:
        """Return about the seconds of a fit, with the refits for intervals, from those of the trial."""
        each, rows = best.outcome.seconds / best.size.splits, self.space.table.sampled.n_rows
        again = any(step.traits.label.own for step in config.map_steps)
        refits = 0 if config.predictor is None else random_folds(rows)[1] if again else _OF_INTERVALS
        return (1 + refits) * each * max(1.0, rows / best.size.rows)

    def result(
        self,
        search: Search,
        choice: Choice,
        source: DataArguments | None,
        fit: Callable[[Config], FeatureMap],
    ) -> Tuning:
        """Return the result; `source` has the arguments of commands that read the same data."""
        config, names = self.config(choice), label_names(self.label)
        score = self.chosen_by
        best = choice.chosen
        tried = self._in_memory(search, best)
        constant = constant_score(score, self.goal, self.space.table, tried, self.start.seed)
        said = (self.taken_for, *notes(search, choice, self.goal, self.said, constant, config.predictor))
        text = comments(search, choice, names, constant, said, config.split_by)
        return Tuning(
            config=config,
            yaml=commented(config, list(text)),
            columns=best.outcome.columns,
            score=best.outcome.score,
            error=best.error,
            constant_score=constant,
            boosting=None if choice.boosted is None else compared(best, choice.boosted),
            scoring=score,
            figures=best.outcome.figures,
            test_score=choice.test,
            table=table_of(choice.leaders),
            curve=curve_of(choice.points, best, np.dtype(config.dtype).itemsize),
            learning_curve=learning_curve_of(choice.learning),
            twice_rows=with_twice_the_rows(choice.learning, score.best),
            losses=choice.losses,
            parts=Table(choice.parts),
            trials=len(search.trials),
            notes=said,
            interrupted=choice.interrupted,
            _source=source,
            _labels=names,
            fit_seconds=self._fit_seconds(config, best),
            _fit=partial(fit, config),
        )


# Time for intervals without refits, as a multiple of that of a fit.
_OF_INTERVALS = 1
# Time of the fit whose test rows are scored, as a multiple of that of a trial of the last rung.
_LAST_FIT = 1.5


@with_keywords(TuneOptions)
def tune(asked: TuneOptions) -> Tuning:
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
    base : str, path, mapping, Config or None, default None
        Config to start from: its seed, columns and other settings are kept, and its steps, if it has some, are one of
        the candidates. A predictor at its end is kept.
    reading : InputOptions or None, default None
        Options for reading a file.
    progress : callable or None, default None
        Called with the search and the trial after each trial.
    listener : Listener or None, default None
        Callbacks for warnings about the columns.
    boosting : bool, default True
        True scores gradient boosting with its defaults on the rows of the chosen map, too; needs the extra `evaluate`.
    journal : str or None, default None
        File that records the trials. One with trials is refused without `resume`; a complete search removes it, after
        `write` and the report.
    config_name : str, default "best.yaml"
        Name of the file of the config, for the commands on the page.
    stops : tuple of exceptions, default (KeyboardInterrupt,)
        Exceptions that end the search at once, even in a long trial, with the best config so far; they are raised
        again if there is none.
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
    start, own = load_start(asked.base)
    start = with_class_weight(with_predictor(start, asked.predictor, asked.task), asked.class_weight)
    start = with_selection(with_split_by(start, asked.split_by), asked.exclude, asked.only)
    budget = Budget(asked.columns, asked.max_bytes_per_row, start.dtype)
    seconds = seconds_of(asked.time)
    budget.check()
    check_base(start)
    listener, split = asked.listener or SILENT, asked.split
    with report_folder(asked.report), rereadable(asked.data, asked.reading) as source:
        with source.open() as first:
            given = label_argument(asked.label, first.rows)
        source = replace(source, labels=label_names(given) if asked.drop_unlabelled else None)
        counted = asked.rows is None or asked.rows > most_in_memory()
        table = read_table(source, start, given, split, listener, asked.weight, counted)
        jobs = count_jobs(asked.jobs)
        space = SearchSpace(table, own, budget.searched, jobs)
        tuner = Tuner(asked=asked, data=source, label=given, start=start, budget=budget, space=space)
        listener.inform(tuner.taken_for)
        with tuner.journal(asked.journal, asked.resume, listener) as record:
            search = tuner.search(asked.trials, seconds, record)
            search.started = started
            return _tuned(asked, tuner, search, record)


def _tuned(asked: TuneOptions, tuner: Tuner, search: Search, record: TrialJournal | None) -> Tuning:
    """Search, and write the result and its page before the journal is closed."""
    if asked.progress is not None:
        search.tell = partial(asked.progress, search)
    choice = tuner.run(search, asked.stops)
    if record is not None:
        record.complete = not choice.interrupted

    def fit(config: Config) -> FeatureMap:
        data = tuner.data.data if location_of(asked.data) is None else asked.data
        with rereadable(data, asked.reading, tuner.data.labels) as again:
            return tuner.fit(config, again, intervals=True)

    weight = None if tuner.start.predictor is None else asked.weight
    words = DataArguments.of(asked.data, asked.split, asked.reading, weight, asked.drop_unlabelled)
    tuning = tuner.result(search, choice, words, fit)
    if asked.write is not None:  # before the page, which may come too late after a signal
        asked.write(tuning)
    if asked.report is not None:
        from kafeat.study.tune.report import write_tuning

        write_tuning(asked.report, tuning, tuner.data.name, asked.config_name)
    return tuning
