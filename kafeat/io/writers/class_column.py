"""A column of predicted classes, which is written beside the passthrough columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from kafeat.io.writers.arrow_columns import with_nulls
from kafeat.types import Floats, Mask


class ClassColumn:
    """The column `name` of predicted classes, in their own type: text, whole numbers, numbers or booleans."""

    def __init__(self, name: str, classes: Sequence[Any]) -> None:
        self._classes = pa.array(classes)
        self._field = pa.field(name, self._classes.type)

    def schema(self, passthrough: pa.Schema | None) -> pa.Schema:
        """Return the schema of the passthrough columns with this column behind them."""
        return pa.schema([self._field]) if passthrough is None else passthrough.append(self._field)

    def table(self, passthrough: pa.Table | None, probabilities: Floats) -> pa.Table:
        """Return the passthrough columns with the class of the largest probability (n, c); null in a row of NaN."""
        missing: Mask = np.isnan(probabilities[:, 0])
        column = self._classes.take(with_nulls(probabilities.argmax(axis=1), missing))
        if passthrough is None:
            return pa.Table.from_arrays([column], schema=pa.schema([self._field]))
        return passthrough.append_column(self._field, column)
