"""What a user says of a transform: how files are read and written, and what becomes of bad rows."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Literal

from kafeat.errors import UsageError
from kafeat.io.readers.base import Reader
from kafeat.io.readers.dataset import open_data
from kafeat.io.readers.limit import LimitedReader
from kafeat.io.storage.atomic import Guard
from kafeat.model.feature_map import FeatureMap


@dataclass(frozen=True)
class InputOptions:
    """How a file is read, or the files of a data set, and how many rows of it (None: all)."""

    format: str | None = None
    delimiter: str = ","
    header: bool = True
    limit: int | None = None

    def open(self, place: str, stamp: str | None = None) -> Reader:
        """The source of that name; `stamp` is that of a file which was looked at before."""
        source = open_data(place, self.format, delimiter=self.delimiter, header=self.header, stamp=stamp)
        return source if self.limit is None else LimitedReader(source, self.limit)


@dataclass(frozen=True)
class OutputOptions:
    """How a file is written. `keep` names the columns to copy; None keeps all of them. `dtype` None is the map's.

    `sweep`: what killed writers of the same file have left beside it is removed. `guard` is held while it gets its
    name, and may refuse to.
    """

    format: str | None = None
    keep: Sequence[str] | None = ()
    layout: Literal["columns", "list", "tensor"] = "columns"
    prefix: str | None = None
    compression: str | None = None
    overwrite: bool = True
    fsync: bool = True
    dtype: Literal["float16", "float32", "float64"] | None = None
    sweep: bool = True
    guard: Guard = nullcontext


@dataclass(frozen=True)
class RowOptions:
    """What becomes of rows that cannot be transformed, and of inputs that have drifted away.

    `on_bad_rows`: an error; dropped; or null features (NaN in NPY). `rejects` names the CSV that tells the rows.
    `drift` counts the values outside of the range that the fit has seen; more than the share `max_drift` of a column
    is an error.
    """

    on_bad_rows: Literal["error", "drop", "null"] = "error"
    rejects: str | None = None
    drift: bool = False
    max_drift: float | None = None

    def check(self, fm: FeatureMap) -> None:
        """Refuse what cannot be."""
        if self.max_drift is not None and not 0.0 <= self.max_drift <= 1.0:
            raise UsageError(f"--max-drift: expected a share from 0 to 1, got {self.max_drift}")
        if self.rejects is not None and self.on_bad_rows == "error":
            raise UsageError("--rejects: expected --on-bad-rows drop or null with it, got error")
        if self.max_drift is not None and fm.seen is None:
            raise UsageError(
                "--max-drift: expected a map that knows the range of its columns, got an older one: fit it again"
            )


STRICT = RowOptions()
