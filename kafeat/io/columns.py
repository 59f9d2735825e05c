"""Which columns a map reads: chosen when it is fitted, found again in any other source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kafeat.errors import DataError
from kafeat.io.names import fields_of, require

if TYPE_CHECKING:
    from kafeat.io.source import Field, Source


@dataclass(frozen=True)
class Column:
    """A feature column: one number a row, or a list of `width` numbers."""

    name: str
    width: int | None

    @property
    def n_features(self) -> int:
        """How many features the column stands for."""
        return 1 if self.width is None else self.width


@dataclass(frozen=True)
class Columns:
    """What a map reads, in order. `input_width` is the whole width of a positional source."""

    features: tuple[Column, ...]
    positional: bool
    input_width: int | None

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

    def to_plain(self) -> dict[str, Any]:
        """As builtins."""
        return {
            "features": [[column.name, column.width] for column in self.features],
            "positional": self.positional,
            "input_width": self.input_width,
        }

    @classmethod
    def from_plain(cls, plain: object) -> Columns:
        """From `to_plain`, which may come from a stranger; ValueError says what is wrong."""
        if type(plain) is not dict or set(plain) != {"features", "positional", "input_width"}:
            raise ValueError("columns: expected a dict of features, positional and input_width")
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
        return cls(columns, positional, width)


def _is_count(value: object) -> bool:
    return type(value) is int and value >= 1


def _column_from(pair: object) -> Column:
    if not isinstance(pair, list | tuple) or len(pair) != 2:
        raise ValueError("columns.features: expected pairs of name and width")
    name, width = pair[0], pair[1]
    if type(name) is not str or not (width is None or _is_count(width)):
        raise ValueError(f"columns.features: expected a name and a width, got {name!r}, {width!r}")
    return Column(name, width)


def choose(
    source: Source, include: Sequence[str] | None, exclude: Sequence[str], label: str | None
) -> Columns:
    """The columns to fit on: those in `include`, or every numeric one, less `exclude` and the label."""
    left_out = {*exclude, *([] if label is None else [label])}
    require(source, [*(include or ()), *left_out])
    if include is None:
        fields = [field for field in source.fields if field.numeric and field.name not in left_out]
    else:
        fields = fields_of(source, (name for name in dict.fromkeys(include) if name not in left_out))
    fields_of(source, (field.name for field in fields))
    for field in fields:
        if not field.numeric:
            raise DataError(f"{source.place}: column {field.name!r}: expected numbers, got {field.spelled}")
    if not fields:
        raise DataError(
            f"{source.place}: expected at least one numeric feature column, got none{_texts(source)}"
        )
    return Columns(tuple(map(_column, fields)), source.positional, _width(source))


def match(source: Source, columns: Columns, not_features: Sequence[str]) -> Columns:
    """The columns of a fitted map in another source: by name where both have names, else by position."""
    require(source, not_features)
    if not (columns.positional or source.positional):
        return _by_name(source, columns)
    if columns.positional and source.positional and columns.input_width == _width(source):
        return _by_name(source, columns)
    fields = [field for field in source.fields if field.numeric and field.name not in not_features]
    found = Columns(tuple(map(_column, fields)), source.positional, _width(source))
    if found.n_features != columns.n_features:
        raise DataError(
            f"{source.place}: expected {columns.n_features} feature columns, got {found.n_features}"
            f"{_texts(source)}; columns without names are matched by position: "
            "leave out, or name as label or kept, what is not a feature"
        )
    fields_of(source, (field.name for field in fields))
    return found


def _by_name(source: Source, columns: Columns) -> Columns:
    fields = fields_of(source, (column.name for column in columns.features))
    for column, field in zip(columns.features, fields, strict=True):
        # A guess from the first rows must not refuse a column: the row that holds text will.
        readable = field.numeric or (source.untyped and field.kind == "text")
        if not readable or field.width != column.width:
            got = _spell(_column(field)) if field.numeric else field.spelled
            raise DataError(f"{source.place}: column {column.name!r}: expected {_spell(column)}, got {got}")
    return Columns(columns.features, source.positional, _width(source))


def _column(field: Field) -> Column:
    return Column(field.name, field.width)


def _width(source: Source) -> int | None:
    if not source.positional:
        return None
    return sum(_column(field).n_features for field in source.fields)


def _spell(column: Column) -> str:
    return "numbers" if column.width is None else f"lists of {column.width} numbers"


def _texts(source: Source) -> str:
    texts = [f"{field.name!r} ({field.spelled})" for field in source.fields if not field.numeric]
    return f" (not numeric: {', '.join(texts[:5])}{', ...' if len(texts) > 5 else ''})" if texts else ""
