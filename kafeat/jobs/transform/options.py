"""Options of `kafeat transform` and `predict`, each declared once, and the rules for rows that are made from them.

The command's option and the documented keyword of Python are made from one declaration. The command line
imports this file for its help, so it imports nothing slow.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from kafeat.errors import UsageError
from kafeat.io.options import INTERVAL, JOBS, FeatureOptions, InputOptions, WritingOptions, option

if TYPE_CHECKING:
    from fractions import Fraction

    from kafeat.io.storage.base import Location
    from kafeat.model.feature_map import FeatureMap

Path: TypeAlias = "str | os.PathLike[str]"
BadRows: TypeAlias = Literal["error", "drop", "null"]


_RULES, _PARTS = "Bad rows and drift", "Many files and clusters"


@dataclass(frozen=True)
class Files:
    """The input and the output of a transform."""

    src: Path
    dst: Path
    _: KW_ONLY
    model: FeatureMap | Path


@dataclass(frozen=True, kw_only=True)
class RuleOptions:
    """Rules for bad rows and drift, as the user gives them."""

    on_bad_rows: BadRows = option(
        "error", "If a row cannot be transformed: fail, omit the row, or write null features (NaN in NPY).",
        group=_RULES, choices=get_args(BadRows),
    )  # fmt: skip
    max_drift: float | None = option(
        None,
        "Write nothing (exit code 6) if a larger share of a column lies outside the range of the training rows.",
        python="Largest share of values of a column outside the range of the training rows; above it nothing is "
        "written.",
        group=_RULES, rare=True, metavar="SHARE", least=0.0, most=1.0,
    )  # fmt: skip
    drift_test: float | None = option(
        None,
        "Write nothing (exit code 6) if the features' mean differs from the training rows' with a p-value below P.",
        python="Least p-value of a test that the mean of the features is that of the training rows; below it nothing "
        "is written.",
        group=_RULES, rare=True, metavar="P", least=0.0, most=1.0,
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class PredictOptions(RuleOptions, WritingOptions, InputOptions, Files):
    """Files and options of `kafeat predict`, as the user gives them."""

    keep: str | Sequence[str] = option(
        (), "Input columns to copy to the output, separated by commas, or `all`.",
        python='Input columns to copy to the output: names, or "all".', metavar="COLS",
    )  # fmt: skip
    interval: float | Sequence[float] = option((), INTERVAL)
    jobs: int | None = option(None, JOBS)
    rejects: Path | None = option(
        None, "Write the bad rows and the reason for each.",
        python="CSV file for the bad rows and the reason for each.", group=_RULES, metavar="FILE.csv", use="output",
    )  # fmt: skip
    max_bad_rows: int | str | None = option(
        None,
        "Write nothing (exit code 3) if more than N rows, or P percent of the rows, of an input are bad.",
        python='Largest number of bad rows, or percentage such as "0.5%", of each input; above it nothing is written.',
        group=_RULES,
        rare=True,
        metavar="N|P%",
    )
    stats: Path | None = option(
        None, "Write statistics of the run: rows, hashes, drift, versions.",
        python="JSON file for statistics of the run: rows, hashes, drift, versions.",
        group="Output", metavar="FILE.json", use="output",
    )  # fmt: skip
    metrics: Path | None = option(
        None, "Write numbers of the run for Prometheus' node exporter, also if it fails: state, rows, seconds, drift.",
        python="File for numbers of the run, in the text format of Prometheus' node exporter, also if it fails.",
        group="Output", rare=True, metavar="FILE.prom", use="output",
    )  # fmt: skip
    overwrite: bool | None = option(
        None,
        "Replace an existing OUT (default for a file), or fail if it exists (default for a folder with files).",
        python="True replaces an existing output, False refuses to; None replaces a file and refuses a folder with "
        "files.", group="Output", names=("--overwrite/--no-clobber",),
    )  # fmt: skip
    rows_per_file: int | None = option(
        None,
        "Split IN into parts of at most N rows (whole chunks of the map) and write them to the folder OUT.",
        python="Largest number of rows of a part, to cut one file into parts of whole chunks; None does not cut it.",
        group=_PARTS, metavar="N",
    )  # fmt: skip
    resume: bool = option(False, "Keep parts of a previous run if nothing changed.", group=_PARTS)
    max_failures: int | None = option(
        None,
        "Stop when more than N parts have failed (default: when the first 11 parts fail in the same way).",
        group=_PARTS, rare=True, metavar="N", least=0,
    )  # fmt: skip
    engine: str = option(
        "threads", "Engine that transforms the parts: threads, processes or dask.",
        group=_PARTS, rare=True, metavar="NAME",
    )  # fmt: skip
    scheduler: str | None = option(
        None,
        "Address of a Dask scheduler (tcp://host:8786).",
        group=_PARTS,
        rare=True,
        metavar="URL",
    )


@dataclass(frozen=True, kw_only=True)
class TransformOptions(FeatureOptions, PredictOptions):
    """Files and options of `kafeat transform`, as the user gives them."""


FOR_PARTS = ("engine", "scheduler", "resume", "max_failures")
"""Options that have no effect on a single file."""

_FORM = re.compile(r"(\d+(?:\.\d+)?)%|\d+", re.ASCII)


@dataclass(frozen=True)
class BadRowsLimit:
    """The largest number or percentage of rows that may be bad. `text` is what the user wrote."""

    text: str
    number: Fraction
    is_percentage: bool

    @classmethod
    def parse(cls, given: object) -> BadRowsLimit:
        """Read a whole number, or a text such as `10` or `0.5%`."""
        from fractions import Fraction

        text = "" if isinstance(given, bool) else str(given).strip()
        form = _FORM.fullmatch(text)
        percentage = form and form[1]
        if form is None or (percentage and Fraction(percentage) > 100):
            raise UsageError(
                f"--max-bad-rows: expected a number of rows such as 10, or a percentage such as 0.5%, got {given!r}"
            )
        return cls(text, Fraction(percentage or text), bool(percentage))

    def allows(self, bad: int, rows: int) -> bool:
        """Return true if the limit allows this number of bad rows among this number of rows."""
        return bad <= (self.number * rows / 100 if self.is_percentage else self.number)


@dataclass(frozen=True, kw_only=True)
class RowOptions(RuleOptions):
    """Rules for rows that cannot be transformed, and for inputs that have drifted.

    With `drift`, values outside the ranges of the training rows are counted, even if `max_drift` sets no limit.
    """

    rejects: Location | None = None
    drift: bool = False
    max_bad_rows: BadRowsLimit | None = None

    def check(self, fm: FeatureMap) -> None:
        """Refuse rules that contradict each other or that the map cannot follow."""
        if self.drift_test is not None and fm.feature_mean is None:
            raise UsageError(
                "--drift-test: expected a map that knows the mean of its features, got an older one: fit it again"
            )
        for name, value in (("--rejects", self.rejects), ("--max-bad-rows", self.max_bad_rows)):
            if value is not None and self.on_bad_rows == "error":
                raise UsageError(f"{name}: expected --on-bad-rows drop or null with it, got error")
        if self.max_drift is not None and fm.column_ranges is None:
            raise UsageError(
                "--max-drift: expected a map that knows the range of its columns, got an older one: fit it again"
            )


STRICT = RowOptions()
