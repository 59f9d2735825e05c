"""The label column, and the one that says which rows are to train on: refused where they say nothing."""

from __future__ import annotations

import numpy as np

from kafeat.config import Config
from kafeat.errors import DataError, UsageError, quoted, spell_row
from kafeat.io.source import Chunk
from kafeat.types import Array, Mask


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


def read_test_rows(chunk: Chunk, name: str) -> Mask:
    """Which rows of a chunk the column of train and test says to be test rows."""
    values = read_label(chunk, name)
    test, odd = tested(values)
    if odd is not None:
        raise DataError(
            f"{chunk.place}: {spell_row(chunk.first_row + odd)}, split {quoted(name)}: expected train or test, got "
            f"{spell_value(values[odd])}"
        )
    return test


def tested(values: Array) -> tuple[Mask, int | None]:
    """Which of these say test, and the first that says neither test nor train; capitals do not matter."""
    text = np.char.lower(values.astype(str))
    test: Mask = text == "test"
    told = test | (text == "train")
    return test, None if told.all() else int(np.argmin(told))


def spell_value(value: object) -> str:
    """A value of a column of train and test, for messages."""
    return repr(value.item() if isinstance(value, np.generic) else value)


def check_split(split: str | None, label: object) -> None:
    """Refuse a column that is to be both the label and the one of train and test."""
    if split is not None and split == label:
        raise UsageError(f"split: expected another column than the label, got {split}")
