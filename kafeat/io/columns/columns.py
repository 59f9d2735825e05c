"""The feature columns of a map, as its model file stores them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from typing import Annotated, Any, Literal

import numpy as np
import pyarrow as pa
from pydantic import AfterValidator, BaseModel, Field, PositiveInt, ValidationError

from kafeat.contract.coding import MOST_CATEGORIES
from kafeat.contract.describe import spell
from kafeat.contract.ngrams import BUCKETS
from kafeat.contract.step import MOST_FEATURES
from kafeat.contract.tile import InputRows, TextRows, numbers_of
from kafeat.errors import quoted
from kafeat.io.columns.categories import Categories, Codes, Vocabulary, spelled
from kafeat.io.columns.dialect import FLAGS, ISO, KEEP, OLD, USUAL, UTF8, Dialect, check_file
from kafeat.io.columns.fields import is_harmful
from kafeat.io.columns.numbers import is_text
from kafeat.io.columns.times import check_timezone, time_pattern
from kafeat.types import Array, Floats


@dataclass(frozen=True)
class Column:
    """A feature column. A row has a number, a list of `width` numbers, a category (as its code), a time or a text.

    Times are in seconds. A text has counts of its n-grams as features. `dialect` is how text files write the values.
    """

    name: str
    width: int | None
    categories: Categories | Vocabulary | None = None
    times: bool = False
    text: bool = False
    dialect: Dialect = USUAL

    @property
    def special(self) -> bool:
        """True for categories, times and texts. Their values need not be numbers."""
        return self.times or self.text or self.categories is not None

    @property
    def n_features(self) -> int:
        return 1 if self.width is None else self.width

    def codes(self, values: pa.Array) -> Codes:
        """Return the codes (n,) of categories. If training rows had decimal commas, 1.5 is the category `1,5`."""
        if self.categories is None:
            raise TypeError(f"column {self.name!r} has no categories")
        if self.dialect.decimal == "," and not is_text(values.type):
            values = pa.array([word.replace(".", ",") for word in spelled(values)], pa.string())
        return self.categories.codes(values)


@dataclass(frozen=True)
class Columns:
    """The columns that a map reads, in order.

    `input_width` is the number of values in a training row. With `missing`, a missing number is read as NaN.
    """

    features: tuple[Column, ...]
    positional: bool
    input_width: int | None
    missing: bool = False
    groups: frozenset[str] = frozenset()
    """Names of the features that decide the folds (group, split_by). If one is absent, the error explains its role."""

    @property
    def n_features(self) -> int:
        """The number of features in the columns. A list of 3 numbers counts as 3 features."""
        return sum(column.n_features for column in self.features)

    @property
    def places(self) -> list[slice]:
        """For each column, the slice of its features in a row of all features."""
        stops = accumulate(column.n_features for column in self.features)
        return [slice(stop - one.n_features, stop) for one, stop in zip(self.features, stops, strict=True)]

    @property
    def named_places(self) -> dict[str, slice]:
        """For each column, by name, the slice of its features. A list or a text has several features.

        If the only column is a list, as in LIBSVM files, each of its numbers counts as a column.
        """
        if len(self.features) == 1 and not self.features[0].text:
            return {name: slice(j, j + 1) for j, name in enumerate(self.names)}
        return {one.name: place for one, place in zip(self.features, self.places, strict=True)}

    @cached_property
    def plain(self) -> bool:
        """True if every column holds numbers that are used as they are."""
        return not any(column.special for column in self.features)

    @cached_property
    def numbers(self) -> Columns:
        return replace(self, features=tuple(column for column in self.features if not column.text))

    def beside_texts(self, numbers: Floats, texts: Sequence[Array]) -> InputRows:
        """Return rows of all features from `numbers` (n, p) and `texts`, one array (n,) for each column of text."""
        if not texts:
            return numbers
        starts = [
            place.start for column, place in zip(self.features, self.places, strict=True) if column.text
        ]
        of_texts = np.repeat([column.text for column in self.features], [c.n_features for c in self.features])
        return TextRows(numbers, np.column_stack(texts), np.flatnonzero(~of_texts), np.array(starts))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all features. A list column x gives x[0], x[1], ..."""
        return tuple(
            column.name if column.width is None else f"{column.name}[{i}]"
            for column in self.features
            for i in range(column.n_features)
        )

    @property
    def inputs(self) -> tuple[tuple[str, int], ...]:
        """The name and the first position of each input: a feature, or a column of text with all its features."""
        names = self.names
        return tuple(
            (column.name if column.text else names[j], j)
            for column, place in zip(self.features, self.places, strict=True)
            for j in range(place.start, place.start + 1 if column.text else place.stop)
        )

    @property
    def n_categories(self) -> tuple[int, ...]:
        """The number of categories of every feature, or 0 for a plain number."""
        return tuple(
            column.categories.n_codes if isinstance(column.categories, Categories) else 0
            for column in self.features
            for _ in range(column.n_features)
        )

    @property
    def categories(self) -> dict[str, list[str]]:
        """The categories of each column that has them."""
        known = {column.name: column.categories for column in self.features}
        return {name: list(one.values) for name, one in known.items() if isinstance(one, Categories)}

    @property
    def file_dialect(self) -> Dialect:
        """The dialect of the first column: all columns share its words for missing values, delimiter and encoding."""
        return self.features[0].dialect

    @property
    def times(self) -> frozenset[str]:
        """Names of the features that are read as times."""
        return frozenset(column.name for column in self.features if column.times)

    @property
    def as_read(self) -> Columns:
        """Columns c0, c1, ... of plain numbers, one per feature, for an array in which categories are already codes."""
        features = tuple(Column(f"c{i}", None) for i in range(self.n_features))
        return Columns(features, True, self.n_features, self.missing)

    def use(self, X: InputRows) -> None:
        """Record the categories in these rows (n, d) of the fit sample. Unnecessary if the sample has all rows."""
        for column, place in zip(self.numbers.features, self.numbers.places, strict=True):
            if isinstance(column.categories, Vocabulary):
                column.categories.use(numbers_of(X)[:, place.start])

    def forget(self, sample: Sequence[Floats]) -> None:
        """Make vocabularies with too many categories forget categories that `sample`, arrays (n, d), lacks."""
        for column, place in zip(self.numbers.features, self.numbers.places, strict=True):
            if isinstance(column.categories, Vocabulary) and column.categories.crowded:
                codes = [numbers_of(X)[:, place.start] for X in sample]
                column.categories.forget_others(np.concatenate(codes))

    def settled(self, X: InputRows) -> Columns:
        """Return columns with sorted vocabularies after all rows have been read. Update the codes in `X` (n, d)."""
        settled, numbers = dict[str, Column](), numbers_of(X)
        for column, place in zip(self.numbers.features, self.numbers.places, strict=True):
            if isinstance(column.categories, Vocabulary):
                categories, numbers[:, place.start] = column.categories.settled(numbers[:, place.start])
                settled[column.name] = replace(column, categories=categories)
        return replace(self, features=tuple(settled.get(column.name, column) for column in self.features))

    def to_plain(self) -> dict[str, Any]:
        return {
            "features": [_column_to_plain(column) for column in self.features],
            "positional": self.positional,
            "input_width": self.input_width,
            "missing": self.missing,
            **({} if self.features[0].dialect == OLD else {"dialect": self.dialect}),
        }

    @property
    def dialect(self) -> dict[str, Any]:
        """The rules for reading text: words for missing values, and the columns with decimal commas and with times.

        Optional entries are the separators of thousands, the units of numbers, columns in which some numbers have no
        unit, columns whose negative numbers have brackets or a trailing minus, and the delimiter and encoding of
        the file.
        """
        dialects, first = {column.name: column.dialect for column in self.features}, self.file_dialect
        times = {column.name: column.dialect for column in self.features if column.times}
        more: dict[str, Any] = {
            "thousands": {name: one.thousands for name, one in dialects.items() if one.thousands},
            "units": {name: list(one.units) for name, one in dialects.items() if one.units},
            **{flag: [name for name, one in dialects.items() if getattr(one, flag)] for flag in FLAGS},
            "file": [] if first.usual_file else [first.delimiter, first.encoding],
        }
        return {
            "nulls": list(first.nulls),
            "decimal_commas": [name for name, one in dialects.items() if one.decimal == ","],
            "dates": {name: one.dates for name, one in times.items()},
            "timezones": {name: one.timezone for name, one in times.items()},
            **{key: value for key, value in more.items() if value},
        }

    @classmethod
    def from_plain(cls, plain: object) -> Columns:
        """Read the columns from the result of `to_plain`, which is untrusted. Raise ValueError if it is invalid."""
        try:
            of = _Recorded.model_validate(plain)
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(["columns", *map(str, first["loc"][:2])])
            expected = f"expected an entry as `fit` writes it, got {spell(first['input'])} ({first['msg']})"
            raise ValueError(f"{place}: {expected}") from None
        columns = tuple(map(_column_from, of.features))
        columns = columns if of.dialect is None else of.dialect.given(columns)
        if sum(column.n_features for column in columns) > MOST_FEATURES:
            raise ValueError(f"columns.features: expected at most {MOST_FEATURES:,} numbers, got more")
        if len({column.name for column in columns}) != len(columns):
            raise ValueError("columns.features: expected every name once")
        return cls(columns, of.positional, of.input_width, of.missing)


def _column_to_plain(column: Column) -> list[Any]:
    if column.times:
        return [column.name, None, "times"]
    if column.text:
        return [column.name, column.width, "text"]
    if column.categories is None:
        return [column.name, column.width]
    if isinstance(column.categories, Vocabulary):
        raise TypeError(f"column {column.name!r}: its vocabulary is still being learned")
    categories = column.categories
    plain = [column.name, None, list(categories.values), categories.lenient]
    return [*plain, True] if categories.rest else plain


def _column_from(entry: object) -> Column:
    match entry:
        case [str(name), None | int() as width] if width is None or (type(width) is int and width >= 1):
            column = Column(name, width, dialect=OLD)
        case [str(name), None, "times"]:
            column = Column(name, None, times=True, dialect=OLD)
        case [str(name), width, "text"] if width == BUCKETS:
            column = Column(name, BUCKETS, text=True, dialect=OLD)
        case [str(name), None, list(values), bool(lenient), *rest] if rest in ([], [True]):
            column = Column(name, None, _categories_from(values, lenient, bool(rest)), dialect=OLD)
        case _:
            raise ValueError(
                f"columns.features: expected a name and a width, times, text or categories, got {spell(entry)}"
            )
    if is_harmful(name):
        raise ValueError(f"columns.features: expected names without control characters, got {quoted(name)}")
    return column


def _checked(check: Callable[[Any], object]) -> AfterValidator:
    return AfterValidator(lambda value: check(value) and value)


_Unit = Annotated[str, Field(min_length=1, max_length=100)]


class _Dialects(BaseModel, extra="forbid", strict=True):
    """The dialects of all columns, as a model file stores them."""

    nulls: list[str]
    decimal_commas: list[str]
    dates: dict[str, Annotated[str, _checked(time_pattern)]]
    timezones: dict[str, Annotated[str, _checked(check_timezone)]]
    thousands: dict[str, Literal[",", ".", " ", "'"]] = {}
    units: dict[str, Annotated[list[_Unit], Field(min_length=1)]] = {}
    bare: list[str] = []
    brackets: list[str] = []
    trailing: list[str] = []
    whole: list[str] = []
    file: Annotated[
        list[str], Field(min_length=2, max_length=2), _checked(lambda pair: check_file(*pair))
    ] = [",", UTF8]

    def given(self, columns: tuple[Column, ...]) -> tuple[Column, ...]:
        """Return the columns, each with its stored dialect. Raise ValueError if the names do not match."""
        names = {column.name for column in columns}
        timed = {column.name for column in columns if column.times}
        for key in ("decimal_commas", "thousands", "units", *FLAGS, "dates", "timezones"):
            found = set(getattr(self, key))
            if not found <= names or (key in ("dates", "timezones") and found != timed):
                raise ValueError(
                    f"columns.dialect.{key}: expected names of its columns, got {spell(sorted(found))}"
                )
        if any(self.thousands.get(name) == "," for name in self.decimal_commas):
            raise ValueError("columns.dialect.thousands: expected another mark than that of decimals, got ,")
        return tuple(
            replace(column, dialect=Dialect(
                tuple(self.nulls), "," if name in self.decimal_commas else ".", self.dates.get(name, ISO),
                self.timezones.get(name, KEEP), self.thousands.get(name, ""), tuple(self.units.get(name, ())),
                name in self.bare, name in self.brackets, name in self.trailing, name in self.whole, *self.file,
            )) for column in columns for name in [column.name]
        )  # fmt: skip


class _Recorded(BaseModel, extra="forbid", strict=True):
    """Columns as a model file stores them."""

    features: Annotated[list[Any], Field(min_length=1)]
    positional: bool
    input_width: PositiveInt | None
    missing: bool
    dialect: _Dialects | None = None


def _categories_from(values: list[object], lenient: bool, rest: bool) -> Categories:
    texts = [value for value in values if isinstance(value, str)]
    if not 1 <= len(texts) == len(values) <= MOST_CATEGORIES:
        raise ValueError(
            f"columns.features: expected from 1 to {MOST_CATEGORIES:,} categories, each of them text"
        )
    if len(set(texts)) != len(texts):
        raise ValueError("columns.features: expected every category once")
    return Categories(tuple(texts), lenient, rest)
