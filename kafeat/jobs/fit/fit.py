"""Fit a map in one pass over the input, on a sample of its rows."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt

from kafeat.config import Config, load_config
from kafeat.contract.step import takes_missing
from kafeat.errors import KafeatWarning, counted, quoted
from kafeat.io.columns.columns import Columns
from kafeat.io.columns.field import Field
from kafeat.io.columns.labels import are_numbers
from kafeat.io.columns.names import MOST_LISTED, listed, require
from kafeat.io.columns.selection import choose
from kafeat.io.readers.base import Reader
from kafeat.io.readers.dataset import open_data
from kafeat.io.readers.memory import reader_of
from kafeat.jobs.fit.labels import check_label, check_split
from kafeat.jobs.fit.listener import SILENT, Listener
from kafeat.jobs.fit.sample import SampledFit
from kafeat.model.feature_map import FeatureMap
from kafeat.types import Array, TableLike


def fit(
    config: str | os.PathLike[str] | Mapping[str, object] | Config,
    data: str | os.PathLike[str] | TableLike,
    label: str | npt.ArrayLike | None = None,
    split: str | None = None,
) -> FeatureMap:
    """Fit a feature map.

    Warns with `kafeat.errors.KafeatWarning` of input that is valid but may be a mistake.

    Parameters
    ----------
    config : str, path, mapping or Config
        The recipe: the path of a YAML file, its content, or a `kafeat.Config`.
    data : str, path, array (n_rows, n_features), sparse matrix or table
        The rows to fit on: in memory, or the path or URI of a file or data set. Tables are those of pyarrow, pandas and
        polars.
    label : str, array (n_rows,) or None, default None
        The column of labels, which is no feature, or the labels themselves.
    split : str or None, default None
        A column that says train or test, which is no feature. Only training rows are fitted on.

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
    recipe, messages = load_config(config), list[str]()
    listener = Listener(warn=messages.append)
    if label is not None and not isinstance(label, str):
        label = np.asarray(label)
    if isinstance(data, str | os.PathLike):
        with open_data(os.fspath(data)) as source:
            fm = fit_reader(recipe, source, label, split=split, listener=listener)
    else:
        fm = fit_reader(recipe, reader_of(data), label, split=split, listener=listener)
    for message in messages:
        warnings.warn(message, KafeatWarning, stacklevel=2)
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
    """Fit on a reader, which is read once, from its first row to its last.

    Neither the label nor the column `split` of train and test is a feature. Test rows are read but not fitted on;
    `held_out` (n_rows,), if given, decides this in the place of `split`.
    """
    check_label(config, label)
    name = label if isinstance(label, str) else None
    labels = None if isinstance(label, str) else label
    check_split(split, name)
    require(source, [] if split is None else [split], "--split")
    columns = columns_of(config, source, name, split)
    listener.inform(features_line(config, source, columns, name, split))
    for message in fit_warnings(config, source, columns, label):
        listener.warn(message)
    sampled = SampledFit.empty(config, columns)
    sampled.read(source, columns, name, labels, split=split, held_out=held_out, listener=listener)
    listener.phase("hashing the input")
    digest = source.digest()
    source.check_unchanged()
    return sampled.learn(source.place, digest, name, split=split, locate=source.locate, listener=listener)


def columns_of(config: Config, source: Reader, label: str | None, split: str | None = None) -> Columns:
    """Return the columns that a map of this config reads."""
    coded = {column: lenient for step in config.steps for column, lenient in step.coded_columns.items()}
    return choose(
        source,
        config.columns.include or None,
        [*config.columns.exclude, *([] if split is None else [split])],
        label,
        coded,
        missing=takes_missing(config.steps),
    )


# Names of columns that are rarely features, without spaces, underscores and capitals.
_NO_FEATURES = re.compile(r"(labels?|targets?|y|ytrue|class(es)?|outcome|response|ids?|rowid|uuid|guid)")
_ENDINGS = ("_id", "_label", "_target", "_class")


def features_line(
    config: Config, source: Reader, columns: Columns, label: str | None, split: str | None
) -> str:
    """Return a line with the features of a fit, and the columns that are left out with the reasons."""
    line = f"{source.place}: {counted(columns.n_features, 'feature')}: {listed(_spelled(columns))}"
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
    """Yield warnings about columns that a fit takes for features but that are probably none."""
    names = [field.name for field in source.fields]
    if source.untyped and not source.positional and are_numbers(names):
        yield (
            f"{source.place}: the names of the columns are numbers ({', '.join(names[:3])}, …); if the first line is a "
            "row, read it with --no-header"
        )
    if config.columns.include:
        return
    absent = [name for name in config.columns.exclude if name not in names]
    if absent and label is None and not source.positional:
        missing = ", ".join(map(quoted, absent))
        yield f"{source.place}: nothing was left out as {missing} (columns.exclude): the file has no such column"
    odd = [] if source.positional else [c.name for c in columns.features if c.categories is None]
    odd = [name for name in odd if _is_no_feature(name, names)]
    if odd:
        which, meant = ("is", "is it") if len(odd) == 1 else ("are", "is one of them")
        yield (
            f"{source.place}: {', '.join(map(quoted, odd[:3]))}{', …' if len(odd) > 3 else ''} {which} taken for "
            f"{'a feature' if len(odd) == 1 else 'features'}: {meant} the label (--label), or no feature "
            "(columns.exclude)?"
        )


def _spelled(columns: Columns) -> list[str]:
    return [c.name if c.width is None else f"{c.name} ({c.width} numbers)" for c in columns.features]


def _count(names: list[str]) -> str:
    """Return the number of names if not all of them are shown."""
    return f"{len(names):,}, " if len(names) > MOST_LISTED else ""


def _reason(config: Config, source: Reader, field: Field, label: str | None, split: str | None) -> str:
    """Return the reason for which a column is no feature."""
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
    """Return true if the name suggests a label or a row id; a y beside an x is a coordinate."""
    plain = re.sub(r"[\s_-]", "", name).casefold()
    if plain == "y" and "x" in {other.casefold() for other in names}:
        return False
    return _NO_FEATURES.fullmatch(plain) is not None or name.casefold().endswith(_ENDINGS)
