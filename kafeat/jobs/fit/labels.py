"""Read and check labels, and the column of train and test rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from numbers import Real

import numpy as np

from kafeat.config import Config
from kafeat.errors import DataError, UsageError, quoted, spell_row
from kafeat.io.columns.numbers import is_number, is_text, to_doubles
from kafeat.io.readers.base import Chunk
from kafeat.io.writers.passthrough import decoded
from kafeat.types import Array, Mask

LabelNames = tuple[str, ...]
"""The names of the label columns, which are no features; empty if there are none."""

LabelArgument = str | Sequence[str] | Array | None
"""The name of a label column, names of several, or labels in memory: (n_rows,), or (n_rows, k) of numbers."""


def label_argument(label: object, rows: int | None) -> LabelArgument:
    """Return a label as it is given in Python as names or as an array.

    A list of text names columns, unless it has as many entries as there are rows.
    """
    if label is None or isinstance(label, str):
        return label
    if isinstance(label, list | tuple) and label and all(isinstance(one, str) for one in label):
        return np.asarray(label) if len(label) == rows else tuple(label)
    return np.asarray(label)


def label_names(label: LabelArgument) -> LabelNames:
    """Return the names of the label columns, and refuse a name that is given twice."""
    if label is None or isinstance(label, np.ndarray):
        return ()
    names = (label,) if isinstance(label, str) else tuple(label)
    twice = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if twice is not None:
        raise UsageError(f"label: expected each column once, got {quoted(twice)} twice")
    return names


def plain_names(names: LabelNames) -> str | list[str] | None:
    """Return label columns as records hold them: one name alone, several in a list."""
    if len(names) < 2:
        return names[0] if names else None
    return list(names)


def label_values(label: LabelArgument) -> Array | None:
    """Return labels that are given in memory."""
    return label if isinstance(label, np.ndarray) else None


def check_label(config: Config, label: LabelArgument) -> None:
    """Refuse a config that needs a label if there is none, before the data are read."""
    if label_values(label) is None and not label_names(label) and config.needs_label:
        place, purpose = next(iter(config.label_needs.items()))
        raise UsageError(f"{place}: expected a label {purpose} (--label COL), got none")


def check_label_array(labels: Array, rows: int | None) -> Array:
    """Return labels of (rows,) numbers or text, or (rows, k) of finite numbers, and refuse any other array."""
    if labels.dtype.kind == "O" and labels.ndim == 1:
        labels = _objects(labels)
    numbers = labels.dtype.kind in "fiub"
    if labels.shape[:1] != (rows,) or labels.ndim > 2 or (labels.ndim == 2 and not (numbers and labels.size)):
        wanted = f"({rows},)" if labels.ndim < 2 or not numbers else f"({rows},), or ({rows}, k) of numbers"
        raise UsageError(f"label: expected an array of shape {wanted}, got {labels.shape}")
    bad = ~np.isfinite(labels).all(axis=tuple(range(1, labels.ndim))) if labels.dtype.kind == "f" else None
    if bad is not None and bad.any():
        raise DataError(f"label: {spell_row(int(bad.argmax()))}: expected finite numbers, got nan or inf")
    if not numbers and labels.dtype.kind not in "OU":
        raise DataError(f"label: expected numbers or text, got an array of {labels.dtype}")
    blank = np.char.strip(labels.astype(str)) == "" if not numbers else np.zeros(1, dtype=bool)
    if blank.any():
        row = int(blank.argmax())
        raise DataError(f"label: {spell_row(row)}: expected a value, got {quoted(str(labels[row]))}")
    return labels


def _objects(labels: Array) -> Array:
    """Return an array of objects that are all numbers as float64, or as it is if all are text."""
    expected = str if len(labels) and isinstance(labels[0], str) else Real | Decimal | np.bool_
    for row, value in enumerate(labels):
        if not isinstance(value, expected):
            wanted = "text" if expected is str else "numbers or text"
            raise DataError(f"label: {spell_row(row)}: expected {wanted}, got {value!r}")
    return labels if expected is str else labels.astype(np.float64)


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


class LabelColumns:
    """A reader of one label column or several, chunk after chunk. Several hold numbers."""

    def __init__(self, names: LabelNames) -> None:
        self._columns = {name: Labels(name) for name in names}

    def read(self, chunk: Chunk) -> Array:
        """Return the labels of a chunk: (rows,), or (rows, k) in float64 for k columns."""
        columns = {name: labels.read(chunk) for name, labels in self._columns.items()}
        return joint_labels(columns, chunk.location)


def joint_labels(columns: Mapping[str, Array], location: str) -> Array:
    """Return k label columns of numbers as one array (rows, k) in float64, or the only column as it is."""
    if len(columns) == 1:
        return next(iter(columns.values()))
    text = next((name for name, values in columns.items() if values.dtype.kind == "O"), None)
    if text is not None:
        raise DataError(
            f"{location}: label {quoted(text)}: expected numbers, as there are {len(columns)} labels, got text; fit a "
            "map for this label alone"
        )
    return np.column_stack([values.astype(np.float64) for values in columns.values()])


def read_label(chunk: Chunk, name: str, role: str = "label") -> Array:
    """Return the labels (rows,) of one chunk, or a column of another `role`, which messages name."""
    values = _values(chunk, name, role)
    bad = ~np.isfinite(values) if values.dtype.kind == "f" else np.zeros(len(values), dtype=bool)
    if values.dtype.kind == "O":
        bad = np.array([not value.strip() for value in values], dtype=bool)
    if bad.any():
        row = int(np.argmax(bad))
        got = quoted(values[row]) if values.dtype.kind == "O" else f"{values[row]:g}"
        raise DataError(
            f"{chunk.location}: {spell_row(chunk.first_row + row)}, {role} {quoted(name)}: expected a value, got "
            f"{got}: remove such rows first"
        )
    return values


def _values(chunk: Chunk, name: str, role: str) -> Array:
    """Return a column as numbers or as an object array of str, with dictionaries decoded."""
    if chunk.passthrough is None:
        raise KeyError(name)
    stored = chunk.passthrough.column(name)
    column = decoded(stored)
    if not (is_number(column.type) or is_text(column.type)):
        raise DataError(
            f"{chunk.location}: {role} {quoted(name)}: expected numbers or text, got {stored.type}; cast it first"
        )
    if column.null_count:
        row = int(np.argmax(column.is_null().to_numpy()))
        raise DataError(
            f"{chunk.location}: {spell_row(chunk.first_row + row)}, {role} {quoted(name)}: expected a value, got null: "
            "remove such rows first"
        )
    values: Array = column.to_numpy()
    if values.dtype.kind == "O" and is_number(column.type):  # decimals
        return np.concatenate([to_doubles(part) for part in column.chunks])
    return values


def read_test_rows(chunk: Chunk, name: str) -> Mask:
    """Return true for the test rows of a chunk, by a column of train and test."""
    values = read_label(chunk, name, "split")
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


def check_split(split: str | None, labels: Sequence[str]) -> None:
    """Refuse one column for both a label and the split."""
    if split is not None and split in labels:
        raise UsageError(f"split: expected another column than the label, got {split}")
