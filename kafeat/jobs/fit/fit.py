"""Fit a map in one pass over the input, on a sample of its rows."""

from __future__ import annotations

import re
import warnings
from collections.abc import Collection, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace

import numpy as np

from kafeat.config import Config, load_config
from kafeat.config.load import Source
from kafeat.contract.folds import RANDOM
from kafeat.contract.step import knows_own_labels
from kafeat.contract.traits import takes_missing
from kafeat.errors import DataError, KafeatWarning, UsageError, counted, spell_row
from kafeat.io.columns.columns import Columns
from kafeat.io.columns.fields import require
from kafeat.io.columns.selection import choose
from kafeat.io.options import InputOptions
from kafeat.io.readers.base import Reader
from kafeat.io.readers.memory import reader_of
from kafeat.io.readers.views import LabelledReader
from kafeat.io.storage.location import location_of
from kafeat.jobs.fit.held_out import learned_map
from kafeat.jobs.fit.intervals import Refit
from kafeat.jobs.fit.label_summary import LabelSummary
from kafeat.jobs.fit.labels import (
    LabelArgument,
    LabelNames,
    check_label,
    check_label_array,
    check_split,
    has_label,
    label_argument,
    label_names,
    label_of_task,
)
from kafeat.jobs.fit.messages import (
    SILENT,
    Listener,
    features_line,
    fit_warnings,
    label_warnings,
    text_warning,
)
from kafeat.jobs.fit.predictor import (
    PredictorJob,
    check_rereadable,
    check_weight,
    fit_predictor,
    with_class_weight,
    with_intervals,
)
from kafeat.jobs.fit.sample import SampledFit, TrainingData
from kafeat.jobs.fit.split_by import SplitBy, refuse_shared, with_selection, with_split_by
from kafeat.jobs.options import ClassWeight, FitOptions, with_keywords
from kafeat.model.feature_map import FeatureMap


@with_keywords(FitOptions)
def fit(asked: FitOptions) -> FeatureMap:
    """Fit a feature map, and a predictor on its features if the config ends in one.

    Warns with `kafeat.errors.KafeatWarning` about input that is valid but may be a mistake.

    Parameters
    ----------
    config : str, path, mapping, list of steps or Config
        The recipe: the path of a YAML file, a dict with the same keys, a list of its steps, or a `kafeat.Config`.
    data : str, path, array (n_rows, n_features), sparse matrix or table
        The rows to fit on: in memory, or the path or URI of a file or data set. Tables are those of pyarrow, pandas and
        polars.
    label : str, list of str, array (n_rows,) or (n_rows, k), or None, default None
        The column of labels, which is not a feature, or the labels themselves: classes or numbers, or k numbers a row,
        which are probabilities of k classes if the predictor has `task: soft`. A list of text names several columns of
        numbers. A list with an entry for every row holds the labels.
    reading : kafeat.io.options.InputOptions or None, default None
        Options for reading, such as `InputOptions(delimiter=";", date_format=("%d.%m.%Y",))`.

    Returns
    -------
    FeatureMap
        The fitted map.

    Raises
    ------
    kafeat.errors.ConfigError
        The config is invalid.
    kafeat.errors.DataError
        The data cannot be read, lack a column, or have values that a step does not accept.
    kafeat.errors.SystemRefusedError
        A file does not exist or cannot be read.
    kafeat.errors.UsageError
        The config needs a label that is missing, or an argument is invalid.

    Examples
    --------
    >>> import kafeat, numpy as np
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> kafeat.fit({"steps": [{"kind": "standardize"}, {"kind": "fourier", "n_components": 64}]}, X)
    FeatureMap(standardize -> fourier: 3 inputs, 64 features, float32)
    """
    recipe = recipe_of(asked.config, asked.class_weight, asked.split_by, asked.exclude, asked.only)
    data, split, weight = asked.data, asked.split, asked.weight
    messages = list[str]()
    listener = Listener(warn=messages.append)
    place, reading = location_of(data), asked.reading or InputOptions()
    with nullcontext(reader_of(data)) if place is None else reading.open(place) as source:
        source.asked = reading.asked if place is None else source.asked
        given = label_argument(asked.label, source.rows)
        fm = fit_reader(
            recipe,
            source,
            given,
            split=split,
            weight=weight,
            jobs=asked.jobs,
            listener=listener,
            drop_unlabelled=asked.drop_unlabelled,
            intervals=asked.intervals,
        )
        others = {name: "a parameter" for name in (*label_names(given), split, weight) if name is not None}
        text = text_warning(recipe, source, fm.columns, others)
        messages += [] if text is None else [text]
    for message in messages:
        warnings.warn(message, KafeatWarning, stacklevel=3)
    return fm


def recipe_of(
    config: Source,
    class_weight: ClassWeight | None,
    split_by: str | None,
    exclude: str | Sequence[str],
    only: str | Sequence[str],
) -> Config:
    """Return the config to fit, with options applied."""
    weighted = with_class_weight(load_config(config), class_weight)
    return with_selection(with_split_by(weighted, split_by), exclude, only)


def fit_reader(
    config: Config,
    source: Reader,
    label: LabelArgument,
    *,
    split: str | None = None,
    weight: str | None = None,
    jobs: int | None = None,
    listener: Listener = SILENT,
    drop_unlabelled: bool = False,
    intervals: bool = False,
) -> FeatureMap:
    """Fit on a reader, from its first row to its last. `TrainingData` explains the arguments.

    The reader is read once for the map, once more for each step that learns from all rows, and once for a predictor.
    Fitting uses `jobs` threads. With `intervals`, the model keeps the errors of held-out rows.
    """
    if isinstance(label, np.ndarray):
        label = check_label_array(label, source.rows)
    task = "auto" if config.predictor is None else config.predictor.task
    label = label_of_task(label, task)
    if drop_unlabelled:
        source = labelled(source, label_names(label))
    data = TrainingData(source, label, split, weight=weight)
    check_weight(config, weight, (*label_names(label), split))
    sampled, job = read_job(config, data, jobs, listener)
    if config.predictor is not None:
        listener.inform(job.summary.taken_for(task, "`task: {}` of the predictor"))
    # If labels are probabilities, the true class of a row is unknown, and so is the error of its prediction.
    intervals = intervals and task != "soft"
    again = intervals or any(step.traits.label.taken for step in config.map_steps)
    fm, job = learned_map(sampled, job, with_mean=True, final=config.predictor is None or not again)
    if config.predictor is None:
        return fm
    own = any(knows_own_labels(fitted.state) for fitted in fm.chain.steps)
    # If a step has learned from the label of a row, the row no longer counts as held out for intervals.
    seen = own or any(fitted.step.traits.label.own for fitted in fm.chain.steps)
    refit = Refit(fm, sampled, job)
    fm = fit_predictor(fm, job, intervals and not seen, refit.scores() if own else ())
    if not intervals or not seen:
        return fm
    return with_intervals(fm, replace(refit, fm=fm, more=True).intervals, source.location, listener)


def read_job(
    config: Config, data: TrainingData, jobs: int | None, listener: Listener
) -> tuple[SampledFit, PredictorJob]:
    """Return the sample to fit a map on, and a predictor's job. Summarize all labels if a step learns from all rows."""
    summary = LabelSummary() if config.learn_all_rows else None
    sampled = read_sample(config, data, listener, summary)
    return sampled, PredictorJob(data, summary or LabelSummary(), RANDOM, jobs, listener)


def labelled(source: Reader, labels: LabelNames) -> Reader:
    """Return a reader of only those rows that have a label."""
    if not labels:
        raise UsageError("--drop-unlabelled: expected columns of labels (--label COL), got none")
    require(source, labels, "--label")
    return LabelledReader(source, labels)


def read_sample(
    config: Config,
    data: TrainingData,
    listener: Listener = SILENT,
    summary: LabelSummary | None = None,
    left_out: Mapping[str, str] | None = None,
) -> SampledFit:
    """Read the sample to fit on, without the columns in `left_out`, which maps each column to a reason.

    The labels of all training rows are added to `summary`, for steps that learn from all rows.
    """
    check_label(config, data.label)
    for step in () if summary is None else config.learn_all_rows:
        check_rereadable(data.source, step)
    names, options = label_names(data.label), roles_of(config, data)
    source = data.source.settled()
    others = {**(left_out or {}), **options}
    columns = columns_of(config, source, names, others)
    listener.inform(features_line(config, source, columns, {**others, **dict.fromkeys(names, "--label")}))
    for message in (
        *fit_warnings(config, source, columns, has_label(data.label), names), *label_warnings(source, names),
    ):  # fmt: skip
        listener.warn(message)
    sampled = SampledFit.empty(config, columns, summary)
    sampled.place, sampled.locate = source.location, source.locate
    try:
        sampled.read(replace(data, source=source), columns, listener)
    except DataError as error:
        if not source.odd_rows or source.odd_rows in str(error):
            raise
        # The error is about a row whose number of cells is wrong, so advice on how to read the value would mislead.
        odd = re.match("rows? ([0-9]+)", source.odd_rows)
        if odd is not None and spell_row(int(odd[1]) - 1) in str(error):
            raise DataError(f"{str(error).partition(';')[0]}; {source.odd_rows}") from error
        raise DataError(f"{error}\n{source.location}: {source.odd_rows}") from error
    if isinstance(source, LabelledReader) and source.dropped:
        listener.inform(f"{source.location}: {counted(source.dropped, 'row')} without a label left out")
    listener.phase("hashing the input")
    sampled.digest = source.digest()
    source.check_unchanged()
    return sampled


def roles_of(config: Config, data: TrainingData) -> dict[str, str]:
    """Return the columns that are not features because options name them, with these options: `{"w": "--weight"}`."""
    names = label_names(data.label)
    check_split(data.split, names)
    refuse_shared("--weight", data.weight, (*names, data.split))
    roles = ((data.split, "--split"), (data.weight, "--weight"))
    options = {name: option for name, option in roles if name is not None}
    for name, option in options.items():
        require(data.source, [name], option)
    split_by = SplitBy.of(config)
    if split_by is not None:
        refuse_shared("--split-by", split_by.column, (*names, data.split))
        require(data.source, [split_by.column], "--split-by")
        if not split_by.ordered:
            options[split_by.column] = "--split-by"
    return options


def columns_of(
    config: Config, source: Reader, labels: LabelNames = (), others: Collection[str] = ()
) -> Columns:
    """Return the columns that a map of this config reads. The columns in `others` are not features."""
    read, split_by = config.read, SplitBy.of(config)
    include, left_out = config.columns.include, [*config.columns.exclude, *others]
    if split_by is not None and split_by.column in read.coded:  # a step codes this column, so it is a feature
        include = include and tuple(dict.fromkeys((*include, split_by.column)))
        left_out = [name for name in left_out if name != split_by.column]
    missing = takes_missing(step.traits for step in config.map_steps)
    return choose(source, include or None, left_out, labels, read, missing)
