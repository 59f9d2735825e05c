"""Choose scaler, metric, kernel, γ and map for a table and its label."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from time import monotonic

import numpy.typing as npt

from kafeat.config import Config
from kafeat.errors import UsageError
from kafeat.jobs.evaluate.candidates import MOST_SEEDS
from kafeat.jobs.evaluate.inputs import rereadable
from kafeat.jobs.evaluate.report import report_folder
from kafeat.jobs.fit.labels import label_argument
from kafeat.jobs.fit.messages import SILENT, Listener
from kafeat.jobs.transform.options import InputOptions
from kafeat.jobs.tune.budget import Budget, seconds_of
from kafeat.jobs.tune.importance import column_importance
from kafeat.jobs.tune.last_step import PredictorKind, with_predictor
from kafeat.jobs.tune.report import write_tuning
from kafeat.jobs.tune.search import Search, Trial
from kafeat.jobs.tune.space import SearchSpace
from kafeat.jobs.tune.start import load_start
from kafeat.jobs.tune.table import check_base, read_table
from kafeat.jobs.tune.tuner import Scoring, Tuner
from kafeat.jobs.tune.tuning import Tuning
from kafeat.maths.scoring import ScoringName
from kafeat.maths.task import TaskKind
from kafeat.model.feature_map import FeatureMap
from kafeat.runtime.environment import count_jobs
from kafeat.types import TableLike

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
        File that records the trials. One with trials is refused without `resume`; a complete search removes it.
    resume : bool, default False
        Take the trials from the journal if data and arguments are the same.
    config_name : str, default "best.yaml"
        Name of the file of the config, for the commands on the page.
    stops : tuple of exceptions, default (KeyboardInterrupt,)
        Exceptions that end the search with the best config so far.

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
    return tuning


def _words(data: object, split: str | None, reading: InputOptions | None) -> list[str]:
    """Return the arguments of commands that read the same data: the file, and how it is divided and read."""
    if not isinstance(data, str | os.PathLike):
        return []
    reading = reading or InputOptions()
    return [
        os.fspath(data),
        *(["", ""] if split is None else ["--split", split]),
        *([] if reading.format is None else ["--input-format", reading.format]),
        *([] if reading.delimiter == "," else ["--delimiter", reading.delimiter]),
        *([] if reading.header else ["--no-header"]),
    ]


def _check(trials: int | None, seeds: int) -> None:
    for name, value, most in (("trials", trials, None), ("seeds", seeds, MOST_SEEDS)):
        if value is not None and (value < 1 or (most is not None and value > most)):
            bounds = "at least 1" if most is None else f"1 to {most:,}"
            raise UsageError(f"{name}: expected {bounds}, got {value}")
