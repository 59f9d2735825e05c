"""Read a raw table for a search: which columns can be features, a sample of the rows, and the config to start from."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from pydantic import Field

from kafeat.config import Config, Steps, load_config
from kafeat.contract import DOUBLE, Sample, TextRows
from kafeat.errors import DataError, UsageError, quoted
from kafeat.io.columns.fields import excluding, listed, require
from kafeat.jobs.fit import (
    MIN_FREQUENCY,
    Encoding,
    Groups,
    LabelArgument,
    LabelSummary,
    Listener,
    Recipe,
    RereadableData,
    SampledFit,
    Say,
    SplitBy,
    TrainingData,
    groups_of,
    has_label,
    label_names,
    read_sample,
    roles_of,
    with_columns,
)
from kafeat.registry import build_step
from kafeat.types import Array, Floats

# A column with fewer values may have no values in the training rows of a split.
_LEAST_VALUES = 10
_EMPTY = "no values"
_DIFFERENT = "different whole numbers in all rows, kept as numbers"
# With fewer rows, the numbers of a column may all differ by chance.
_LEAST_IDS = 20
ID = re.compile(
    r"(?:^|[_\W])(?:id|key|nr|no|number|patient|customer|user|subject|session|group)s?$|[a-z]I[dD]$", re.I
)
"""Names of columns that identify rows or groups of rows."""
# Columns whose standard deviations differ by a smaller factor have the same unit, like the bins of a histogram.
_ONE_UNIT = 100.0


@dataclass(frozen=True)
class TunedTable:
    """A table to tune for, with a sample of its training rows and their labels.

    `sampled` is the same sample in a form that `AllRows` can fit maps on, before it reads all rows. Without a label,
    `labels` are empty.
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
    def summary(self) -> LabelSummary:
        """The summary of the labels of all training rows or, if these were not read, of the sample."""
        summary = self.sampled.summary or LabelSummary()
        if not summary.rows:
            summary.add(self.labels)
        return summary

    @cached_property
    def without_texts(self) -> Sample:
        """The sample without its text columns."""
        X, sample = self.sample.X, self.sample
        if not isinstance(X, TextRows):
            return sample
        names, n_categories = (
            None if values is None else tuple(values[j] for j in X.plain)
            for values in (sample.names, sample.n_categories)
        )
        return replace(sample, X=X.numbers, names=names, n_categories=n_categories)

    @cached_property
    def missing(self) -> bool:
        """True if numbers or times of the sample are missing."""
        sample = self.without_texts
        coded = np.array(sample.n_categories) > 0
        return bool(np.isnan(sample.X[:, ~coded]).any())

    @cached_property
    def histogram(self) -> bool:
        """True if all columns are numbers of at least 0 in one unit, so that chi2 and intersection may suit them."""
        X = self.without_texts.X
        if self.groups.mixed or self.groups.texts or not np.isfinite(X).all() or X.min() < 0.0:
            return False
        spread = X.std(axis=0)
        spread = spread[spread > 0.0]
        return len(spread) > 1 and float(spread.max() / np.median(spread)) < _ONE_UNIT

    @property
    def width(self) -> int:
        """The approximate number of columns after categories and times are coded, without text columns."""
        sample = self.without_texts
        few = zip(sample.names or (), sample.n_categories or (), strict=True)
        codes = sum(min(n, int(1.0 / MIN_FREQUENCY)) for name, n in few if name in self.groups.categories)
        return int(sample.X.shape[1] + codes + 9 * len(self.groups.times))


def read_table(
    data: RereadableData,
    base: Config,
    label: LabelArgument,
    split: str | None,
    listener: Listener,
    weight: str | None = None,
    counted: bool = True,
    every: bool = False,
) -> TunedTable:
    """Read which columns can be features, and a sample of the training rows.

    With `counted`, the labels of all rows are summarized. With `every`, the values of numeric columns are examined.
    """
    names, weights = label_names(label), [] if weight is None else [weight]
    with data.open() as source:
        roles = roles_of(base, TrainingData(source, label, split, weight=weight))
        require(source, names, "--label")
        # Only predictors use weights. Without a predictor, the config must exclude the column of weights from features.
        left_out = [name for name in roles if name != weight] + ([] if base.predictor is None else weights)
        groups = groups_of(source.settled(), base, [*names, *left_out], every)
        for column, why in groups.doubts.items():
            listener.warn(f"{source.location}: column {quoted(column)}: {why}")
    if base.predictor is None:
        groups = groups.without(weights, "weights")
    told = list[tuple[Say, str]]()
    quiet = replace(
        listener,
        inform=lambda line: told.append((listener.inform, line)),
        warn=lambda line: told.append((listener.warn, line)),
    )
    encoding: Encoding = "target" if has_label(label) else "one_hot"
    unfit = {"": [""]}
    while any(unfit.values()):  # read again without columns that turn out to be unfit
        told.clear()
        config, summary = with_columns(base, groups, groups.reading_steps(encoding)), LabelSummary()
        with data.open() as source:
            rows = TrainingData(source, label, split, weight=weight)
            sampled = read_sample(config, rows, quiet, summary if counted else None, groups.left_out)
        _, sample = sampled.sample(final=False)
        alone = replace(sample, n_rows=len(sample.X), dtype=DOUBLE, rows=None)
        table = TunedTable(sampled, alone, np.empty(0) if sample.label is None else sample.label, groups)
        unfit = _unfit(table, base)
        different = unfit.pop(_DIFFERENT)
        for reason, columns in unfit.items():
            groups = groups.without(columns, reason)
    for tell, line in told:
        tell(line)
    for name, x in zip(map(str, table.without_texts.names or ()), table.without_texts.X.T, strict=True):
        excel = _DATES.search(name) and (x > 2e4).all() and (x < 8e4).all()  # days since 1900, as in Excel
        if name in groups.numbers and (excel or _are_days(x)):
            listener.warn(
                f"{table.place}: column {quoted(name)}: looks like days, such as {x[0]:.0f}, and is read as numbers: "
                f"cast it to dates{excluding([name])}"
            )
    if different:
        listener.inform(f"{table.place}: {listed(different)}: {_DIFFERENT}; --exclude leaves them out")
    if not groups.texts and not _varies(table.sample):
        raise DataError(
            f"{table.place}: expected a feature column with different values, got only constant ones"
        )
    return table


def _unfit(table: TunedTable, base: Config) -> dict[str, list[str]]:
    """Return columns to leave out, such as ids, by the reason. Those with the reason `_DIFFERENT` only get a remark.

    Columns that the config includes stay. If no feature would remain, only columns without values are left out.
    """
    sample, groups, split_by = table.without_texts, table.groups, SplitBy.of(base)
    X, rows = sample.X, table.sampled.chosen.result()[0]
    few = np.isfinite(X).sum(axis=0) < min(_LEAST_VALUES, len(X))
    found: dict[str, list[str]] = {
        _EMPTY: [],
        "constant": [],
        "counts the rows": [],
        "an id": [],
        _DIFFERENT: [],
    }
    for name, x, empty in zip(map(str, sample.names or ()), X.T, few, strict=True):
        if empty and name in groups.numbers:
            found[_EMPTY].append(name)
        elif base.columns.include or (split_by is not None and split_by.column == name):
            continue
        elif name in groups.without_texts and (x == x[0]).all():
            found["constant"].append(name)
        elif name in groups.numbers and _tells_rows_apart(x):
            counts = (x - rows == x[0] - rows[0]).all()
            found["counts the rows" if counts else "an id" if ID.search(name) else _DIFFERENT].append(name)
    unfit = {name for reason, names in found.items() if reason != _DIFFERENT for name in names}
    if not groups.texts and unfit.issuperset(groups.without_texts):
        return {_EMPTY: found[_EMPTY], _DIFFERENT: []}
    return found


_DATES = re.compile("date|datum|fecha", re.IGNORECASE)


def _are_days(x: Floats) -> bool:
    """Return true if all numbers look like days, such as 20240131. Text of that form is read as days anyway."""
    if not (np.isfinite(x).all() and (x == np.round(x)).all() and (x > 19e6).all() and (x < 21e6).all()):
        return False
    month, day = x // 100 % 100, x % 100
    return bool(((month > 0) & (month < 13) & (day > 0) & (day < 32)).all())


def _tells_rows_apart(x: Floats) -> bool:
    """Return true if the values of a column are whole numbers and all differ, as in a column of ids."""
    whole = len(x) >= _LEAST_IDS and bool((x == np.round(x)).all())
    return whole and len(np.unique(x)) == len(x)


def _varies(sample: Sample) -> bool:
    """Return true if any column is not constant. A missing value counts as a value, because an indicator marks it."""
    first = sample.X[:1]
    return bool(((first != sample.X) & ~(np.isnan(sample.X) & np.isnan(first))).any())


class SearchStart(Config):
    """A config whose steps are optional. It may, for example, only select columns."""

    steps: Steps = Field(
        default_factory=lambda: (build_step({"kind": "standardize"}),),
        description="a chain to try as well", min_length=1,
    )  # fmt: skip


def load_start(base: Any) -> tuple[Config, list[Recipe]]:
    """Return the config to start from, and the recipes of its steps, which become a candidate."""
    start = load_config({} if base is None else base, SearchStart)
    if any(step.searches for step in start.map_steps):
        raise UsageError(
            "--from: expected a config without `validate` and `target_error`, got one: replace them by values"
        )
    own = "steps" in start.model_fields_set
    return start, [step.recipe() for step in start.map_steps] if own else []
