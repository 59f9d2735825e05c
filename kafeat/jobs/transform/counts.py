"""What a transform did: sums over its chunks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kafeat.errors import GateError, quoted
from kafeat.io.storage.atomic import WrittenFile
from kafeat.jobs.transform.options import RowOptions
from kafeat.model.feature_map import FeatureMap
from kafeat.types import Array


@dataclass(frozen=True)
class TransformResult:
    """What a transform did.

    `clipped` values lay beyond what a step had seen, and were taken for the last it had. `bad_rows` of the `rows_read`
    were dropped or have null features. `drift` has the share of values outside of the fit's range for each feature of
    the input, if it was asked for. `rows_in_all` is what is known of the input, or estimated after `first_chunks`.
    """

    rows: int
    rows_read: int
    columns: int
    seconds: float
    clipped: int
    bad_rows: int
    drift: dict[str, float] | None
    rows_in_all: int | None
    input_sha256: str | None = None
    output_bytes: int | None = None
    output_sha256: str | None = None
    output_stamp: str | None = None


class Counts:
    """Sums over chunks."""

    def __init__(self, fm: FeatureMap, names: Sequence[str], rules: RowOptions) -> None:
        self._fm, self._names, self._rules = fm, names, rules
        self._read = self._clipped = self._bad = 0
        self.watches_drift = fm.seen is not None and (rules.drift or rules.max_drift is not None)
        self._outside = np.zeros(len(names), dtype=np.int64)
        self.input_sha256: str | None = None

    def add(self, rows: int, clipped: int, bad: int, outside: Array | None) -> None:
        self._read += rows
        self._clipped += clipped
        self._bad += bad
        if outside is not None:
            self._outside += outside

    def drift(self) -> dict[str, float] | None:
        if not self.watches_drift:
            return None
        good = max(1, self._read - self._bad)
        return {name: int(n) / good for name, n in zip(self._names, self._outside, strict=True)}

    def check(self, place: str, first: int | None) -> None:
        """Refuse too much drift of the input at that place, or of its rows from `first` on."""
        most, drift = self._rules.max_drift, self.drift()
        if most is None or drift is None:
            return
        beyond = sorted(((share, name) for name, share in drift.items() if share > most), reverse=True)
        if beyond:
            worst = ", ".join(f"{quoted(name)} {share:.2%}" for share, name in beyond[:3])
            more = f" and {len(beyond) - 3} more" if len(beyond) > 3 else ""
            where = "" if first is None else f"rows {first + 1:,} to {first + self._read:,}: "
            raise GateError(
                f"{place}: {where}expected at most {most:.2%} of a column outside of the range of the fit "
                f"(--max-drift), got {worst}{more}"
            )

    def done(self, seconds: float, rows_in_all: int | None, written: WrittenFile) -> TransformResult:
        rows = self._read - (self._bad if self._rules.on_bad_rows == "drop" else 0)
        width, drift = self._fm.n_components, self.drift()
        return TransformResult(
            rows,
            self._read,
            width,
            seconds,
            self._clipped,
            self._bad,
            drift,
            rows_in_all,
            self.input_sha256,
            written.bytes,
            written.sha256,
            written.stamp,
        )
