"""Tell columns of numbers, categories, text and times apart by their first rows, and make steps that read them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from kafeat.config import Config
from kafeat.contract.name_patterns import expand
from kafeat.io.columns.columns import Columns
from kafeat.io.columns.fields import Field, excluding
from kafeat.io.columns.selection import refuse_unclear, times_of
from kafeat.io.columns.time_forms import LEAST_TIMES, Guess, are_times, guess_dates
from kafeat.io.columns.times import parse_time
from kafeat.io.columns.values import numbers_or_text
from kafeat.io.readers.base import Reader
from kafeat.jobs.fit.search import Recipe
from kafeat.maths.task import class_numbers
from kafeat.registry import build_step
from kafeat.types import Array

_LONGEST_EXAMPLE, _MOST_REASONS = 30, 8
LOOK = 2000
"""Number of first rows that are read to tell categories, text, ids and times apart."""
MIN_FREQUENCY = 0.01
"""Categories that are rarer than this share of the rows are merged into one output."""
# If categories below MIN_FREQUENCY together have more than this share of the rows, they cannot share one output.
_MOST_RARE = 0.1
# Text with words is prose if its distinct values exceed the first share of the rows. Other text is ids from the second.
_MOST_DIFFERENT, _NEARLY_ALL = 0.5, 0.98
# With fewer rows, ids and categories cannot be told apart.
_LEAST_ROWS = 20
# If the distinct values of a column are between these shares of the rows, they may be ids of groups, such as patients.
_IDS = 0.1, 0.9

IMPUTE: Recipe = {"kind": "impute", "strategy": "median"}
Encoding = Literal["target", "fine target", "both", "one_hot"]
"""The way in which columns with many categories become numbers.

`target` replaces a category by its mean label, `one_hot` makes a column of 0 and 1 for each frequent category, and
`both` does both. `fine target` has 20 folds, so that mean labels leave out fewer rows.
"""
_FINE_FOLDS = 20
Reading = Literal["numbers", "categories", "many", "texts", "times"]
_AS: Mapping[Reading, str] = {
    "numbers": "numbers",
    "categories": "categories",
    "many": "categories",
    "texts": "words",
}


def one_hot(columns: Sequence[str]) -> Recipe:
    """Return the step that codes categories as columns of 0 and 1."""
    return {"kind": "one_hot", "columns": list(columns), "unknown": "ignore", "min_frequency": MIN_FREQUENCY}


def target(columns: Sequence[str], encoding: Encoding) -> list[Recipe]:
    """Return the step that codes categories by mean labels, as a list: empty for `one_hot` or if `columns` is empty."""
    if not columns or encoding == "one_hot":
        return []
    folds = {"n_folds": _FINE_FOLDS} if encoding == "fine target" else {}
    return [{"kind": "target", "columns": list(columns), **folds}]


def date_parts(columns: Sequence[str]) -> Recipe:
    """Return the step that turns times into numbers, such as month and hour."""
    return {"kind": "date_parts", "columns": list(columns), "cyclic": True}


def text(columns: Sequence[str], width: int, labelled: bool = True) -> Recipe:
    """Return the step that turns each text column into `width` numbers, using the label if rows are `labelled`."""
    by_label = {"projection": "label"} if labelled else {}
    return {"kind": "text", "columns": list(columns), "n_components": width, **by_label}


def side_by_side(*maps: tuple[Sequence[str], Sequence[Recipe]]) -> Recipe:
    """Return a union of chains, each for its own columns. Chains without columns are left out."""
    parts = [{"columns": list(columns), "steps": list(steps)} for columns, steps in maps if columns]
    return {"kind": "union", "maps": parts}


@dataclass(frozen=True)
class Look:
    """A feature column in the first rows of the data: the numbers of `rows` with a value, and of `missing` values.

    `distinct` is the number of different values, or None for lists. If `reading` is None, the column is left out, and
    `reason` says why. `repeats` is true for text whose values may be ids of groups. `example` is the first value.
    """

    name: str
    type: str
    rows: int = 0
    missing: int = 0
    distinct: int | None = None
    reading: Reading | None = "numbers"
    reason: str = ""
    repeats: bool = False
    example: str = ""


@dataclass(frozen=True)
class Groups:
    """The columns, grouped by how they are read, and those that are left out."""

    looks: tuple[Look, ...]

    def named(self, *readings: Reading) -> tuple[str, ...]:
        """Return the names of the columns with these readings."""
        return tuple(look.name for reading in readings for look in self.looks if look.reading == reading)

    @property
    def numbers(self) -> tuple[str, ...]:
        """Columns of numbers."""
        return self.named("numbers")

    @property
    def categories(self) -> tuple[str, ...]:
        """Columns of categories with few rows in rare categories, so that all of these can share one output."""
        return self.named("categories")

    @property
    def many(self) -> tuple[str, ...]:
        """Columns of categories with many rows in rare categories, too many for these to share one output."""
        return self.named("many")

    @property
    def texts(self) -> tuple[str, ...]:
        """Columns of text that is read word by word."""
        return self.named("texts")

    @property
    def times(self) -> tuple[str, ...]:
        """Columns of dates and times."""
        return self.named("times")

    @property
    def rows(self) -> int:
        """The number of rows that were examined."""
        return max((look.rows + look.missing for look in self.looks), default=0)

    @property
    def without_texts(self) -> tuple[str, ...]:
        """All columns that are read, except text columns."""
        return self.named("numbers", "categories", "many", "times")

    @property
    def left_out(self) -> Mapping[str, str]:
        """The reason for every column that is left out."""
        return {look.name: look.reason for look in self.looks if look.reading is None}

    @property
    def doubts(self) -> Mapping[str, str]:
        """Notes on columns that look like times or like several numbers in a cell, but are read as something else."""
        return {
            look.name: f"{look.reason}; so far, it is read as {_AS[look.reading]}{excluding([look.name])}"
            for look in self.looks
            if look.reading is not None and look.reason
        }

    @property
    def ids(self) -> tuple[str, ...]:
        """Columns of text that may be ids of groups, because many values occur in several rows."""
        return tuple(look.name for look in self.looks if look.repeats)

    @property
    def mixed(self) -> bool:
        """True if there are columns of categories or times."""
        return bool(self.categories or self.many or self.times)

    def without(self, names: Sequence[str], reason: str) -> Groups:
        """Return the groups with these columns left out for this reason."""
        out = (replace(one, reading=None, reason=reason) if one.name in names else one for one in self.looks)
        return Groups(tuple(out))

    def reading_steps(self, encoding: Encoding) -> list[Recipe]:
        """Return steps only for reading a sample. They code each column by its type, and accept missing values."""
        words = [text(self.texts, 1, labelled=False)] if self.texts else []
        return [*words, *self.in_line(True, encoding)]

    def in_line(self, gaps: bool, encoding: Encoding = "target") -> list[Recipe]:
        """Return a chain that turns all columns except text into numbers. With `gaps`, it fills missing values."""
        if self.many and encoding == "both":
            maps = ((self.without_texts, self.in_line(gaps)), (self.many, [one_hot(self.many)]))
            return [side_by_side(*maps)]
        means = target(self.many, encoding)
        codes = self.categories if means else (*self.categories, *self.many)
        return [
            # `target` comes first, because its folds depend on the content of whole rows.
            *means,
            *([{"kind": "missing_indicator"}] if gaps else []),
            *([date_parts(self.times)] if self.times else []),
            *([one_hot(codes)] if codes else []),
            *([IMPUTE] if gaps else []),
        ]

    def beside_texts(self, chain: list[Recipe], width: int, labelled: bool = True) -> list[Recipe]:
        """Return a union of `chain`, for all columns but text, and a step that turns each text into `width` numbers."""
        if not self.texts:
            return chain
        words = [text(self.texts, width, labelled)] if width else []
        return [side_by_side((self.without_texts, chain), (self.texts if width else (), words))]


def with_columns(base: Config, groups: Groups, steps: Sequence[Mapping[str, Any]]) -> Config:
    """Return the base config with these steps. It excludes columns that are left out, and text that no step reads."""
    plain = {key: value for key, value in base.to_plain().items() if key != "search"}
    plain["steps"] = [dict(step) for step in steps]
    read = {name for step in plain["steps"] for name in build_step(step).traits.columns.texts}
    unread = [*groups.left_out, *(name for name in groups.texts if name not in read)]
    unread = [name for name in unread if name]  # a text column without a name is never a feature
    if unread and "exclude" in plain["columns"]:
        plain["columns"] = {"exclude": [*plain["columns"]["exclude"], *unread]}
    elif unread:
        plain["columns"] = {"include": [*groups.without_texts, *(one for one in groups.texts if one in read)]}
    return Config.model_validate(plain)


def groups_of(source: Reader, base: Config, not_features: Sequence[str], every: bool = False) -> Groups:
    """Group the columns by their content. With `every`, also look at the values of numeric columns."""
    names = [field.name for field in source.fields]
    excluded = {name for _, found in expand(base.columns.exclude, names) for name in found}
    included = {name for _, found in expand(base.columns.include, names) for name in found}
    unread = {*not_features, *excluded, *source.row_names}
    fields = [one for one in source.fields if one.name not in unread and (every or one.kind != "other")]
    fields = [one for one in fields if not included or one.name in included]
    texts = [field for field in fields if field.kind == "text" and field.name not in source.texts]
    guesses = {field.name: times_of(source, field) for field in texts}
    # Values of ambiguous columns cannot be read. `refuse_unclear` reports all these columns at once.
    looked_at = [one.name for one in fields if one.kind == "text" or (every and not one.problem)]
    first = _first_rows(source, looked_at)
    looks = [_look(field, first.get(field.name), source, guesses.get(field.name)) for field in fields]
    groups = Groups(tuple(looks))
    read, timed = {*groups.numbers, *not_features}, {*groups.times}
    numbers = [field for field in source.fields if field.name in read]
    times = {name: guess for name, guess in guesses.items() if name in timed}
    refuse_unclear(source, numbers, times, may_miss=True, labels=not_features)
    if len(groups.left_out) == len(looks):
        why = "; ".join(f"{look.name}: {look.reason}" for look in looks[:_MOST_REASONS])
        raise source.error(f"expected at least one column to learn from, got none{why and f' ({why})'}")
    return groups


def _first_rows(source: Reader, names: Sequence[str]) -> dict[str, Any]:
    """Return the first values of columns by their names, or an empty mapping if there are no rows."""
    chunks = source.coding(names).chunks(Columns((), source.positional, None), names, LOOK)
    first = next(iter(chunks), None) if names else None
    rows = None if first is None else first.passthrough
    return {} if rows is None else {name: rows.column(name) for name in names}


def _look(field: Field, column: Any, source: Reader, guess: Guess | None) -> Look:
    """Describe a column by its first values or, if they were not read, by its type."""
    known = field.kind if "(" in field.spelled else (field.spelled or field.kind).split("<")[0]
    if column is None:
        return Look(field.name, known, **_plainly(field, source))
    missing = column.null_count
    if field.kind in ("list", "other"):
        return Look(field.name, known, len(column) - missing, missing, **_plainly(field, source))
    values = numbers_or_text(column)
    present = values[values != np.array(None)] if values.dtype.kind == "O" else values[values == values]
    words, numbers = class_numbers(present)
    n, missing = len(present), len(values) - len(present)
    if field.kind != "text":
        plain = _plainly(field, source)
        example = _example(present, plain["reading"], source, guess)
        return Look(field.name, known, n, missing, len(words), **plain, example=example)
    counts = np.bincount(numbers)
    reading, reason = _reading([*map(str, words.tolist())], counts, len(values), guess or Guess("", 0.0))
    reason = field.note if reading is None and field.note else reason
    example = _example(present, reading, source, guess)
    few, many = (share * n for share in _IDS)
    named = reading not in ("times", "texts") and not (guess and guess.note)
    repeats = named and n >= _LEAST_ROWS and few <= len(counts) <= many
    return Look(field.name, known, n, missing, len(words), reading, reason, repeats, example)


def _example(present: Array, reading: Reading | None, source: Reader, guess: Guess | None) -> str:
    """Return the first value as text. If text is read as times, it is in ISO 8601."""
    words = map(str.strip, map(str, present))
    text = next((word for word in words if not source.asked.dialect.is_missing(word)), "")
    if reading == "times" and present.dtype.kind != "M" and text:
        form = guess.form if guess is not None else guess_dates([text], source.asked).form
        seconds = parse_time(text, replace(source.asked.dialect, dates=form))[0]
        return text if math.isnan(seconds) else str(np.datetime64(int(seconds), "s"))
    return text if len(text) <= _LONGEST_EXAMPLE else f"{text[:_LONGEST_EXAMPLE]}…"


def _plainly(field: Field, source: Reader) -> dict[str, Any]:
    """Return how a column that is not text is read, with a note or the reason to leave it out, as fields of `Look`."""
    if field.kind == "text":
        return {"reading": None, "reason": "no rows"}
    if field.kind == "other":
        return {"reading": None, "reason": "neither numbers, text nor times"}
    texts = source.first_texts(field.name) if source.untyped and field.kind == "number" else ()
    times, note = are_times(texts, source.asked)
    return {"reading": "times" if times or field.kind in ("date", "timestamp") else "numbers", "reason": note}


def _reading(words: list[str], counts: Array, looked: int, guess: Guess) -> tuple[Reading | None, str]:
    """Return how a column of text is read (None: it is left out), and why it is left out or not read as times.

    `words` are its distinct values, and `counts` the number of rows of each, out of `looked` rows.
    """
    n, k = int(counts.sum()), len(counts)
    if k <= 3 and {word.casefold() for word in words} == {"train", "test"}:
        return None, "train and test, for which there is --split"
    if not any(map(str.strip, words)):
        return None, "no values"
    if guess.share >= LEAST_TIMES:
        return "times", ""
    why = guess.note
    if n < _LEAST_ROWS or counts[counts < max(MIN_FREQUENCY * n, 2.0)].sum() <= _MOST_RARE * n:
        return "categories", why
    if not why and k > _MOST_DIFFERENT * n and sum(map(_has_words, words)) > k / 2:
        return "texts", ""
    if k < _NEARLY_ALL * n:
        return "many", why
    if why:
        return None, why
    rows = f"{n:,} rows" if looked < LOOK else f"{n:,} of the first {LOOK:,} rows"
    rows = f"the first {LOOK:,} rows" if n == LOOK else rows
    return None, f"{k:,} different values in {rows}, few words: names of rows"


def _has_words(value: str) -> bool:
    """Return true for a text of several words with letters."""
    return sum(any(map(str.isalpha, word)) for word in value.split()) > 1
