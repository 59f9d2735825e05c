"""Fit a map: sample rows in one pass over the input, and learn from them."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from kafeat.config import Config, load_config
from kafeat.contract.step import takes_missing
from kafeat.errors import KafeatWarning, counted, quoted
from kafeat.io.columns.columns import Columns
from kafeat.io.columns.fields import MOST_LISTED, Field, are_numbers, listed, require
from kafeat.io.columns.selection import choose
from kafeat.io.readers.base import Reader
from kafeat.io.readers.dataset import open_data
from kafeat.io.readers.memory import reader_of
from kafeat.jobs.fit.listener import SILENT, Listener
from kafeat.jobs.fit.sample import SampledFit, check_label, check_split
from kafeat.model.feature_map import FeatureMap
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
            fm = fit_reader(recipe, source, label, split=split, listener=listener)
    else:
        fm = fit_reader(recipe, reader_of(data), label, split=split, listener=listener)
    for doubt in found:
        warnings.warn(doubt, KafeatWarning, stacklevel=2)
    return fm


def fit_reader(
    config: Config,
    source: Reader,
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
    for doubt in fit_warnings(config, source, columns, label):
        listener.warn(doubt)
    sampled = SampledFit.nothing(config, columns)
    sampled.read(source, columns, name, given, split=split, held_out=held_out, listener=listener)
    listener.phase("hashing the input")
    digest = source.digest()
    source.check_unchanged()
    return sampled.learn(source.location, digest, name, split=split, locate=source.locate, listener=listener)


def columns_of(config: Config, source: Reader, label: str | None, split: str | None = None) -> Columns:
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


# Names of labels and of rows, without spaces, underscores and capitals.
_NO_FEATURES = re.compile(r"(labels?|targets?|y|ytrue|class(es)?|outcome|response|ids?|rowid|uuid|guid)")
_ENDINGS = ("_id", "_label", "_target", "_class")


def features_line(
    config: Config, source: Reader, columns: Columns, label: str | None, split: str | None
) -> str:
    """The features of a fit, and the columns that are left out, each with the reason."""
    line = f"{source.location}: {counted(columns.n_features, 'feature')}: {listed(_spelled(columns))}"
    coded = [column.name for column in columns.features if column.categories is not None]
    line += f"; as categories: {listed(coded)}" if coded else ""
    taken = {column.name for column in columns.features}
    reasons: dict[str, list[str]] = {}
    for field in source.fields:
        if field.name not in taken:
            reasons.setdefault(_reason(config, source, field, label, split), []).append(field.name)
    left_out = [f"{listed(names)} ({_count(names)}{reason})" for reason, names in reasons.items()]
    return line + (f"; left out: {', '.join(left_out)}" if left_out else "")


def fit_warnings(config: Config, source: Reader, columns: Columns, label: object) -> Iterator[str]:
    """Sentences for the person who calls the fit, about the columns that it takes for features."""
    names = [field.name for field in source.fields]
    if source.untyped and not source.positional and are_numbers(names):
        yield (
            f"{source.location}: the names of the columns are numbers ({', '.join(names[:3])}, …); if the first line "
            "is a row, read it with --no-header"
        )
    if config.columns.include:
        return
    absent = [name for name in config.columns.exclude if name not in names]
    if absent and label is None and not source.positional:
        missing = ", ".join(map(quoted, absent))
        yield f"{source.location}: nothing was left out as {missing} (columns.exclude): the file has no such column"
    odd = [] if source.positional else [c.name for c in columns.features if c.categories is None]
    odd = [name for name in odd if _is_no_feature(name, names)]
    if odd:
        which, meant = ("is", "is it") if len(odd) == 1 else ("are", "is one of them")
        yield (
            f"{source.location}: {', '.join(map(quoted, odd[:3]))}{', …' if len(odd) > 3 else ''} {which} taken for "
            f"{'a feature' if len(odd) == 1 else 'features'}: {meant} the label (--label), or no feature "
            "(columns.exclude)?"
        )


def _spelled(columns: Columns) -> list[str]:
    return [c.name if c.width is None else f"{c.name} ({c.width} numbers)" for c in columns.features]


def _count(names: list[str]) -> str:
    """The number of names, where not all of them are shown."""
    return f"{len(names):,}, " if len(names) > MOST_LISTED else ""


def _reason(config: Config, source: Reader, field: Field, label: str | None, split: str | None) -> str:
    """Why a column is no feature."""
    if field.name in (label, split):
        return "--label" if field.name == label else "--split"
    if config.columns.include:
        return "not in columns.include"
    if field.name in config.columns.exclude:
        return "columns.exclude"
    if field.name in source.row_names:
        return "names of rows"
    return field.spelled if field.kind == "other" else field.kind


def _is_no_feature(name: str, names: list[str]) -> bool:
    """Whether the name is that of a label or of rows; beside an x, y is a coordinate."""
    plain = re.sub(r"[\s_-]", "", name).casefold()
    if plain == "y" and "x" in {other.casefold() for other in names}:
        return False
    return _NO_FEATURES.fullmatch(plain) is not None or name.casefold().endswith(_ENDINGS)
