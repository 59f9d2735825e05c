"""Which rows test, and which of the others a penalty is tried on: decided by the hash of the row number."""

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
    """`test` (n,) says which rows are held out; `hashes` (n,) order all of them at random."""

    test: npt.NDArray[np.bool_]
    hashes: Hashes
    given: bool

    @property
    def folds(self) -> npt.NDArray[np.intp]:
        """A fold for each row, (n,)."""
        return (self.hashes % np.uint64(FOLDS)).astype(np.intp)

    def some(self, of: npt.NDArray[np.bool_], most: int) -> npt.NDArray[np.intp]:
        """At most `most` of these rows, by the largest hashes, in row order."""
        rows = np.flatnonzero(of)
        if len(rows) > most:
            rows = np.sort(rows[np.argsort(self.hashes[rows])[-most:]])
        return rows


def split(n: int, seed: int, test: npt.NDArray[np.bool_] | None = None) -> Split:
    """Of n rows, the fifth with the largest hashes of (seed, row number), or those of a given column.

    A fit takes the smallest hashes: as long as it takes less than four fifths, it has seen none of the others.
    """
    hashes = row_hashes(seed, 0, n)
    if test is not None:
        return Split(test, hashes, True)
    held = np.zeros(n, dtype=bool)
    held[np.argsort(hashes)[n - max(2, int(_TEST_SHARE * n)) :]] = True
    return Split(held, hashes, False)
