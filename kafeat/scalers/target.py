"""Categories of many values, each replaced by its mean label. No row sees its own label."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np

from kafeat.contract.coding import EVERY_VALUE, MOST_CATEGORIES, OF_GROUPS, joined_codings
from kafeat.contract.name_patterns import ColumnNames, places_of
from kafeat.contract.step import GROUP, Grouped, PositiveFloat, Sample, Transform, parameter
from kafeat.contract.tile import dense
from kafeat.contract.traits import ColumnTraits, LabelTraits, Traits
from kafeat.errors import DataError, counted
from kafeat.maths.content_folds import EqualRows, folds_of, hashes_of
from kafeat.maths.target_sums import TargetSums
from kafeat.maths.task import PredictionTask, task_to_learn
from kafeat.scalers._columns import ColumnCoder, others
from kafeat.scalers.one_hot import size_of
from kafeat.types import Array, ArrayOf, Floats, Shapes, State

_MOST_NUMBERS = 1 << 26
"""The most numbers in all tables of a map, 256 MiB in its file."""


class Target(ColumnCoder, Grouped):
    """(n ȳ_v + m ȳ)/(n + m) for x_j = v, where n rows of the other folds have this value, with the mean label ȳ_v.

    ȳ is the mean of all rows, which unknown categories get. By default m follows from the variances,
    σ²_within/σ²_between, and every value gets ȳ if means differ only by chance. The sums are over all training rows,
    not only over a sample, so the data are read once more.

    A hash of the columns that the step sees, or the `group`, gives the fold of a row. New rows also have folds, and
    equal rows share one.

    If rows repeat, the other folds may contain too few rows of a value. Then n and ȳ_v are those of all rows. This
    applies to values with fewer than 50 different rows, each of which occurs at least twice on average. Only the most
    frequent of these values count, as long as they have 5 rows on average. With a `group`, it never applies.

    Outputs: the columns that are not named, then the means of each named one: one mean for a numeric label, the share
    of the second class for two classes, that of each class for more, and one mean for each of several labels. Only
    steps that keep the names of columns may come before it.

    Source: Micci-Barreca 2001 (the encoding); Searle, Casella & McCulloch 1992, section 3.6 (the variances); folds by
    content: this project.
    """

    always: ClassVar[Traits] = replace(
        ColumnCoder.always, label=LabelTraits({"kind: target": "to learn from"}, all_rows=True, crossed=True)
    )

    columns: ColumnNames = parameter((), "the columns to code, by name or pattern")
    smooth: Literal["auto"] | PositiveFloat = parameter(
        "auto",
        "m: the mean of all rows counts as much as m rows of a value; auto: from the variances, for each output",
    )
    n_folds: int = parameter(10, "K, the number of folds", ge=2, le=20)
    frequency: bool = parameter(False, "add log(1 + n) of each named column, where n rows have the value")
    group: str | None = GROUP

    @property
    def traits(self) -> Traits:
        codes = [dict.fromkeys(self.columns, EVERY_VALUE), dict.fromkeys(self.group_columns, OF_GROUPS)]
        return replace(super().traits, columns=ColumnTraits(coded=joined_codings(codes)))

    def fit(self, sample: Sample, rng: np.random.Generator) -> State:
        columns, group = (
            places_of(self.kind, asked, sample.names) for asked in (self.columns, self.group_columns)
        )
        stream = sample.all_rows
        sizes = np.array([size_of(sample, j) for j in columns], dtype=np.int64)
        task, seed = task_to_learn(stream.labels), int(rng.integers(1 << 63))
        outputs = task.outputs(stream.labels[:1]).shape[1]
        # The sums of an additional first column, with the same value in all rows, are those of all rows.
        every, *sums = self._sums(np.append(1, sizes), outputs)
        equal = EqualRows(outputs)
        for rows, labels in stream.blocks():
            X, Y = dense(rows), task.outputs(labels)
            hashes = hashes_of(X, seed, group)
            equal.add(hashes, Y)
            for one, codes in zip((every, *sums), (np.zeros(len(X)), *X[:, columns].T), strict=True):
                one.add(codes, hashes, Y)
        own = {"columns": columns, "group": group, "sizes": sizes, "seed": np.array(seed)}
        return self._learned(own, every, sums, equal, task)

    def _sums(self, sizes: Array, outputs: int) -> list[TargetSums]:
        """Return empty sums for columns of `sizes` different values, or raise an error if there are too many values."""
        values = int(sizes[1:].sum())
        if values * self.n_folds * outputs > _MOST_NUMBERS:
            raise DataError(
                f"target: expected at most {_MOST_NUMBERS:,} sums, got {values:,} values in {self.n_folds} folds for "
                f"{outputs} outputs: leave columns out, or use fewer n_folds"
            )
        return [TargetSums(int(size), self.n_folds, outputs) for size in sizes]

    def _learned(
        self,
        own: dict[str, Array],
        every: TargetSums,
        sums: list[TargetSums],
        equal: EqualRows,
        task: PredictionTask,
    ) -> State:
        """Return the state, given the sums of all rows (`every`) and those of each column."""
        means, unit = every.means, np.atleast_1d(task.unit)
        smooth = None if self.smooth == "auto" else self.smooth
        grouped = bool(self.group_columns)
        repeated = [one.repeated(equal) & (not grouped) for one in sums]
        tables = [
            np.where(whole[:, None, None], one.of_all_folds(means, smooth), one.encoded(means, smooth)) * unit
            for one, whole in zip(sums, repeated, strict=True)
        ]
        unknown = [one.of_equal_rows & ~whole for one, whole in zip(sums, repeated, strict=True)]
        state = {
            "own": np.array(sum(int(whole.sum()) for whole in repeated)),
            "unknown": np.array(0 if grouped else sum(int(one.sum()) for one in unknown)),
            **own,
            "fold_rows": every.counts[0],
            "means": means * unit + np.atleast_1d(task.centre),
            "tables": np.concatenate([*tables, np.empty((0, self.n_folds, len(means)))]).astype(np.float32),
        }
        if self.frequency:
            state["counts"] = np.concatenate([*(s.counts.sum(axis=1) for s in sums), np.empty(0, np.int64)])
        return state

    def state_shapes(self, state: State, n_features_in: int) -> Shapes:
        k, outputs = np.size(state.get("columns", ())), np.size(state.get("means", ()))
        values = int(np.sum(state.get("sizes", 0)))
        return {
            "columns": ArrayOf((k,), "int64", below=n_features_in),
            "sizes": ArrayOf((k,), "int64", below=MOST_CATEGORIES + 1),
            "seed": ArrayOf((), "int64", below=1 << 63),
            "fold_rows": ArrayOf((self.n_folds,), "int64"),
            "group": ArrayOf((len(self.group_columns),), "int64", below=n_features_in),
            **dict.fromkeys(("own", "unknown"), ArrayOf((), "int64", optional=True)),
            **({"counts": ArrayOf((values,), "int64", below=1 << 62)} if self.frequency else {}),
            "means": (outputs,),
            "tables": ArrayOf((values, self.n_folds, outputs), "float32"),
        }

    def fit_warnings(self, state: State) -> Iterator[str]:
        if not state["unknown"]:
            yield from super().fit_warnings(state)
        else:
            values = counted(int(state["unknown"]), "value")
            yield (
                f"target: {values} got the mean label of all rows: the rows of each are equal, so they share a fold, "
                "and they are too few, or copies of one row"
            )

    def widths(self, state: State) -> list[int]:
        return [len(state["means"]) + self.frequency] * len(state["columns"])

    def bind(self, state: State, n_features_in: int, dtype: np.dtype[Any]) -> Transform:
        return _TargetTransform(self, state, n_features_in)


class _TargetTransform(Transform):
    """A transform that keeps other columns, and looks up the encoding of a row's value and fold in tables."""

    def __init__(self, step: Target, state: State, n_features: int) -> None:
        self._columns, self._sizes, self._seed = state["columns"], state["sizes"], int(state["seed"])
        self._others, self._means, self._group = others(state, n_features), state["means"], state["group"]
        self._starts = np.cumsum(self._sizes) - self._sizes
        # The last entry is for unknown values.
        tables = state["tables"]
        self._tables = np.concatenate([tables, np.zeros_like(tables[:1], shape=(1, *tables.shape[1:]))])
        self._logs = np.log1p(np.append(state["counts"], 0)) if step.frequency else None
        self.n_features_in = n_features
        self.n_features_out = step.n_features_out(state, n_features)

    def apply(self, X: Floats, out: Floats, scratch: tuple[()]) -> None:
        n_folds, outputs = self._tables.shape[1:]
        folds = folds_of(hashes_of(X, self._seed, self._group), n_folds)
        first = len(self._others)
        out[:, :first] = X[:, self._others]
        for column, start, size in zip(self._columns, self._starts, self._sizes, strict=True):
            codes = np.rint(X[:, column])
            known = (codes >= 0.0) & (codes < size)
            places = np.where(known, start + np.where(known, codes, 0.0), len(self._tables) - 1).astype(
                np.intp
            )
            out[:, first : first + outputs] = self._means + self._tables[places, folds]
            first += outputs
            if self._logs is not None:
                out[:, first] = self._logs[places]
                first += 1
