"""The result of a transform of one file, and the file of its bad rows."""

from __future__ import annotations

import csv
from typing import IO, Any

import numpy as np

from kafeat.errors import DataError, GateError, KafeatError, counted, first_of, quoted
from kafeat.io.columns.columns import Columns
from kafeat.io.data_set import stem
from kafeat.io.formats import suffix_of
from kafeat.io.storage.atomic import AtomicFile
from kafeat.io.storage.local_path import LocalPath
from kafeat.jobs.transform.options import RowOptions
from kafeat.jobs.transform.outputs import Outputs
from kafeat.model.feature_map import FeatureMap
from kafeat.runtime.column_means import Difference
from kafeat.runtime.column_ranges import ColumnRanges, DriftTest, SeenCategories
from kafeat.runtime.run import Done

_OWN_COLUMNS = ("row", "column", "problem", "text")


class TransformResult:
    """The result of the transform of one file, summed over its chunks. `check` compares it with the rules for rows.

    Attributes:
        rows_read: Rows of the input that were read.
        clipped: Number of values that a step replaced by the nearest end of the range that it was fitted on.
        bad_rows: Rows that were dropped or have null features.
        first_bad_row: The first bad row and its problem; None if no row is bad.
        columns: Number of features, or of predicted numbers.
        what: The content of the output.
        scale: The factor that the features were multiplied by; None for features as they are.
        dtype: Type of the features, or of the predicted numbers.
        input_sha256: Hash of the input, if it was requested.
        written: The output, with its hash if it was requested.
        seconds: Duration.
    """

    def __init__(self, fm: FeatureMap, inputs: Columns, rules: RowOptions, outputs: Outputs) -> None:
        self._fm, self._inputs, self._rules = fm, inputs, rules
        self.columns, self.what, self.scale = outputs.width, outputs.what, outputs.scale
        self.dtype = outputs.dtype.name
        self.rows_read = self.clipped = self.bad_rows = 0
        self.first_bad_row: str | None = None
        self.watches_drift = fm.column_ranges is not None and (rules.drift or rules.max_drift is not None)
        self.categories = SeenCategories(inputs)
        self._outside = np.zeros(inputs.n_features, dtype=np.int64)
        self._ranges = ColumnRanges.empty(inputs.n_features)
        # For predictions, summing features is extra work, so only `drift_test` tests the mean of features, not `drift`.
        wanted = rules.drift_test is not None or (rules.drift and outputs.what == "features")
        self.tests_mean = fm.feature_mean is not None and wanted
        self._total = np.zeros(fm.n_components if self.tests_mean else 0)
        self._places = [j for _, j in inputs.inputs]
        self._sums = np.zeros((2, len(self._places)))
        self.input_sha256: str | None = None
        self.written = AtomicFile("")
        self.seconds = 0.0

    def add(self, done: Done) -> None:
        """Add the counts of a chunk."""
        self.rows_read += done.chunk.rows
        self.clipped += done.clipped
        self.bad_rows += len(done.bad_rows)
        if done.bad_rows and self.first_bad_row is None:
            located = str(done.chunk.located(done.bad_rows[0]))
            self.first_bad_row = located.removeprefix(f"{done.chunk.location}: ")
        if done.outside is not None:
            self._outside += done.outside
        if done.ranges is not None:
            self._ranges = self._ranges.joined(done.ranges)
        if done.total is not None:
            self._total += done.total
        if done.inputs is not None:
            self._sums += done.inputs[:, self._places]

    @property
    def rows(self) -> int:
        """The number of rows of the output."""
        return self.rows_read - (self.bad_rows if self._rules.on_bad_rows == "drop" else 0)

    @property
    def bytes(self) -> int | None:
        """Size of the output; None for a pipe or a device."""
        return self.written.bytes

    @property
    def drift(self) -> dict[str, float] | None:
        """The share of values outside the range of the training rows, by input feature; None if not measured."""
        if not self.watches_drift:
            return None
        good = max(1, self.rows_read - self.bad_rows)
        return {name: int(self._outside[j]) / good for name, j in self._inputs.inputs}

    @property
    def seen(self) -> dict[str, list[float | None]]:
        """The least and the largest value of each input feature. Both are None if drift is not measured."""
        return self._ranges.named(self._inputs.inputs)

    @property
    def unknown(self) -> str | None:
        """A sentence about columns in which no category is known. None if there are no such columns."""
        return self.categories.unknown(self.rows_read - self.bad_rows)

    @property
    def drift_test(self) -> DriftTest | None:
        """The test of the mean of the features. None if there was no test, or if there are no rows."""
        if self._fm.feature_mean is None or not self.tests_mean:
            return None
        return self._fm.feature_mean.test(self._total / (self.scale or 1.0), self.rows_read - self.bad_rows)

    def check(self, place: str, first: int | None) -> None:
        """Raise an error with this result if the number of bad rows or the drift exceeds the limits of the rules.

        `first` is the first row of a part, or None for a whole file.
        """
        if first is not None:
            place = f"{place}: rows {first + 1:,} to {first + self.rows_read:,}"
        try:
            self._check_bad_rows(place)
            self._check_ranges(place)
            self._check_mean(place)
        except KafeatError as refusal:
            refusal.result = self
            raise

    def _check_mean(self, place: str) -> None:
        least, test = self._rules.drift_test, self.drift_test
        if least is not None and test is not None and test.p_value < least:
            raise GateError(
                f"{place}: expected features with the mean of the training rows, at a p-value of at least {least:g} "
                f"(--drift-test), got p = {test.p_value:.2g}: the means are {test.distance:.3g} apart, where "
                f"{test.usual:.3g} is usual{self._drifting()}"
            )

    def _drifting(self) -> str:
        """Return the end of a message: the columns whose means differ most from those of the training rows."""
        mean = self._fm.feature_mean
        if mean is None or mean.columns is None:
            return (
                "; an older kafeat kept no means of the columns to name those that differ: fit the map again"
            )
        spelled = [
            self._spelled(one) for one in mean.columns.differences(self._sums, self.rows_read - self.bad_rows)
        ]
        if not spelled:
            return "; no column differs in its mean: spreads, correlations or words of texts may differ"
        return f"; the columns that differ most: {first_of(spelled)}"

    def _spelled(self, one: Difference) -> str:
        """Describe the difference of a column. The mean of a time, or of codes of categories, is not shown."""
        name, j = self._inputs.inputs[one.column]
        if one.missing:
            return f"{quoted(name)} (missing {one.here:.2%}, in training rows {one.of_fit:.2%})"
        [column] = [
            column
            for column, place in zip(self._inputs.features, self._inputs.places, strict=True)
            if place.start <= j < place.stop
        ]
        by = (
            "never another value in training rows"
            if np.isinf(one.units)
            else f"{one.units:.2g} standard deviations"
        )
        plain = column.categories is None and not column.times
        means = f": mean {one.here:.6g}, in training rows {one.of_fit:.6g}" if plain else ""
        return f"{quoted(name)} ({by}{means})"

    def _check_bad_rows(self, place: str) -> None:
        most = self._rules.max_bad_rows
        if most is not None and not most.allows(self.bad_rows, self.rows_read):
            rows = "rows" if most.is_percentage else counted(int(most.number), "row").partition(" ")[2]
            raise DataError(
                f"{place}: expected at most {most.text} bad {rows} (--max-bad-rows), got {self.bad_rows:,} of "
                f"{self.rows_read:,}; the first is {self.first_bad_row}"
            )

    def _check_ranges(self, place: str) -> None:
        most, drift = self._rules.max_drift, self.drift
        if most is None or drift is None:
            return
        beyond = sorted(((share, name) for name, share in drift.items() if share > most), reverse=True)
        if beyond:
            worst = first_of([f"{quoted(name)} {share:.2%}" for share, name in beyond])
            raise GateError(
                f"{place}: expected at most {most:.2%} of a column outside the range of the training rows "
                f"(--max-drift), got {worst}"
            )


class Rejects:
    """A CSV with a line for each bad row: its number (from 1), the column and the problem, then its cells.

    A row with too few or too many fields has no cells, and the column `text` holds its line. An input column with one
    of these names gets the prefix `input.`.
    """

    def __init__(self, file: IO[str], columns: Columns, keep: list[str]) -> None:
        self._writer = csv.writer(file, lineterminator="\n")
        self._names = columns.names
        cells = [column.name for column in columns.features]
        self._kept = [name for name in keep if name not in cells]
        self._width = len(cells) + len(self._kept)
        self._writer.writerow(
            [*_OWN_COLUMNS, *(f"input.{n}" if n in _OWN_COLUMNS else n for n in (*cells, *self._kept))]
        )

    def add(self, done: Done) -> None:
        """Write the bad rows of a chunk."""
        chunk = done.chunk
        for refused in done.bad_rows:
            column = refused.named(self._names)
            start = [chunk.start + refused.row + 1, "" if column is None else column, refused.problem]
            text = chunk.broken_text(refused.row)
            if text is not None:
                self._writer.writerow([*start, text, *[""] * self._width])
                continue
            cells = chunk.cells(refused.row)
            cells += (
                [chunk.passthrough.column(name)[refused.row].as_py() for name in self._kept]
                if chunk.passthrough
                else []
            )
            self._writer.writerow([*start, "", *map(_text, cells)])


def rejects_name(part: str) -> str:
    """Return the name for the rejects of a part: `a.csv` for a.csv, but `a.parquet.csv` for a.parquet.

    If a.parquet.csv is also a part, its rejects have the name `a.parquet.csv.csv`.
    """
    own = part.lower().endswith(".csv") and not suffix_of(LocalPath(stem(part)))
    return part if own else f"{part}.csv"


def _text(value: Any) -> str:
    return "" if value is None else str(value)
