"""Compare the labels of a LIBSVM output with the column of the input that they were copied from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from kafeat.errors import GateError, spell_row
from kafeat.io.writers.passthrough import decoded
from kafeat.io.writers.passthrough_compare import KeptRows


@dataclass(frozen=True)
class LibsvmLabels:
    """The labels of one output. They are numbers whose column LIBSVM does not name; without a column they are 0."""

    location: str

    def comparable(
        self, expected: KeptRows | None, got: KeptRows, at: int
    ) -> tuple[KeptRows | None, KeptRows]:
        """Return both in the type of the input, in which they were written; `at` is the first row.

        A label that is not 0 is refused if `expected` is None, as nothing tells what it should be.
        """
        if expected is None:
            self._refuse_unknown(got, at)
            return None, got
        ours = _comparable(decoded(expected.column(0)))
        theirs = got.column(0).cast(ours.type, safe=False)
        return pa.table({"label": ours}), pa.table({"label": theirs})

    def _refuse_unknown(self, got: KeptRows, at: int) -> None:
        labels = got.column(0).to_numpy()
        other = np.flatnonzero(labels != 0)
        if len(other):
            raise GateError(
                f"{self.location}: {spell_row(at + int(other[0]))}: expected the label 0, as no column of the input is "
                f"named, got {labels[other[0]]:g}; name the column that `transform --keep` copied with --label"
            )


def _comparable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return numbers in a type that holds them exactly and that numbers of text can be rounded to."""
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    if pa.types.is_integer(column.type):  # LIBSVM labels are below 2**53
        return column.cast(pa.float64(), safe=False)
    return column.cast(pa.float32()) if pa.types.is_float16(column.type) else column
