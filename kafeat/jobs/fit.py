"""Fit a map: sample rows in one pass over the input, and learn from them."""

from __future__ import annotations

import os
import warnings
from typing import Any

import numpy as np

from kafeat.config import Config, load_config
from kafeat.errors import KafeatWarning
from kafeat.feature_map import FeatureMap
from kafeat.io.columns import Columns
from kafeat.io.dataset import open_data
from kafeat.io.memory import source_of
from kafeat.io.names import require
from kafeat.io.selection import choose
from kafeat.io.source import Source
from kafeat.jobs.doubts import doubts, features_line
from kafeat.jobs.labels import check_label, check_split
from kafeat.jobs.listener import SILENT, Listener
from kafeat.jobs.sampled import Sampled
from kafeat.step import takes_missing
from kafeat.types import Array


def fit(config: Any, data: Any, label: Any = None, split: str | None = None) -> FeatureMap:
    """Fit a feature map.

    `config` is a dict, the path of a YAML file, or a `Config`. `data` is a 2-D array (n_rows, n_features), a table
    (pyarrow, pandas, polars), the path of a file, or of a data set of many; `label` names its label column, which is
    no feature, or is an array (n_rows,) of labels. `split` names a column of train and test: only the rows of train are
    fitted on, and the column is no feature. Warns with `KafeatWarning` of what may not be meant. Raises `ConfigError`,
    `DataError` and `SystemRefusedError` of `kafeat.errors`.
    """
    recipe, found = load_config(config), list[str]()
    listener = Listener(warn=found.append)
    if isinstance(data, str | os.PathLike):
        with open_data(os.fspath(data)) as source:
            fm = fit_source(recipe, source, label, split=split, listener=listener)
    else:
        fm = fit_source(recipe, source_of(data), label, split=split, listener=listener)
    for doubt in found:
        warnings.warn(doubt, KafeatWarning, stacklevel=2)
    return fm


def fit_source(
    config: Config,
    source: Source,
    label: str | Array | None,
    *,
    split: str | None = None,
    held_out: Array | None = None,
    listener: Listener = SILENT,
) -> FeatureMap:
    """Fit on a source that is read once, from its first row to its last.

    Neither the label nor the column `split` of train and test is a feature. Rows of test are read, and not fitted on;
    or those that `held_out` (n_rows,) names, if it is given.
    """
    check_label(config, label)
    name = label if isinstance(label, str) else None
    given = None if label is None or isinstance(label, str) else np.asarray(label)
    check_split(split, name)
    require(source, [] if split is None else [split], "--split")
    columns = columns_of(config, source, name, split)
    listener.inform(features_line(config, source, columns, name, split))
    for doubt in doubts(config, source, columns, label):
        listener.warn(doubt)
    sampled = Sampled.nothing(config, columns)
    sampled.read(source, columns, name, given, split=split, held_out=held_out, listener=listener)
    listener.phase("hashing the input")
    digest = source.digest()
    source.check_unchanged()
    return sampled.learn(source.place, digest, name, split=split, locate=source.locate, listener=listener)


def columns_of(config: Config, source: Source, label: str | None, split: str | None = None) -> Columns:
    """The columns that a map of this config reads."""
    coded = {column: lenient for step in config.steps for column, lenient in step.coded_columns.items()}
    return choose(
        source,
        config.columns.include or None,
        [*config.columns.exclude, *([] if split is None else [split])],
        label,
        coded,
        missing=takes_missing(config.steps),
    )
