"""Which entries stand for a missing number: a null, an empty field, a NaN. Words and infinities do not."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from kafeat.io.numbers import is_text
from kafeat.types import Floats, Mask


def refused(values: pa.Array, width: int | None, numbers: Floats) -> Mask:
    """Entries of `numbers`, (n, k) as read from `values`, that are neither finite nor missing."""
    infinite = np.isinf(numbers)
    if width is not None:
        import pyarrow.compute as pc  # slow to import

        # A list that is null is missing as a whole; one of another length is a mistake.
        length = pc.fill_null(pc.list_value_length(values), width).to_numpy(zero_copy_only=False)
        wrong: Mask = infinite | (length != width)[:, None]
        return wrong
    plain = values.dictionary_decode() if pa.types.is_dictionary(values.type) else values
    if not is_text(plain.type):
        return infinite
    bad = np.isnan(numbers)
    rows = np.flatnonzero(bad[:, 0])
    for row, value in zip(rows, plain.take(pa.array(rows)).to_pylist(), strict=True):
        bad[row] = value is not None and value.strip().lower().lstrip("+-") not in ("", "nan")
    result: Mask = infinite | bad
    return result
