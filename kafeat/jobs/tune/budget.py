"""The number of output columns, or a bound of the bytes of a row."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from kafeat.errors import UsageError

# Columns to search with if their number is open; the best map is tried with fewer and with twice as many.
_SEARCHED = 512
_LEAST = 16

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}


def seconds_of(time: float | str | None) -> float | None:
    """Return the seconds of a duration: a number, or text such as `90`, `90s`, `10m` or `1.5h`."""
    if time is None:
        return None
    seconds = math.nan
    with suppress(TypeError, ValueError):
        unit = _UNITS.get(time[-1:]) if isinstance(time, str) else None
        seconds = float(time) if unit is None else float(time[:-1]) * unit  # type: ignore[index]  # of a text
    if not 0.0 < seconds < math.inf:
        raise UsageError(
            f"time: expected a duration above 0, such as 90 (seconds), 90s, 10m or 1h, got {time!r}"
        )
    return seconds


@dataclass(frozen=True)
class Budget:
    """The number of columns, or None to choose it, and a bound of the bytes of a row; None is no bound."""

    columns: int | None = None
    bytes_per_row: int | None = None

    def check(self, dtype: str) -> None:
        """Refuse numbers that no map can have."""
        if self.columns is not None and self.columns < 2:
            raise UsageError(f"columns: expected at least 2, got {self.columns}")
        most, item = self.most_columns(dtype), np.dtype(dtype).itemsize
        if most is not None and most < (self.columns or 2):
            raise UsageError(
                f"max_bytes_per_row: expected at least {item * (self.columns or 2):,} for {self.columns or 2:,} "
                f"columns of {dtype}, got {self.bytes_per_row}"
            )

    def most_columns(self, dtype: str) -> int | None:
        """Return the number of columns whose bytes are within the bound, None without one."""
        return None if self.bytes_per_row is None else self.bytes_per_row // np.dtype(dtype).itemsize

    def searched(self, dtype: str) -> int:
        """Return the number of columns to search with."""
        return self.columns or min(_SEARCHED, self.most_columns(dtype) or _SEARCHED)

    def widths(self, dtype: str, rows: int) -> list[int]:
        """Return the numbers of columns to try the best map with, ascending, as it is fitted on this many rows.

        A map of a kernel has no more columns than rows.
        """
        searched, most = self.searched(dtype), self.most_columns(dtype)
        fewer = [searched >> k for k in range(4, 0, -1) if searched >> k >= _LEAST]
        wider = 2 * searched if most is None else min(2 * searched, most)
        more = [wider] if self.columns is None and wider > searched else []
        return [width for width in (*fewer, searched, *more) if width <= rows or width == searched]

    def later_trials(self, with_curve: bool) -> float:
        """Return about the time of the trials at other widths, as a multiple of that of a trial of the searched one."""
        if self.columns is not None:
            return 1.0 if with_curve else 0.0
        return 4.0

    def spelled(self) -> str:
        """Return the options of the command, as far as they are not the defaults."""
        options = (("--columns", self.columns), ("--max-bytes-per-row", self.bytes_per_row))
        return "".join(f"{name} {value:g} " for name, value in options if value is not None)
