"""The number of columns of the features, given or to be chosen, and the bound on their bytes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kafeat.errors import UsageError
from kafeat.study.tune.trials import Trial

# Columns to search with if their number is open. The best map is also tried with fewer and with twice as many.
_SEARCHED = 512
_LEAST = 16


@dataclass(frozen=True)
class Budget:
    """The number of columns, or None to choose it, and a bound on the bytes per row in `dtype`, or None."""

    columns: int | None = None
    bytes_per_row: int | None = None
    dtype: str = "float32"

    def check(self) -> None:
        """Refuse numbers that no map can have."""
        least = self.columns or 2
        if self.most_columns is not None and self.most_columns < least:
            raise UsageError(
                f"max_bytes_per_row: expected at least {np.dtype(self.dtype).itemsize * least:,} for {least:,} "
                f"columns of {self.dtype}, got {self.bytes_per_row}"
            )

    @property
    def most_columns(self) -> int | None:
        """The number of columns whose bytes are within the bound, or None without one."""
        return None if self.bytes_per_row is None else self.bytes_per_row // np.dtype(self.dtype).itemsize

    @property
    def searched(self) -> int:
        """The number of columns to search with."""
        return self.columns or min(_SEARCHED, self.most_columns or _SEARCHED)

    def widths(self, rows: int) -> list[int]:
        """Return the numbers of columns to try the best map with, ascending, for this many training rows.

        A kernel map has no more columns than rows.
        """
        searched, wider = self.searched, 2 * self.searched
        fewer = [searched >> k for k in range(4, 0, -1) if searched >> k >= _LEAST]
        wider = wider if self.most_columns is None else min(wider, self.most_columns)
        more = [wider] if self.columns is None and wider > searched else []
        return [width for width in (*fewer, searched, *more) if width <= rows or width == searched]

    def allows(self, trial: Trial) -> bool:
        """Return true if a map is within the bounds. Only raw columns may exceed `columns`."""
        bounds = [self.most_columns, self.columns if trial.candidate.map == "raw" else None]
        return all(bound is None or trial.outcome.columns <= bound for bound in bounds)
