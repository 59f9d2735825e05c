"""Read and check labels and the column of train and test rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from numbers import Integral, Real
from typing import Any

import numpy as np

from kafeat.config import Config
from kafeat.errors import DataError, UsageError, quoted, spell_row
from kafeat.io.columns.fields import listed, null_options
from kafeat.io.columns.values import column_values, different_decimals, null_rows
from kafeat.io.readers.base import Chunk
from kafeat.io.readers.memory import array_of
from kafeat.io.readers.table import TableChunk
from kafeat.maths.task import MOST_CLASSES, TaskKind, class_numbers, classes_of_columns, joined
from kafeat.types import Array, Floats, Mask

LabelNames = tuple[str, ...]
"""The names of the label columns, which are not features. Empty if there are none."""

LabelArgument = str | Sequence[str] | Array | None
"""The name of a label column, names of several, or labels in memory: (n_rows,), or numbers (n_rows, k)."""


class ProbabilityColumns(tuple[str, ...]):
    """Names of label columns that hold the probabilities of classes, in the order of the classes."""

    __slots__ = ()


# The sum of rounded probabilities may differ from 1 by this much.
_SUM_WITHIN = 0.01


def label_of_task(label: LabelArgument, task: TaskKind) -> LabelArgument:
    """Return the label for a task. For `soft`, check and scale probabilities. For other tasks, change nothing."""
    if task != "soft" or not has_label(label):
        return label
    if isinstance(label, np.ndarray):
        if label.ndim < 2 or label.shape[1] < 2 or label.dtype.kind not in "fiub":
            raise UsageError(
                f"label: expected an array ({len(label)}, k) of the probabilities of k classes with `task: soft`, got "
                f"{label.shape} of {label.dtype}"
            )
        return _probabilities(label, "label", int)
    names = label_names(label)
    if len(names) < 2:
        raise UsageError(
            "label: expected several columns with `task: soft`, one with the probabilities of each class (--label p_a "
            f"--label p_b), got only {quoted(names[0])}"
        )
    return ProbabilityColumns(name for _, name in sorted(zip(classes_of_columns(names), names, strict=True)))


def _probabilities(values: Array, place: str, row_number: Callable[[int], int]) -> Floats:
    """Return probabilities (n, k), each row divided by its sum. Refuse numbers that are not probabilities."""
    values = np.ascontiguousarray(values, np.float64)  # the rounding of sums depends on the order in memory
    sums = values.sum(axis=1)
    bad = (values < 0.0).any(axis=1) | ~(np.abs(sums - 1.0) <= _SUM_WITHIN + 1e-9)
    if bad.any():
        row = int(bad.argmax())
        raise DataError(
            f"{place}: {spell_row(row_number(row))}: expected probabilities of at least 0 with the sum 1 (within "
            f"{_SUM_WITHIN:g}), got {values[row].min():.4g} to {values[row].max():.4g} with the sum {sums[row]:.4g}: "
            "give the column of every class, and divide each row by its sum"
        )
    return np.asarray(values / sums[:, None])


def label_argument(label: object, rows: int | None) -> LabelArgument:
    """Return a label that was given in Python as names or as an array.

    A list of text names columns. A list with as many entries as there are rows holds the labels.
    """
    if label is None or isinstance(label, str):
        return label
    if isinstance(label, list | tuple) and label and not isinstance(label[0], list | tuple | np.ndarray):
        if len(label) != rows and all(isinstance(one, str) for one in label):
            return tuple(label)
        # An array of one type would merge 1 and True, or 2⁵³ and 2⁵³ + 1.
        label = np.fromiter(label, object, len(label))
    return check_label_array(array_of(label, "label"), rows)


def label_names(label: LabelArgument) -> LabelNames:
    """Return the names of the label columns, and refuse a name that is given twice."""
    if label is None or isinstance(label, np.ndarray):
        return ()
    if isinstance(label, ProbabilityColumns):
        return label
    names = (label,) if isinstance(label, str) else tuple(label)
    twice = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if twice is not None:
        raise UsageError(f"label: expected each column once, got {quoted(twice)} twice")
    return names


def plain_names(names: LabelNames) -> str | list[str] | None:
    """Return label columns for JSON and model files: one name as text, several as a list, and None for none."""
    if len(names) < 2:
        return names[0] if names else None
    return list(names)


def has_label(label: LabelArgument) -> bool:
    """Return true if there is a label: an array in memory, or one or more label columns."""
    return isinstance(label, np.ndarray) or bool(label_names(label))


def check_label(config: Config, label: LabelArgument) -> None:
    """Refuse a config that needs a label if there is none, before the data are read."""
    if config.needs_label and not has_label(label):
        place, purpose = next(iter(config.label_needs.items()))
        raise UsageError(f"{place}: expected a label {purpose} (--label COL), got none")


def check_label_array(labels: Array, rows: int | None) -> Array:
    """Return an array of labels: (rows,) numbers or texts, or (rows, k) finite numbers. Refuse any other array."""
    if labels.dtype.kind in "OUT" and labels.ndim == 1:
        labels = _objects(labels.astype(object))
    numbers = labels.dtype.kind in "fiub"
    if labels.shape[:1] != (rows,) or labels.ndim > 2 or (labels.ndim == 2 and not (numbers and labels.size)):
        wanted = f"({rows},)" if labels.ndim < 2 or not numbers else f"({rows},), or ({rows}, k) of numbers"
        raise UsageError(f"label: expected an array of shape {wanted}, got {labels.shape}")
    if not numbers and labels.dtype.kind != "O":
        raise DataError(f"label: expected numbers or text, got an array of {labels.dtype}")
    bad = _first_bad(labels)
    if bad is not None:
        wanted = "finite numbers, got nan or inf" if numbers else f"a value, got {quoted(labels[bad])}"
        raise DataError(f"label: {spell_row(bad)}: expected {wanted}")
    return plain_labels(labels)


def _first_bad(labels: Array) -> int | None:
    """Return the first row whose number is not finite or whose text is empty. None if there is no such row."""
    bad = np.zeros(len(labels), dtype=bool)
    if labels.dtype.kind == "f":
        bad = np.asarray(~np.isfinite(labels).all(axis=tuple(range(1, labels.ndim))))
    elif labels.dtype.kind == "O":
        blank = {word for word in set(labels.tolist()) if not word.strip()}
        bad = np.array([label in blank for label in labels], dtype=bool)
    return int(bad.argmax()) if bad.any() else None


def _objects(labels: Array) -> Array:
    """Return an array of objects as numbers if all are numbers, or unchanged if all are text."""
    expected = str if len(labels) and isinstance(labels[0], str) else Real | Decimal | np.bool_
    for row, value in enumerate(labels):
        if not isinstance(value, expected):
            wanted = "text" if expected is str else "numbers or text"
            raise DataError(f"label: {spell_row(row)}: expected {wanted}, got {value!r}")
    if expected is str:
        return labels
    values = labels.tolist()
    if all(isinstance(one, bool | np.bool_) for one in values):
        return labels.astype(bool)
    if all(isinstance(one, Integral | np.bool_) for one in values):
        least, most = min(map(int, values)), max(map(int, values))
        if least >= -(1 << 63) and most < 1 << (63 if least < 0 else 64):
            return labels.astype(np.int64 if most < 1 << 63 else np.uint64)
    _refuse_merged(values, "label")
    return labels.astype(np.float64)


def _refuse_merged(values: Iterable[Any], place: str) -> None:
    """Refuse numbers if two different numbers become equal in float64."""
    different = set(values)
    if len(set(map(float, different))) < len(different):
        raise DataError(
            f"{place}: expected numbers that also differ in float64, got some that become equal: round them, or cast "
            "them to float64 first if this does not matter"
        )


class Labels:
    """Reads a column of labels, chunk by chunk, and refuses labels that do not fit into one type."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._first: tuple[str, str] | None = None
        self._ends: Array = np.empty(0)
        self._decimals: set[Decimal] = set()

    def read(self, chunk: Chunk) -> Array:
        """Return the labels (rows,) of a chunk: finite numbers or text, none of them empty."""
        values = read_label(chunk, self._name)
        kind = "text" if values.dtype.kind == "O" else "numbers"
        place = f"{chunk.location}: label {quoted(self._name)}"
        expected, where = self._first = self._first or (kind, chunk.location)
        if kind != expected:
            raise DataError(f"{place}: expected {expected}, as {where} has, got {kind}")
        if kind == "numbers" and len(values):
            try:
                self._ends = joined([self._ends, np.array([values.min(), values.max()])])
            except DataError as error:
                raise DataError(f"{place}: {error}") from None
            # Different decimals must not become equal in float64 if they are classes, of which there are few.
            few = values.dtype.kind == "f" and len(self._decimals) <= MOST_CLASSES
            if few and chunk.passthrough is not None:
                self._decimals |= different_decimals(chunk.passthrough.column(self._name))
                _refuse_merged(self._decimals, place)
        return values


class LabelReader:
    """Reads labels chunk by chunk, from memory, from one column, or from several columns of numbers."""

    def __init__(self, label: LabelArgument) -> None:
        self._given = label if isinstance(label, np.ndarray) else None
        self._columns = {name: Labels(name) for name in label_names(label)}
        self._soft = isinstance(label, ProbabilityColumns)

    def read(self, chunk: Chunk) -> Array:
        """Return the labels of a chunk: (rows,), or (rows, k) in float64 for k columns."""
        if self._given is not None:
            return self._given[chunk.start : chunk.start + chunk.rows]
        columns = {name: labels.read(chunk) for name, labels in self._columns.items()}
        if len(columns) == 1:
            return next(iter(columns.values()))
        text = next((name for name, values in columns.items() if values.dtype.kind == "O"), None)
        if text is not None:
            many = f"expected numbers, as there are {len(columns)} labels, got text"
            raise refusal(chunk, "label", text, f"{many}; fit a separate map for this label")
        labels = np.column_stack([values.astype(np.float64) for values in columns.values()])
        if not self._soft:
            return labels
        return _probabilities(labels, f"{chunk.location}: labels {listed(list(columns))}", chunk.row_number)


def refusal(chunk: Chunk, role: str, name: str, problem: str, row: int | None = None) -> DataError:
    """Return the error about a column whose `role` is label, weight or split, or about one of its rows."""
    where = "" if row is None else f"{spell_row(chunk.row_number(row))}, "
    return DataError(f"{chunk.location}: {where}{role} {quoted(name)}: {problem}")


def read_label(chunk: Chunk, name: str, role: str = "label") -> Array:
    """Return a column (rows,) of one chunk. Messages call the column by its `role`: label, weight or split."""
    if chunk.passthrough is None:
        raise KeyError(name)
    column = chunk.passthrough.column(name)
    values = column_values(column)
    if values is None:
        raise refusal(chunk, role, name, f"expected numbers or text, got {column.type}; cast it first")
    null = null_rows(column, values)
    bad = int(null.argmax()) if null.any() else _first_bad(values)
    if bad is not None:
        value = values[bad]
        got = "null" if null[bad] else quoted(value) if isinstance(value, str) else f"{value:g}"
        advice = _without_label(chunk, name, got) if role == "label" else "remove such rows first"
        raise refusal(chunk, role, name, f"expected a value, got {got}: {advice}", bad)
    return plain_labels(values)


def _without_label(chunk: Chunk, name: str, got: str) -> str:
    """Return advice on the label `got`, such as null or inf. For text files, name options that read inf as missing."""
    if "inf" not in got:
        return _blank_class(chunk, name) or "--drop-unlabelled leaves such rows out"
    if not isinstance(chunk, TableChunk) or not chunk.source.untyped:
        return "remove such rows first"
    source = chunk.source
    words = [text.strip() for text in source.first_texts(name) if "inf" in text.casefold()]
    return (
        f"{null_options(source, sorted({*words}) or [got])} reads it as missing, and then tune, fit and evaluate "
        "leave such rows out with --drop-unlabelled"
    )


def _blank_class(chunk: Chunk, name: str) -> str:
    """Return advice if all first labels are one word: empty fields may be another class. If not, return ''."""
    source = chunk.source if isinstance(chunk, TableChunk) else None
    words = {text for text in map(str.strip, source.first_texts(name)) if text} if source else set()
    if source is None or len(words) != 1:
        return ""
    number = 1 + [field.name for field in source.fields].index(name)
    write = source.filling.replace("NUMBER", str(number)) or "write a word there"
    write += " writes 'none' there" * bool(source.filling)
    return f"the others are all {quoted(words.pop())}: if empty fields are another class, {write}"


def plain_labels(labels: Array) -> Array:
    """Return floats as float64 (-0.0 as 0.0), integers as int64 (or uint64 if they need it), and others unchanged."""
    if labels.dtype.kind == "f":
        return labels.astype(np.float64) + 0.0
    if labels.dtype.kind in "iu":
        return labels.astype(np.int64 if labels.max(initial=0) <= np.iinfo(np.int64).max else np.uint64)
    return labels


def read_test_rows(chunk: Chunk, name: str) -> Mask:
    """Return a mask of the test rows of a chunk, by a column with the values train and test in any case."""
    values = read_label(chunk, name, "split")
    words, numbers = class_numbers(values)
    lower = np.array([str(word).lower() for word in words], dtype=object)
    odd = ~np.isin(lower, ["train", "test"])[numbers]
    if odd.any():
        row = int(odd.argmax())
        value = values[row].item() if isinstance(values[row], np.generic) else values[row]
        raise refusal(chunk, "split", name, f"expected train or test, got {value!r}", row)
    test: Mask = (lower == "test")[numbers]
    return test


def check_split(split: str | None, labels: Sequence[str]) -> None:
    """Refuse a column that is both a label and the split."""
    if split is not None and split in labels:
        raise UsageError(f"split: expected another column than the label, got {split}")
