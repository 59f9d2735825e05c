"""The label column, and the one that says which rows are to train on: refused where they say nothing."""

from __future__ import annotations

import numpy as np

from kafeat.config import Config
from kafeat.errors import DataError, UsageError, quoted, spell_row
from kafeat.io.kept_plain import decoded
from kafeat.io.numbers import is_number, is_text, to_doubles
from kafeat.io.source import Chunk
from kafeat.types import Array, Mask


def check_label(config: Config, label: object) -> None:
    """Refuse a config that needs a label where there is none: before the data are read."""
    if label is None and config.needs_label:
        place, purpose = next(iter(config.label_needs.items()))
        raise UsageError(f"{place}: expected a label {purpose} (--label COL), got none")


class Labels:
    """Reads the label of one chunk after the other: all of them are numbers, or all are text."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._first: tuple[str, str] | None = None

    def read(self, chunk: Chunk) -> Array:
        """The labels (rows,) of a chunk: finite numbers or text, none of them empty."""
        values = read_label(chunk, self._name)
        kind = "text" if values.dtype.kind == "O" else "numbers"
        expected, where = self._first = self._first or (kind, chunk.place)
        if kind != expected:
            raise DataError(
                f"{chunk.place}: label {quoted(self._name)}: expected {expected}, as {where} has, got {kind}"
            )
        return values


def read_label(chunk: Chunk, name: str) -> Array:
    """The labels (rows,) of one chunk."""
    values = _values(chunk, name)
    bad = ~np.isfinite(values) if values.dtype.kind == "f" else np.zeros(len(values), dtype=bool)
    if values.dtype.kind == "O":
        bad = np.array([not value.strip() for value in values], dtype=bool)
    if bad.any():
        row = int(np.argmax(bad))
        got = quoted(values[row]) if values.dtype.kind == "O" else f"{values[row]:g}"
        raise DataError(
            f"{chunk.place}: {spell_row(chunk.first_row + row)}, label {quoted(name)}: expected a value, got {got}"
        )
    return values


def _values(chunk: Chunk, name: str) -> Array:
    """Numbers, or an object array of str: what dictionaries and the like stand for."""
    if chunk.kept is None:
        raise KeyError(name)
    stored = chunk.kept.column(name)
    column = decoded(stored)
    if not (is_number(column.type) or is_text(column.type)):
        raise DataError(
            f"{chunk.place}: label {quoted(name)}: expected numbers or text, got {stored.type}; cast it first"
        )
    if column.null_count:
        row = int(np.argmax(column.is_null().to_numpy()))
        raise DataError(
            f"{chunk.place}: {spell_row(chunk.first_row + row)}, column {quoted(name)}: expected a value, got null"
        )
    values: Array = column.to_numpy()
    if values.dtype.kind == "O" and is_number(column.type):  # decimals
        return np.concatenate([to_doubles(part) for part in column.chunks])
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
