"""Which columns a map reads: chosen when it is fitted, found again in any other source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from kafeat.errors import DataError
from kafeat.io.categories import MOST, Categories, Vocabulary
from kafeat.io.names import fields_of, is_harmful, quoted, refuse_slips, require
from kafeat.types import Floats

if TYPE_CHECKING:
    from kafeat.io.source import Field, Source


@dataclass(frozen=True)
class Column:
    """A feature column: one number a row, a list of `width` numbers, or a category as its code."""

    name: str
    width: int | None
    categories: Categories | Vocabulary | None = None

    @property
    def n_features(self) -> int:
        """How many features the column stands for."""
        return 1 if self.width is None else self.width


@dataclass(frozen=True)
class Columns:
    """What a map reads, in order. `input_width` is the whole width of a positional source.

    `missing`: a missing number is read as NaN, and not refused.
    """

    features: tuple[Column, ...]
    positional: bool
    input_width: int | None
    missing: bool = False

    @property
    def n_features(self) -> int:
        """How many features the columns hold, lists counted by their length."""
        return sum(column.n_features for column in self.features)

    @property
    def names(self) -> tuple[str, ...]:
        """The name of every feature; a list column x gives x[0], x[1], ..."""
        return tuple(
            column.name if column.width is None else f"{column.name}[{i}]"
            for column in self.features
            for i in range(column.n_features)
        )

    @property
    def n_categories(self) -> tuple[int, ...]:
        """Of every feature the number of its categories, 0 for a plain number."""
        return tuple(
            len(column.categories.values) if isinstance(column.categories, Categories) else 0
            for column in self.features
            for _ in range(column.n_features)
        )

    @property
    def as_read(self) -> Columns:
        """The columns of what `matrix` gives, an array in which categories are codes already."""
        features = tuple(Column(f"c{i}", None) for i in range(self.n_features))
        return Columns(features, True, self.n_features, self.missing)

    def settled(self, X: Floats) -> Columns:
        """The columns once every row has been read: vocabularies in order. The codes in `X` (n, d) follow them."""
        features, at = [], 0
        for column in self.features:
            categories = column.categories
            if isinstance(categories, Vocabulary):
                categories, final = categories.settled()
                known = X[:, at] >= 0.0
                X[known, at] = final[X[known, at].astype(np.intp)]
            features.append(replace(column, categories=categories))
            at += column.n_features
        return replace(self, features=tuple(features))

    def to_plain(self) -> dict[str, Any]:
        """As builtins."""
        return {
            "features": [_column_to_plain(column) for column in self.features],
            "positional": self.positional,
            "input_width": self.input_width,
            "missing": self.missing,
        }

    @classmethod
    def from_plain(cls, plain: object) -> Columns:
        """From `to_plain`, which may come from a stranger; ValueError says what is wrong."""
        if type(plain) is not dict or set(plain) != {"features", "positional", "input_width", "missing"}:
            raise ValueError("columns: expected a dict of features, positional, input_width and missing")
        if type(plain["missing"]) is not bool:
            raise ValueError(f"columns.missing: expected a bool, got {type(plain['missing']).__name__}")
        features, positional, width = plain["features"], plain["positional"], plain["input_width"]
        if type(features) is not list or not features:
            raise ValueError(f"columns.features: expected a list of pairs, got {type(features).__name__}")
        if type(positional) is not bool:
            raise ValueError(f"columns.positional: expected a bool, got {type(positional).__name__}")
        if width is not None and not _is_count(width):
            raise ValueError(f"columns.input_width: expected a whole number above 0, got {width!r}")
        columns = tuple(_column_from(pair) for pair in features)
        if len({column.name for column in columns}) != len(columns):
            raise ValueError("columns.features: expected every name once")
        return cls(columns, positional, width, plain["missing"])


def _is_count(value: object) -> bool:
    return type(value) is int and value >= 1


def _column_to_plain(column: Column) -> list[Any]:
    if column.categories is None:
        return [column.name, column.width]
    if isinstance(column.categories, Vocabulary):
        raise TypeError(f"column {column.name!r}: its vocabulary is still being learned")
    return [column.name, None, list(column.categories.values), column.categories.lenient]


def _column_from(entry: object) -> Column:
    if not isinstance(entry, list | tuple) or len(entry) not in (2, 4):
        raise ValueError("columns.features: expected pairs of name and width, or those with categories")
    name, width = entry[0], entry[1]
    if type(name) is not str or not (width is None or _is_count(width)):
        raise ValueError(f"columns.features: expected a name and a width, got {name!r}, {width!r}")
    if is_harmful(name):
        raise ValueError(f"columns.features: expected names without control characters, got {quoted(name)}")
    return Column(name, width, None if len(entry) == 2 else _categories_from(width, entry[2], entry[3]))


def _categories_from(width: object, values: object, lenient: object) -> Categories:
    if width is not None or type(lenient) is not bool:
        raise ValueError("columns.features: expected categories of a column without width, and a bool")
    if (
        type(values) is not list
        or not 1 <= len(values) <= MOST
        or not all(type(v) is str and v for v in values)
    ):
        raise ValueError(f"columns.features: expected from 1 to {MOST:,} categories, each of them text")
    if len(set(values)) != len(values):
        raise ValueError("columns.features: expected every category once")
    return Categories(tuple(values), lenient)


def choose(
    source: Source,
    include: Sequence[str] | None,
    exclude: Sequence[str],
    label: str | None,
    coded: Mapping[str, bool] | None = None,
    missing: bool = False,
) -> Columns:
    """The columns to fit on: those in `include`, or every numeric one, less `exclude` and the label.

    The columns of `coded` are read as categories, whatever their type, and are features too; its values say
    whether unknown ones are let through. Their vocabularies grow while the source is read: see `Columns.settled`.
    What `exclude` names may be absent: one config then serves files with labels and files without.
    """
    coded = coded or {}
    left_out = {*exclude, *([] if label is None else [label])}
    require(source, include or (), "columns.include")
    require(source, [] if label is None else [label], "--label")
    require(source, coded, "one_hot")
    for name in coded:
        if name in left_out or (include is not None and name not in include):
            raise DataError(
                f"{source.place}: column {quoted(name)}: expected a feature, as one_hot names it, got a column that "
                "is left out or is the label"
            )
    if include is None:
        fields = [f for f in source.fields if (f.numeric or f.name in coded) and f.name not in left_out]
        if not source.positional:
            absent = left_out.difference(field.name for field in source.fields)
            refuse_slips(source, sorted(absent), [field.name for field in fields], "columns.exclude")
    else:
        fields = fields_of(source, (name for name in dict.fromkeys(include) if name not in left_out))
    fields_of(source, (field.name for field in fields))
    for field in fields:
        if is_harmful(field.name):
            raise DataError(
                f"{source.place}: column {quoted(field.name)}: expected a name without control characters"
            )
        if field.name in coded:
            _check_codable(source, field)
        elif field.kind == "list" and field.width is None:
            raise DataError(
                f"{source.place}: column {quoted(field.name)}: expected lists of numbers in the first rows, "
                "got none; leave it out with columns.exclude"
            )
        elif not field.numeric:
            advice = "; one_hot codes text" if field.kind == "text" else ""
            raise DataError(
                f"{source.place}: column {quoted(field.name)}: expected numbers, got {field.spelled}{advice}"
            )
    if not fields:
        raise DataError(
            f"{source.place}: expected at least one numeric feature column, got none{_texts(source)}"
        )
    columns = (
        replace(_column(f), categories=Vocabulary(f"{source.place}: column {f.name!r}", coded[f.name]))
        if f.name in coded
        else _column(f)
        for f in fields
    )
    return Columns(tuple(columns), source.positional, _width(source), missing)


def _check_codable(source: Source, field: Field) -> None:
    if field.kind not in ("number", "text"):
        raise DataError(
            f"{source.place}: column {quoted(field.name)}: expected text, categories or whole numbers, "
            f"got {field.spelled}"
        )


def match(source: Source, columns: Columns, not_features: Sequence[str]) -> Columns:
    """The columns of a fitted map in another source: by name where both have names, else by position."""
    require(source, not_features)
    if not (columns.positional or source.positional):
        return _by_name(source, columns)
    if columns.positional and source.positional and columns.input_width == _width(source):
        return _by_name(source, columns)
    coded = any(column.categories is not None for column in columns.features)
    fields = [
        field
        for field in source.fields
        if (field.numeric or (coded and field.kind == "text")) and field.name not in not_features
    ]
    if source.rows == 0 and source.untyped:
        # Without rows, text cannot be told from numbers.
        fields = fields[: columns.n_features]
    fields = _with_width(fields, columns.n_features)
    found = Columns(tuple(map(_column, fields)), source.positional, _width(source), columns.missing)
    if found.n_features != columns.n_features:
        raise DataError(
            f"{source.place}: expected {columns.n_features} feature columns, got {found.n_features}"
            f"{_texts(source)}; columns without names are matched by position: "
            "leave out, or name as label or kept, what is not a feature"
        )
    fields_of(source, (field.name for field in fields))
    return _with_categories(source, found, columns) if coded else found


def _with_width(fields: list[Field], n_features: int) -> list[Field]:
    """The one list column whose rows do not show a length takes what the others leave of the features."""
    unknown = [field for field in fields if field.kind == "list" and field.width is None]
    rest = n_features - sum(field.width or 1 for field in fields if field not in unknown)
    if len(unknown) != 1 or rest < 1:
        return fields
    return [replace(field, width=rest) if field in unknown else field for field in fields]


def _with_categories(source: Source, found: Columns, columns: Columns) -> Columns:
    """Columns found by position, with the vocabularies of the fitted ones."""
    if [column.width for column in found.features] != [column.width for column in columns.features]:
        raise DataError(
            f"{source.place}: expected one column for every feature, as some are categories, got lists"
        )
    pairs = zip(found.features, columns.features, strict=True)
    for column, field in zip(
        columns.features, fields_of(source, (c.name for c in found.features)), strict=True
    ):
        if column.categories is None and not _readable(source, field):
            raise DataError(
                f"{source.place}: column {quoted(field.name)}: expected numbers, got {field.spelled}"
            )
    return replace(found, features=tuple(replace(one, categories=other.categories) for one, other in pairs))


def _by_name(source: Source, columns: Columns) -> Columns:
    fields = fields_of(source, (column.name for column in columns.features))
    for column, field in zip(columns.features, fields, strict=True):
        if column.categories is not None:
            _check_codable(source, field)
        elif not _fits(source, field, column):
            got = _spell(_column(field)) if field.kind == "number" or field.width else field.spelled
            raise DataError(
                f"{source.place}: column {quoted(column.name)}: expected {_spell(column)}, got {got}"
            )
    return Columns(columns.features, source.positional, _width(source), columns.missing)


def _fits(source: Source, field: Field, column: Column) -> bool:
    if field.kind == "list":
        # Rows that show no length may be none at all; a row of another length is refused by its number.
        return column.width is not None and field.width in (None, column.width)
    return column.width is None and _readable(source, field)


def _readable(source: Source, field: Field) -> bool:
    # A guess from the first rows must not refuse a column: the row that holds text will.
    return field.numeric or (source.untyped and field.kind == "text")


def _column(field: Field) -> Column:
    return Column(field.name, field.width)


def _width(source: Source) -> int | None:
    if not source.positional:
        return None
    return sum(_column(field).n_features for field in source.fields)


def _spell(column: Column) -> str:
    return "numbers" if column.width is None else f"lists of {column.width} numbers"


def _texts(source: Source) -> str:
    texts = [f"{quoted(field.name)} ({field.spelled})" for field in source.fields if not field.numeric]
    return f" (not numeric: {', '.join(texts[:5])}{', ...' if len(texts) > 5 else ''})" if texts else ""
