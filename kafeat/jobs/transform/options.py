"""Options of a transform: how files are read, and what happens to bad rows; `io.writers` has those of outputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from kafeat.errors import UsageError
from kafeat.io.readers.base import Reader
from kafeat.io.readers.dataset import open_data
from kafeat.io.readers.limit import LimitedReader
from kafeat.model.feature_map import FeatureMap


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

    def open(self, place: str, stamp: str | None = None) -> Reader:
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
    """

    on_bad_rows: Literal["error", "drop", "null"] = "error"
    rejects: str | None = None
    drift: bool = False
    max_drift: float | None = None

    def check(self, fm: FeatureMap) -> None:
        """Refuse rules that contradict each other or that the map cannot follow."""
        if self.max_drift is not None and not 0.0 <= self.max_drift <= 1.0:
            raise UsageError(f"--max-drift: expected a share from 0 to 1, got {self.max_drift}")
        if self.rejects is not None and self.on_bad_rows == "error":
            raise UsageError("--rejects: expected --on-bad-rows drop or null with it, got error")
        if self.max_drift is not None and fm.column_ranges is None:
            raise UsageError(
                "--max-drift: expected a map that knows the range of its columns, got an older one: fit it again"
            )


STRICT = RowOptions()
