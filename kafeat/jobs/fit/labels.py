"""Read and check labels, and the column of train and test rows."""

from __future__ import annotations

import numpy as np

from kafeat.config import Config
from kafeat.errors import DataError, UsageError, quoted, spell_row
from kafeat.io.columns.numbers import is_number, is_text, to_doubles
from kafeat.io.readers.base import Chunk
from kafeat.io.writers.passthrough import decoded
from kafeat.types import Array, Mask


def check_label(config: Config, label: object) -> None:
    """Refuse a config that needs a label if there is none, before the data are read."""
    if label is None and config.needs_label:
        place, purpose = next(iter(config.label_needs.items()))
        raise UsageError(f"{place}: expected a label {purpose} (--label COL), got none")


class Labels:
    """A reader of labels, chunk after chunk, that refuses a mix of numbers and text."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._first: tuple[str, str] | None = None

    def read(self, chunk: Chunk) -> Array:
        """Return the labels (rows,) of a chunk: finite numbers or text, none of them empty."""
        values = read_label(chunk, self._name)
        kind = "text" if values.dtype.kind == "O" else "numbers"
        expected, where = self._first = self._first or (kind, chunk.location)
        if kind != expected:
            raise DataError(
                f"{chunk.location}: label {quoted(self._name)}: expected {expected}, as {where} has, got {kind}"
            )
        return values


def read_label(chunk: Chunk, name: str) -> Array:
    """Return the labels (rows,) of one chunk."""
    values = _values(chunk, name)
    bad = ~np.isfinite(values) if values.dtype.kind == "f" else np.zeros(len(values), dtype=bool)
    if values.dtype.kind == "O":
        bad = np.array([not value.strip() for value in values], dtype=bool)
    if bad.any():
        row = int(np.argmax(bad))
        got = quoted(values[row]) if values.dtype.kind == "O" else f"{values[row]:g}"
        raise DataError(
            f"{chunk.location}: {spell_row(chunk.first_row + row)}, label {quoted(name)}: expected a value, got {got}"
        )
    return values


def _values(chunk: Chunk, name: str) -> Array:
    """Return a column as numbers or as an object array of str, with dictionaries decoded."""
    if chunk.passthrough is None:
        raise KeyError(name)
    stored = chunk.passthrough.column(name)
    column = decoded(stored)
    if not (is_number(column.type) or is_text(column.type)):
        raise DataError(
            f"{chunk.location}: label {quoted(name)}: expected numbers or text, got {stored.type}; cast it first"
        )
    if column.null_count:
        row = int(np.argmax(column.is_null().to_numpy()))
        raise DataError(
            f"{chunk.location}: {spell_row(chunk.first_row + row)}, column {quoted(name)}: expected a value, got null"
        )
    values: Array = column.to_numpy()
    if values.dtype.kind == "O" and is_number(column.type):  # decimals
        return np.concatenate([to_doubles(part) for part in column.chunks])
    return values


def read_test_rows(chunk: Chunk, name: str) -> Mask:
    """Return true for the test rows of a chunk, by a column of train and test."""
    values = read_label(chunk, name)
    test, odd = parse_test_rows(values)
    if odd is not None:
        raise DataError(
            f"{chunk.location}: {spell_row(chunk.first_row + odd)}, split {quoted(name)}: expected train or test, got "
            f"{spell_value(values[odd])}"
        )
    return test


def parse_test_rows(values: Array) -> tuple[Mask, int | None]:
    """Return true for each test row, and the first row that is neither test nor train; case is ignored."""
    text = np.char.lower(values.astype(str))
    test: Mask = text == "test"
    valid = test | (text == "train")
    return test, None if valid.all() else int(np.argmin(valid))


def spell_value(value: object) -> str:
    """Return a value of a column of train and test as text, for messages."""
    return repr(value.item() if isinstance(value, np.generic) else value)


def check_split(split: str | None, label: object) -> None:
    """Refuse one column for both the label and the split."""
    if split is not None and split == label:
        raise UsageError(f"split: expected another column than the label, got {split}")
