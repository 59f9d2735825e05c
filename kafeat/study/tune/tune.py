"""Choose scaler, metric, kernel, γ and map for a table and its label, in one search."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property, partial
from hashlib import sha256
from math import inf
from time import monotonic

from kafeat._version import __version__
from kafeat.config import Config, commented
from kafeat.contract import endable
from kafeat.errors import UsageError
from kafeat.io.options import InputOptions, words_of
from kafeat.io.storage.location import location_of
from kafeat.jobs.fit import (
    SILENT,
    label_argument,
    label_names,
    label_of_task,
    random_folds,
    recipe_of,
    rereadable,
)
from kafeat.jobs.options import with_keywords
from kafeat.maths import class_numbers
from kafeat.model import FeatureMap
from kafeat.runtime.environment import count_jobs
from kafeat.study.records import Table
from kafeat.study.report.document import report_folder
from kafeat.study.tune.all_rows import AllRows
from kafeat.study.tune.choice import Choice, choose
from kafeat.study.tune.input import load_start, read_table
from kafeat.study.tune.journal import TrialJournal
from kafeat.study.tune.notes import comments, notes
from kafeat.study.tune.options import TuneOptions
from kafeat.study.tune.problem import Problem
from kafeat.study.tune.result import Tuning
from kafeat.study.tune.rungs import ENDED, Search, most_in_memory, rungs_of
from kafeat.study.tune.scorer import Scorer
from kafeat.study.tune.screen import Screen
from kafeat.study.tune.space import BOOSTING, Candidate, seconds_of, with_predictor
from kafeat.study.tune.trials import Budget, Outcome, Size, TestScore, Trial


@dataclass(frozen=True)
class Tuner:
    """Runs the search for a problem, and makes its result."""

    problem: Problem

    @cached_property
    def scorer(self) -> Scorer:
        """Scores candidates, and caches what they share."""
        return Scorer(self.problem)

    def journal(self) -> AbstractContextManager[TrialJournal | None]:
        """Open the journal, if one is requested. Its key depends on the data and on everything else that trials use."""
        problem, labels = self.problem, self.problem.table.labels
        asked, listener = problem.asked, problem.asked.listener or SILENT
        if asked.journal is None:
            return nullcontext()
        wishes = (asked.split, asked.task, asked.scoring, asked.seeds, asked.rows)
        # Texts become class numbers, because a small file may repeat a long label in every row, and `repr` copies all.
        codes = [one.tolist() for one in (class_numbers(labels) if labels.dtype.kind == "O" else [labels])]
        of_data = (problem.table.sampled.digest, problem.data.reading.dialect_options, codes)
        key = repr((__version__, of_data, problem.start.digest(), problem.budget, wishes))
        return TrialJournal(asked.journal, sha256(key.encode()).hexdigest(), asked.resume, listener.warn)

    def search(self, record: TrialJournal | None, started: float) -> Search:
        """Return a search that is ready to run, and whose trials the journal records."""
        problem, asked, table = self.problem, self.problem.asked, self.problem.table
        every = min(asked.rows or table.sampled.n_rows, table.sampled.n_rows)

        def score(candidate: Candidate, size: Size, seconds: float) -> Outcome:
            try:
                return endable(partial(self.scorer.score, candidate, size), seconds)
            except TimeoutError:
                self.scorer.forget()  # the stopped thread may still write to the cached splits
                raise

        return Search(
            space=problem.space,
            rungs=rungs_of(len(table.labels), every, problem.space.width, asked.seeds, table.sample.keys),
            run=score if record is None else record.remembering(score),
            screened=Screen(problem).found,
            scoring=problem.scoring,
            budget=problem.budget,
            most_trials=asked.trials,
            seconds=seconds_of(asked.time) or inf,
            last_fit=0.0 if asked.split is None else _LAST_FIT,
            tell=asked.progress,
            started=started,
        )

    def run(self, search: Search) -> Choice:
        """Make the trials, choose, and score the test rows. After an exception in `stops`, choose immediately."""
        problem, asked, choice = self.problem, self.problem.asked, None
        try:
            search.search()
            choice = Choice.of(search)
            if asked.boosting:
                self._boost(search, choice)
            choose(search, choice, problem.start.predictor is not None, with_curve=asked.report is not None)
            if asked.split is not None:
                needed = self._fit_seconds(self.config(choice), choice.chosen)
                if needed > _OVERTIME * search.seconds + _OVERTIME_SECONDS - search.elapsed:
                    choice.untested_seconds = needed
                else:
                    choice.test_score = endable(partial(self._test_score, choice, asked.split))
            if asked.report is not None:
                best, size = choice.chosen.candidate, self._in_memory(search, choice)
                choice.losses = endable(partial(self.scorer.importance, best, size))
                choice.parts = Table(endable(partial(self.scorer.parts, best, size)))
        except asked.stops:
            if all(trial.outcome.failure for trial in search.trials):
                raise
            choice = choice or Choice.of(search)
            choice.interrupted = True
        return choice

    @staticmethod
    def _boost(search: Search, choice: Choice) -> None:
        """Score gradient boosting on the rows of the chosen map, in the remaining time."""
        tried = search.afterwards("boosting", BOOSTING, choice.chosen.size)
        if tried is not None and tried.outcome.failure is None:
            choice.boosted = tried.outcome
        else:
            failure = ENDED if tried is None else tried.outcome.failure
            choice.without_boosting = "there was no time" if failure == ENDED else str(failure)

    @staticmethod
    def _in_memory(search: Search, choice: Choice) -> Size:
        """Return the size of the chosen trial or, if it read all data, that of the last rung with rows in memory."""
        size = choice.chosen.size
        return size if not size.one_pass else search.rungs[-2][1]

    def _test_score(self, choice: Choice, split: str) -> TestScore:
        """Fit the chosen map with ridge on the training rows, and return its score on the test rows."""
        problem = self.problem
        config = with_predictor(self.config(choice), "ridge", problem.asked.task)
        return AllRows(problem).test_score(problem.fit(config, problem.data, intervals=False), split)

    def config(self, choice: Choice) -> Config:
        """Return the config of the chosen map for all training rows. A predictor of the start config comes last."""
        chosen, problem = choice.chosen, self.problem
        steps = problem.space.steps(chosen.candidate, chosen.size.width, len(problem.table.labels))
        last = problem.start.predictor
        return problem.config(steps if last is None else [*steps, last.recipe()])

    def _fit_seconds(self, config: Config, best: Trial) -> float:
        """Estimate the seconds of fitting, with the refits for intervals, from the seconds of a trial."""
        each, rows = best.outcome.seconds / best.size.splits, self.problem.table.sampled.n_rows
        again = any(step.traits.label.own for step in config.map_steps)
        refits = 0 if config.predictor is None else random_folds(rows)[1] if again else _OF_INTERVALS
        return (1 + refits) * each * max(1.0, rows / best.size.rows)

    def result(self, search: Search, choice: Choice) -> Tuning:
        """Return the result, which can fit the config on the same data."""
        problem, asked, config = self.problem, self.problem.asked, self.config(choice)
        constant = self.scorer.constant(self._in_memory(search, choice))
        said = (problem.taken_for, *notes(problem, search, choice, constant))

        def fit() -> FeatureMap:
            data = problem.data.data if location_of(asked.data) is None else asked.data
            with rereadable(data, asked.reading, problem.data.labels) as again:
                return problem.fit(config, again, intervals=True)

        return Tuning(
            **vars(choice),
            config=config,
            yaml=commented(config, list(comments(problem, search, choice, constant, said))),
            constant_score=constant,
            scoring=problem.scoring,
            trials=len(search.trials),
            notes=said,
            fit_seconds=self._fit_seconds(config, choice.chosen),
            _words=_words_of_data(asked, config.predictor is not None),
            _labels=label_names(problem.label),
            _fit=fit,
        )


def _words_of_data(
    asked: TuneOptions, predicts: bool
) -> tuple[str, list[str], list[str], InputOptions] | None:
    """Return the file, the command words for rows and for the task, and the reading options; None without a file."""
    if not isinstance(asked.data, str | os.PathLike) or os.fspath(asked.data) == "-":
        return None
    divided = words_of(asked, "split", *(["weight"] if predicts else []), "drop_unlabelled")
    return os.fspath(asked.data), divided, words_of(asked, "task"), asked.reading or InputOptions()


# Time to make intervals that need no refits, as a multiple of the time of fitting.
_OF_INTERVALS = 1
# Time to fit the model that is scored on the test rows, as a multiple of a trial of the last rung.
_LAST_FIT = 1.5


# The last fit, for the score of the test rows, begins only if it probably ends before _OVERTIME times the time of the
# search plus _OVERTIME_SECONDS.
_OVERTIME, _OVERTIME_SECONDS = 1.1, 5.0


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
    base : str, path, mapping, list of steps, Config or None, default None
        Config to start from. The search keeps its seed, columns, other settings and predictor, and tries its steps.
    reading : InputOptions or None, default None
        Options for reading a file.
    progress : callable or None, default None
        Called with the search and the trial after each trial.
    listener : Listener or None, default None
        Callbacks for warnings about the columns.
    boosting : bool, default True
        True also scores gradient boosting with its defaults on the rows of the chosen map. Needs the extra `evaluate`.
    journal : str or None, default None
        File that records the trials. If it already has trials, pass `resume`. A complete search removes it after
        `write` and the report.
    config_name : str, default "best.yaml"
        Name of the file of the config, for the commands on the page.
    stops : tuple of exceptions, default (KeyboardInterrupt,)
        Exceptions that end the search at once, even in a long trial. The best config so far is the result; without any
        config, the exception is raised again.
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
    seconds_of(asked.time)  # an invalid duration is refused before the data are read
    start, own = load_start(asked.base)
    start = with_predictor(start, asked.predictor, asked.task)
    asked = _with_soft_task(asked, start)
    start = recipe_of(start, asked.class_weight, asked.split_by, asked.exclude, asked.only)
    budget = Budget(asked.columns, asked.max_bytes_per_row, start.dtype)
    listener = asked.listener or SILENT
    with report_folder(asked.report), rereadable(asked.data, asked.reading) as source:
        with source.open() as first:
            label = label_of_task(label_argument(asked.label, first.rows), asked.task)
        source = replace(source, labels=label_names(label) if asked.drop_unlabelled else None)
        counted = asked.rows is None or asked.rows > most_in_memory()
        table = read_table(source, start, label, asked.split, listener, asked.weight, counted)
        problem = Problem(
            asked=asked, data=source, label=label, start=start, table=table, jobs=count_jobs(asked.jobs),
            budget=budget, own=own,
        )  # fmt: skip
        listener.inform(problem.taken_for)
        tuner = Tuner(problem)
        with tuner.journal() as record:
            search = tuner.search(record, started)
            choice = tuner.run(search)
            if record is not None:
                record.complete = not choice.interrupted
            tuning = tuner.result(search, choice)
            if asked.write is not None:  # first, since a signal may leave no time for the page
                asked.write(tuning)
            if asked.report is not None:
                from kafeat.study.tune.report import write_tuning

                write_tuning(asked.report, tuning, source.name, asked.config_name)
            return tuning


def _with_soft_task(asked: TuneOptions, start: Config) -> TuneOptions:
    """If the config's predictor has the task `soft`, return options with this task. Refuse tasks that contradict."""
    last = start.predictor
    if last is None or "soft" not in (asked.task, last.task):
        return asked
    if last.task != "soft" or asked.task not in ("auto", "soft"):
        raise UsageError(
            f"--task: expected {last.task}, the task of the predictor in the config, got {asked.task}: change one of "
            "them"
        )
    return replace(asked, task="soft")
