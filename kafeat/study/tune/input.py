"""Read a table as it comes: the groups of its columns, and the sample of rows that settings are chosen on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from kafeat.config import Config
from kafeat.contract.name_patterns import expand
from kafeat.contract.step import DOUBLE, Sample
from kafeat.errors import DataError, UsageError
from kafeat.io.columns.columns import Columns
from kafeat.io.columns.fields import Field, require
from kafeat.io.columns.times import guess_dates
from kafeat.io.columns.values import text_values
from kafeat.io.readers.base import Reader
from kafeat.jobs.fit.fit import read_sample
from kafeat.jobs.fit.labels import LabelArgument, LabelSummary, check_split, label_names
from kafeat.jobs.fit.messages import SILENT, Listener
from kafeat.jobs.fit.sample import SampledFit, TrainingData
from kafeat.jobs.fit.split_by import SplitBy, refuse_shared
from kafeat.maths.task import class_numbers
from kafeat.study.inputs import RereadableData
from kafeat.types import Array

# Rows that are looked at to tell categories from names and times.
_LOOK = 2000
# Text with more different values than this share of the rows names the rows, or is prose.
_MOST_DIFFERENT = 0.5
MIN_FREQUENCY = 0.01
"""The share of rows below which categories share an output."""
# If fewer rows have another category than such a rare one, the column says hardly anything.
_LEAST_FREQUENT = 0.1
_LEAST_TIMES = 0.9
# Ids that repeat have a number of different values between these shares of the rows.
_IDS = 0.1, 0.9
# Columns with fewer numbers may have none in a part of the rows.
_LEAST_VALUES = 10
# Columns whose spreads differ by less have one unit, as the bins of a histogram have.
_ONE_UNIT = 100.0


Recipe = dict[str, Any]

IMPUTE: Recipe = {"kind": "impute", "strategy": "median"}


def one_hot(columns: Sequence[str], **more: Any) -> Recipe:
    """Return the step that codes categories."""
    return {"kind": "one_hot", "columns": list(columns), "unknown": "ignore", **more}


def date_parts(columns: Sequence[str]) -> Recipe:
    """Return the step that makes numbers of times."""
    return {"kind": "date_parts", "columns": list(columns), "cyclic": True}


@dataclass(frozen=True)
class Groups:
    """The names of the feature columns by their kind, and the reason for every column that is left out.

    `ids` names columns of text with many values, some of which stand in several rows.
    """

    numbers: tuple[str, ...]
    categories: tuple[str, ...]
    times: tuple[str, ...]
    left_out: Mapping[str, str]
    ids: tuple[str, ...] = ()

    @property
    def mixed(self) -> bool:
        """True if there are columns other than numbers."""
        return bool(self.categories or self.times)

    def reading_steps(self) -> list[Recipe]:
        """Return the steps that read each column as what it is, and accept missing values."""
        return [
            *([date_parts(self.times)] if self.times else []),
            *([one_hot(self.categories)] if self.categories else []),
            IMPUTE,
        ]


@dataclass(frozen=True)
class TunedTable:
    """A table to tune for, with a sample of its training rows and their labels.

    `sampled` is the fit that has read the sample, for maps that are fitted on it and go on to all rows.
    """

    sampled: SampledFit
    sample: Sample
    labels: Array
    groups: Groups

    @property
    def place(self) -> str:
        """The name of the data, for messages."""
        return self.sampled.place

    @cached_property
    def missing(self) -> bool:
        """True if numbers or times of the sample are missing."""
        coded = np.array(self.sample.n_categories) > 0
        return bool(np.isnan(self.sample.X[:, ~coded]).any())

    @cached_property
    def histogram(self) -> bool:
        """True if all columns are numbers of at least 0 in one unit, so that chi2 and intersection may suit them."""
        X = self.sample.X
        if self.groups.mixed or not np.isfinite(X).all() or X.min() < 0.0:
            return False
        spread = X.std(axis=0)
        spread = spread[spread > 0.0]
        return len(spread) > 1 and float(spread.max() / np.median(spread)) < _ONE_UNIT

    @property
    def width(self) -> int:
        """The number of columns after categories and times are coded, about."""
        codes = sum(self.sample.n_categories or ())
        return int(self.sample.X.shape[1] + codes + 9 * len(self.groups.times))


def read_table(
    data: RereadableData,
    base: Config,
    label: LabelArgument,
    split: str | None,
    listener: Listener,
    weight: str | None = None,
    counted: bool = True,
) -> TunedTable:
    """Read the columns and a sample of the training rows; the labels of all rows are `counted` if these are needed."""
    names = label_names(label)
    check_split(split, names)
    with data.open() as source:
        of_split = [] if split is None else [split]
        require(source, of_split, "--split")
        of_split += [] if weight is None else [weight]
        require(source, of_split, "--weight")
        require(source, names, "--label")
        split_by = SplitBy.of(base)
        if split_by is not None:
            refuse_shared("--split-by", split_by.column, (*names, split))
            require(source, [split_by.column], "--split-by")
            of_split += [] if split_by.ordered else [split_by.column]
        groups = _groups(source.settled(), base, [*names, *of_split])
    table = _sampled(data, base, groups, label, split, listener, weight, counted)
    empty = _empty(table.sample, groups)
    if empty:
        groups = replace(
            groups,
            numbers=tuple(one for one in groups.numbers if one not in empty),
            left_out={**groups.left_out, **dict.fromkeys(empty, "no values")},
        )
        table = _sampled(data, base, groups, label, split, SILENT, weight, counted)
    if not _varies(table.sample):
        raise DataError(
            f"{table.place}: expected a feature column with different values, got only constant ones"
        )
    return table


def _sampled(
    data: RereadableData,
    base: Config,
    groups: Groups,
    label: LabelArgument,
    split: str | None,
    listener: Listener,
    weight: str | None,
    counted: bool,
) -> TunedTable:
    config = with_columns(base, groups, groups.reading_steps())
    with data.open() as source:
        sampled = read_sample(
            config,
            TrainingData(source, label, split, weight=weight),
            listener,
            LabelSummary() if counted else None,
            groups.left_out,
        )
    _, sample = sampled.sample(final=False)
    if sample.label is None:
        raise TypeError("rows without labels")
    alone = replace(sample, n_rows=len(sample.X), dtype=DOUBLE, rows=None)
    return TunedTable(sampled, alone, sample.label, groups)


def _empty(sample: Sample, groups: Groups) -> list[str]:
    """Return the names of the columns of numbers with hardly any value."""
    few = np.isfinite(sample.X).sum(axis=0) < min(_LEAST_VALUES, len(sample.X))
    return [
        name for name, empty in zip(sample.names or (), few, strict=True) if empty and name in groups.numbers
    ]


def with_columns(base: Config, groups: Groups, steps: Sequence[Mapping[str, Any]]) -> Config:
    """Return the base config with these steps, and without the columns that are left out."""
    plain = {key: value for key, value in base.to_plain().items() if key not in ("search", "prune")}
    if groups.left_out and "exclude" in plain["columns"]:
        plain["columns"] = {"exclude": [*plain["columns"]["exclude"], *groups.left_out]}
    elif groups.left_out:
        plain["columns"] = {"include": [*groups.numbers, *groups.categories, *groups.times]}
    return Config.model_validate({**plain, "steps": [dict(step) for step in steps]})


def _groups(source: Reader, base: Config, not_features: Sequence[str]) -> Groups:
    """Divide the columns by what they hold."""
    names = [field.name for field in source.fields]
    excluded = {name for _, found in expand(base.columns.exclude, names) for name in found}
    included = {name for _, found in expand(base.columns.include, names) for name in found}
    fields = [
        field
        for field in source.fields
        if field.name not in {*not_features, *excluded, *source.row_names}
        and (not included or field.name in included)
    ]
    numbers = tuple(field.name for field in fields if field.numeric)
    times = [field.name for field in fields if field.kind in ("date", "timestamp")]
    categories: list[str] = []
    left_out: dict[str, str] = {}
    ids: list[str] = []
    for name, reading, repeats in _readings(source, [field for field in fields if field.kind == "text"]):
        ids += [name] if repeats else []
        if reading == "categories":
            categories.append(name)
        elif reading == "times":
            times.append(name)
        else:
            left_out[name] = reading
    if not (numbers or categories or times):
        raise DataError(f"{source.location}: expected at least one column to learn from, got none")
    return Groups(numbers, tuple(categories), tuple(times), left_out, tuple(ids))


def _readings(source: Reader, fields: Sequence[Field]) -> list[tuple[str, str, bool]]:
    """Return for each column of text: categories, times, or the reason to leave it out; and true if it repeats ids."""
    if not fields:
        return []
    names = [field.name for field in fields]
    first = next(iter(source.coding(names).chunks(Columns((), source.positional, None), names, _LOOK)), None)
    if first is None or first.passthrough is None:
        return [(name, "no rows", False) for name in names]
    readings = []
    for name in names:
        values = text_values(first.passthrough.column(name))
        words, numbers = class_numbers(values[values != np.array(None)])
        n, counts = len(numbers), np.bincount(numbers)
        frequent = counts[counts >= MIN_FREQUENCY * n].sum()
        if len(words) <= 3 and {word.casefold() for word in words} == {"train", "test"}:
            reading = "train and test, for which there is --split"
        elif n and guess_dates(words.tolist(), source.asked).share >= _LEAST_TIMES:
            reading = "times"
        elif n >= 20 and (len(counts) > _MOST_DIFFERENT * n or frequent < _LEAST_FREQUENT * n):
            reading = f"{len(counts):,} different texts in {n:,} rows"
        else:
            reading = "categories" if n else "no values"
        few, many = (share * n for share in _IDS)
        readings.append((name, reading, reading != "times" and n >= 20 and few <= len(counts) <= many))
    return readings


def _varies(sample: Sample) -> bool:
    """Return true if any column has two values; a gap is one, as it is marked."""
    first = sample.X[:1]
    return bool(((first != sample.X) & ~(np.isnan(sample.X) & np.isnan(first))).any())


def check_base(base: Config) -> None:
    """Refuse a config to start from that has searches of its own."""
    if any(step.searches for step in base.map_steps):
        raise UsageError(
            "--from: expected a config with values, got one with searches: put values in their place"
        )
