"""Options of a transform, its limit of bad rows, the sums over its chunks, and its result."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np

from kafeat.errors import DataError, GateError, UsageError, counted, quoted
from kafeat.io.readers.base import Reader
from kafeat.io.readers.dataset import open_data
from kafeat.io.readers.limit import LimitedReader
from kafeat.io.storage.atomic import WrittenFile
from kafeat.io.storage.base import Location
from kafeat.jobs.transform.outputs import Outputs
from kafeat.model.feature_map import FeatureMap
from kafeat.runtime.column_ranges import DriftTest
from kafeat.runtime.run import Done

_FORM = re.compile(r"(\d+(?:\.\d+)?)%|\d+", re.ASCII)


@dataclass(frozen=True)
class BadRowsLimit:
    """The largest number, or percentage, of rows that may be bad. `text` is as the user wrote it."""

    text: str
    number: Fraction
    is_percentage: bool

    @classmethod
    def parse(cls, given: object) -> BadRowsLimit:
        """Read a whole number, or a text such as `10` or `0.5%`."""
        text = "" if isinstance(given, bool) else str(given).strip()
        form = _FORM.fullmatch(text)
        percentage = form and form[1]
        if form is None or (percentage and Fraction(percentage) > 100):
            raise UsageError(
                f"--max-bad-rows: expected a number of rows such as 10, or a percentage such as 0.5%, got {given!r}"
            )
        return cls(text, Fraction(percentage or text), bool(percentage))

    def allows(self, bad: int, rows: int) -> bool:
        """Return true if so many of the rows may be bad."""
        return bad <= (self.number * rows / 100 if self.is_percentage else self.number)


@dataclass(frozen=True)
class InputOptions:
    """Options for reading a file, or the files of a data set.

    Attributes:
        format: Format of the input; None takes it from the suffix.
        delimiter: Delimiter of CSV.
        header: True if the first line of a CSV holds the names of the columns.
        limit: Number of rows to read; None reads all.
    """

    format: str | None = None
    delimiter: str = ","
    header: bool = True
    limit: int | None = None

    def open(self, place: Location, stamp: str | None = None) -> Reader:
        """Open a reader; a file whose stamp is no longer `stamp` is refused."""
        source = open_data(place, self.format, delimiter=self.delimiter, header=self.header, stamp=stamp)
        return source if self.limit is None else LimitedReader(source, self.limit)


@dataclass(frozen=True)
class RowOptions:
    """Rules for rows that cannot be transformed, and for inputs that have drifted.

    Attributes:
        on_bad_rows: Raise an error, drop such rows, or give them null features (NaN in NPY).
        rejects: CSV file that lists the bad rows; None writes none.
        drift: True counts the values outside of the column ranges of the fit.
        max_drift: Largest allowed share of such values in a column, from 0 to 1; None allows any.
        drift_test: Least p-value that is allowed, from 0 to 1, of a test whether the mean of the features is that of
            the fit; None allows any.
        max_bad_rows: Largest allowed number or percentage of bad rows; None allows any.
    """

    on_bad_rows: Literal["error", "drop", "null"] = "error"
    rejects: Location | None = None
    drift: bool = False
    max_drift: float | None = None
    drift_test: float | None = None
    max_bad_rows: BadRowsLimit | None = None

    def check(self, fm: FeatureMap) -> None:
        """Refuse rules that contradict each other or that the map cannot follow."""
        if self.max_drift is not None and not 0.0 <= self.max_drift <= 1.0:
            raise UsageError(f"--max-drift: expected a share from 0 to 1, got {self.max_drift}")
        if self.drift_test is not None and not 0.0 <= self.drift_test <= 1.0:
            raise UsageError(f"--drift-test: expected a probability from 0 to 1, got {self.drift_test}")
        if self.drift_test is not None and fm.feature_mean is None:
            raise UsageError(
                "--drift-test: expected a map that knows the mean of its features, got an older one: fit it again"
            )
        for option, value in (("--rejects", self.rejects), ("--max-bad-rows", self.max_bad_rows)):
            if value is not None and self.on_bad_rows == "error":
                raise UsageError(f"{option}: expected --on-bad-rows drop or null with it, got error")
        if self.max_drift is not None and fm.column_ranges is None:
            raise UsageError(
                "--max-drift: expected a map that knows the range of its columns, got an older one: fit it again"
            )


STRICT = RowOptions()


@dataclass(frozen=True)
class TransformResult:
    """The result of a transform.

    Attributes:
        rows: Rows of the output.
        rows_read: Rows of the input that were read.
        columns: Number of features, or of predicted numbers.
        what: The content of the output.
        dtype: Type of these numbers.
        seconds: Duration.
        clipped: Values outside of the range that a step was fitted on, which were replaced by its nearest end.
        bad_rows: Rows that were dropped or have null features.
        first_bad_row: The first of them and its problem; None if there is none.
        drift: Share of values outside of the range of the fit, for each input feature; None if not measured.
        drift_test: The test of the mean of the features; None if not made.
        scale: The factor that the features were multiplied by; None for features as they are.
        rows_in_all: Rows of the whole input, estimated if only its `first_chunks` were read; None if unknown.
        input_sha256, output_bytes, output_sha256, output_stamp: Of the files, where they were asked for.
    """

    rows: int
    rows_read: int
    columns: int
    what: Literal["features", "predictions"]
    dtype: str
    seconds: float
    clipped: int
    bad_rows: int
    drift: dict[str, float] | None
    rows_in_all: int | None
    drift_test: DriftTest | None = None
    scale: float | None = None
    input_sha256: str | None = None
    output_bytes: int | None = None
    output_sha256: str | None = None
    output_stamp: str | None = None
    first_bad_row: str | None = None


class Counts:
    """Sums over the chunks of one output."""

    def __init__(self, fm: FeatureMap, names: Sequence[str], rules: RowOptions, outputs: Outputs) -> None:
        self._fm, self._names, self._rules, self._outputs = fm, names, rules, outputs
        self._read = self._clipped = self._bad = 0
        self._first_bad: str | None = None
        self.watches_drift = fm.column_ranges is not None and (rules.drift or rules.max_drift is not None)
        self._outside = np.zeros(len(names), dtype=np.int64)
        # Features of predictions leave their tile for the test alone, so it has to be asked for.
        wanted = rules.drift_test is not None or (rules.drift and outputs.what == "features")
        self.tests_mean = fm.feature_mean is not None and wanted
        self._total = np.zeros(fm.n_components if self.tests_mean else 0)
        self.input_sha256: str | None = None

    def add(self, done: Done) -> None:
        """Add the counts of a chunk."""
        self._read += done.chunk.rows
        self._clipped += done.clipped
        self._bad += len(done.bad_rows)
        if done.bad_rows and self._first_bad is None:
            located = str(done.chunk.located(done.bad_rows[0]))
            self._first_bad = located.removeprefix(f"{done.chunk.location}: ")
        if done.outside is not None:
            self._outside += done.outside
        if done.total is not None:
            self._total += done.total

    def drift(self) -> dict[str, float] | None:
        """Return the share of values outside of the range of the fit, for each input feature."""
        if not self.watches_drift:
            return None
        good = max(1, self._read - self._bad)
        return {name: int(n) / good for name, n in zip(self._names, self._outside, strict=True)}

    def drift_test(self) -> DriftTest | None:
        """Return the test of the mean of the features; None if it is not made, or there are no rows."""
        if self._fm.feature_mean is None or not self.tests_mean:
            return None
        return self._fm.feature_mean.test(self._total / (self._outputs.scale or 1.0), self._read - self._bad)

    def check(self, place: str, first: int | None) -> None:
        """Raise an error if the rules forbid so many bad rows or such drift; `first` is the first row of a part."""
        if first is not None:
            place = f"{place}: rows {first + 1:,} to {first + self._read:,}"
        self._check_bad_rows(place)
        self._check_ranges(place)
        least, test = self._rules.drift_test, self.drift_test()
        if least is not None and test is not None and test.p_value < least:
            raise GateError(
                f"{place}: expected features with the mean of the fit, at a p-value of at least {least:g} "
                f"(--drift-test), got p = {test.p_value:.2g}: the means are {test.distance:.3g} apart, where "
                f"{test.usual:.3g} is usual"
            )

    def _check_bad_rows(self, place: str) -> None:
        most = self._rules.max_bad_rows
        if most is not None and not most.allows(self._bad, self._read):
            rows = "rows" if most.is_percentage else counted(int(most.number), "row").partition(" ")[2]
            raise DataError(
                f"{place}: expected at most {most.text} bad {rows} (--max-bad-rows), got {self._bad:,} of "
                f"{self._read:,}; the first is {self._first_bad}"
            )

    def _check_ranges(self, place: str) -> None:
        most, drift = self._rules.max_drift, self.drift()
        if most is None or drift is None:
            return
        beyond = sorted(((share, name) for name, share in drift.items() if share > most), reverse=True)
        if beyond:
            worst = ", ".join(f"{quoted(name)} {share:.2%}" for share, name in beyond[:3])
            more = f" and {len(beyond) - 3} more" if len(beyond) > 3 else ""
            raise GateError(
                f"{place}: expected at most {most:.2%} of a column outside of the range of the fit "
                f"(--max-drift), got {worst}{more}"
            )

    def result(self, seconds: float, rows_in_all: int | None, written: WrittenFile) -> TransformResult:
        """Return the result of the transform."""
        rows = self._read - (self._bad if self._rules.on_bad_rows == "drop" else 0)
        drift = self.drift()
        return TransformResult(
            rows,
            self._read,
            self._outputs.width,
            self._outputs.what,
            self._outputs.dtype.name,
            seconds,
            self._clipped,
            self._bad,
            drift,
            rows_in_all,
            self.drift_test(),
            self._outputs.scale,
            self.input_sha256,
            written.bytes,
            written.sha256,
            written.stamp,
            self._first_bad,
        )
