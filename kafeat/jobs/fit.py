"""Fit a map: sample rows in one pass over the input, and learn from them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from kafeat.config import Config, load_config
from kafeat.feature_map import FeatureMap
from kafeat.io.columns import Columns
from kafeat.io.dataset import open_data
from kafeat.io.memory import source_of
from kafeat.io.selection import choose
from kafeat.io.source import Source
from kafeat.jobs.labels import check_label
from kafeat.jobs.sampled import Progress, Sampled
from kafeat.step import takes_missing
from kafeat.types import Array


def fit(config: Any, data: Any, label: Any = None) -> FeatureMap:
    """Fit a feature map.

    `config` is a dict, the path of a YAML file, or a `Config`. `data` is a 2-D array (n_rows, n_features), a table
    (pyarrow, pandas, polars), the path of a file, or of a data set of many; `label` names its label column, which is
    no feature, or is an array (n_rows,) of labels. Raises `ConfigError`, `DataError` and `SystemRefusedError` of
    `kafeat.errors`.
    """
    recipe = load_config(config)
    if isinstance(data, str | os.PathLike):
        with open_data(os.fspath(data)) as source:
            return fit_source(recipe, source, label)
    return fit_source(recipe, source_of(data), label)


def fit_source(
    config: Config,
    source: Source,
    label: str | Array | None,
    progress: Progress | None = None,
    *,
    aside: Sequence[str] = (),
    held_out: Array | None = None,
) -> FeatureMap:
    """Fit on a source that is read once, from its first row to its last.

    Columns of `aside` are no features. The rows that `held_out` (n_rows,) names are read, and not fitted on.
    """
    check_label(config, label)
    name = label if isinstance(label, str) else None
    given = None if label is None or isinstance(label, str) else np.asarray(label)
    columns = columns_of(config, source, name, aside)
    sampled = Sampled.nothing(config, columns)
    sampled.read(source, columns, name, given, progress, held_out)
    return sampled.learn(source.place, source.digest(), name, locate=source.locate)


def columns_of(config: Config, source: Source, label: str | None, aside: Sequence[str] = ()) -> Columns:
    """The columns that a map of this config reads."""
    coded = {column: lenient for step in config.steps for column, lenient in step.coded_columns.items()}
    return choose(
        source,
        config.columns.include or None,
        [*config.columns.exclude, *aside],
        label,
        coded,
        missing=takes_missing(config.steps),
    )
