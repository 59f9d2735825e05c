"""The label column: needed by some configs, and refused where it says nothing."""

from __future__ import annotations

import numpy as np

from kafeat.config import Config
from kafeat.errors import DataError, UsageError, quoted, spell_row
from kafeat.io.source import Chunk
from kafeat.types import Array


def check_label(config: Config, label: object) -> None:
    """Refuse a config that needs a label where there is none: before the data are read."""
    if label is None and config.needs_label:
        place, purpose = next(iter(config.label_needs.items()))
        raise UsageError(f"{place}: expected a label {purpose} (--label COL), got none")


def read_label(chunk: Chunk, name: str) -> Array:
    """The labels (rows,) of a chunk: finite numbers or text, none of them empty."""
    values = chunk.values(name)
    if values.dtype.kind == "f":
        bad = ~np.isfinite(values)
    elif values.dtype.kind == "O":
        other = next((value for value in values if not isinstance(value, str)), None)
        if other is not None:
            raise DataError(
                f"{chunk.place}: label {quoted(name)}: expected numbers or text, got {type(other).__name__}"
            )
        bad = np.array([not value.strip() for value in values], dtype=bool)
    else:
        return values
    if bad.any():
        row = int(np.argmax(bad))
        got = quoted(values[row]) if values.dtype.kind == "O" else f"{values[row]:g}"
        raise DataError(
            f"{chunk.place}: {spell_row(chunk.first_row + row)}, label {quoted(name)}: expected a value, got {got}"
        )
    return values
