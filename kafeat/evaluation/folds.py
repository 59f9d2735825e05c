"""Test rows and cross-validation folds, chosen by the hash of the row number."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kafeat.maths.row_sample import Hashes, row_hashes

FOLDS = 3
# Share of the rows that models are tested on.
_TEST_SHARE = 0.2


@dataclass(frozen=True)
class Split:
    """The held-out rows `test` (n,), and `hashes` (n,) that order all rows at random."""

    test: npt.NDArray[np.bool_]
    hashes: Hashes
    given: bool

    @property
    def folds(self) -> npt.NDArray[np.intp]:
        """Return the fold of each row, (n,)."""
        return (self.hashes % np.uint64(FOLDS)).astype(np.intp)

    def some(self, of: npt.NDArray[np.bool_], most: int) -> npt.NDArray[np.intp]:
        """Return at most `most` of these rows, those with the largest hashes, in row order."""
        rows = np.flatnonzero(of)
        if len(rows) > most:
            rows = np.sort(rows[np.argsort(self.hashes[rows])[-most:]])
        return rows


def split(n: int, seed: int, test: npt.NDArray[np.bool_] | None = None) -> Split:
    """Hold out the fifth of n rows with the largest hashes of (seed, row number), or the rows in `test`.

    A fit takes the smallest hashes. If it takes less than four fifths of the rows, it has seen no test row.
    """
    hashes = row_hashes(seed, 0, n)
    if test is not None:
        return Split(test, hashes, True)
    held = np.zeros(n, dtype=bool)
    held[np.argsort(hashes)[n - max(2, int(_TEST_SHARE * n)) :]] = True
    return Split(held, hashes, False)
