"""The fields of a table, their lookup by name, and checks of their names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal, NamedTuple
from unicodedata import category

from kafeat.contract.describe import near
from kafeat.contract.name_patterns import expand
from kafeat.errors import LONGEST, DataError, quoted, shell_word
from kafeat.io.columns.dialect import NOTHING_ASKED, USUAL, Asked, Dialect, as_option

Kind = Literal["number", "list", "text", "date", "timestamp", "other"]
MOST_LISTED = 12
"""Largest number of column names that one line of a message lists."""
NEAR = 0.8
"""Similarity, from 0 to 1, above which an absent name counts as misspelled."""


@dataclass(frozen=True)
class Field:
    """A column of a table. `width` is the length of its lists, or None if that is unknown.

    `spelled` names the type in messages. `code` is a value of a number field that is probably a code, such as 01067,
    and `markers` are its numbers that may stand for missing values, such as -999. Numbers in text have a `dialect`, a
    `problem` if their dialect is ambiguous, and counts of the words for `missing` values. `note` is the reason why text
    that looks like numbers is not read as numbers. `zone` is the time zone of timestamps that are instants.
    """

    name: str
    kind: Kind
    width: int | None = None
    spelled: str = ""
    code: str = field(default="", compare=False)
    markers: tuple[str, ...] = field(default=(), compare=False)
    dialect: Dialect = field(default=USUAL, compare=False)
    problem: str = field(default="", compare=False)
    missing: Mapping[str, int] = field(default_factory=dict, compare=False)
    note: str = field(default="", compare=False)
    zone: str = field(default="", compare=False)

    @property
    def numeric(self) -> bool:
        """True if the column can be read as features."""
        return self.kind in ("number", "list")

    @property
    def codable(self) -> bool:
        """True if the column can be read as categories."""
        return self.kind in ("number", "text", "date")

    @property
    def timed(self) -> bool:
        """True if the column can be read as times."""
        return self.kind in ("number", "text", "date", "timestamp") and self.spelled != "bool"


class Table:
    """The columns of an input, and everything known about them before rows are read. Base class of readers."""

    location: str = ""
    """Name of the input in messages."""
    fields: tuple[Field, ...] = ()
    positional: bool = False
    """True if columns have no names of their own: they are called c0, c1, ... by position."""
    untyped: bool = False
    """True if the types of columns are a guess from the first rows, as in CSV."""
    rows: int | None = None
    """Number of rows, if it is known."""
    row_names: frozenset[str] = frozenset()
    """Columns that name the rows, as a pandas index does. They are features only if requested by name."""
    fitting: bool = True
    """True while a map is fitted on the table; False if a map already specifies its columns."""
    asked: Asked = NOTHING_ASKED
    """The parts of the dialect that the user's options give."""
    misread: str = ""
    """The problem if the first bytes do not fit the encoding: names and values may then be wrong."""
    parts: str = ""
    """A description of the files of a data set, such as `3 files`. Empty for a single file."""
    odd_rows: str = ""
    """A sentence about unusual rows, such as rows with another number of fields."""
    filling: str = ""
    """A command that writes `none` into empty fields of column NUMBER (from 1). Empty if values have quotes."""

    def describe_as(self, other: Table) -> None:
        """Copy all attributes of another table except its location and number of rows."""
        self.fields, self.positional, self.untyped = other.fields, other.positional, other.untyped
        self.row_names, self.asked, self.fitting = other.row_names, other.asked, other.fitting
        self.misread, self.odd_rows, self.parts = other.misread, other.odd_rows, other.parts

    @property
    def width(self) -> int:
        """The number of values in a row. A list of unknown length counts as one."""
        return sum(field.width or 1 for field in self.fields)

    @property
    def texts(self) -> frozenset[str]:
        """The names of the columns that the option --text keeps as text."""
        names = [field.name for field in self.fields] if self.asked.texts else ()
        return frozenset(name for _, found in expand(self.asked.texts, names) for name in found)

    def keep_texts(self) -> None:
        """Read the columns of --text as text, even if their values look like numbers or times."""
        expanded = [*expand(self.asked.texts, [field.name for field in self.fields])]
        require(self, [one for one, found in expanded if not found], "--text")
        texts = {name for _, found in expanded for name in found}
        self.fields = tuple(
            Field(one.name, "text", None, "text", dialect=self.asked.dialect) if one.name in texts else one
            for one in self.fields
        )

    def first_texts(self, name: str) -> Sequence[str]:
        """Return the first values of a column of text. Only readers of text know them, so here the result is empty."""
        return ()

    def expect(self, absent: Sequence[str]) -> None:
        """Add these absent columns to the fields if later rows may have them, as in JSON lines."""
        return

    def error(self, problem: str) -> DataError:
        """Return the error about a problem of the whole table."""
        return DataError(f"{self.location}: {problem}")

    def refusal(self, column: str, problem: str) -> DataError:
        """Return the error about a problem of one column."""
        return self.refusals({column: problem})

    def refusals(self, problems: Mapping[str, str]) -> DataError:
        """Return one error with all problems. If the encoding is wrong, name only that, as it can cause the others."""
        lines = [f"column {quoted(column)}: {problem}" for column, problem in problems.items()]
        lines = [self.misread] if self.misread else lines
        return DataError("\n".join(f"{self.location}: {line}" for line in lines))


class Cells(NamedTuple):
    """A column, as its table and its name. Its first values are the basis of advice in messages."""

    table: Table = Table()
    name: str = ""
    label: bool = False

    @property
    def texts(self) -> list[str]:
        """The distinct first values of the column."""
        return [*dict.fromkeys(map(str.strip, self.table.first_texts(self.name)))]

    @property
    def kept(self) -> str:
        """Advice to keep the column as text. Empty for a label, and if no map is being fitted."""
        return f"; {kept_as_text(self.name)}" if self.table.fitting and not self.label else ""


ANYWHERE = Cells()
ANYWHERE.table.fitting = False


def require(table: Table, requested: Iterable[str], origin: str | None = None) -> None:
    """Raise DataError if the table lacks requested names, and suggest similar names that are not requested.

    `origin` names the option or the part of the config that requests them.
    """
    known = [field.name for field in table.fields]
    existing = set(known)
    requests = dict.fromkeys(requested)
    missing = [name for name in requests if name not in existing]
    if missing and table.misread:
        raise table.refusals({})
    if missing:
        free = [name for name in known if name not in requests]
        hints = ", ".join(_with_hint(name, free) for name in missing[:20])
        more = f" and {len(missing) - 20} more" if len(missing) > 20 else ""
        has = ", ".join(map(shown, known[:12])) + (", ..." if len(known) > 12 else "")
        prefix = f"{origin}: " if origin else ""
        raise table.error(
            f"{prefix}expected the {'column' if len(missing) == 1 else 'columns'} {hints}{more}, "
            f"got {has or 'none'}{_folder(table, missing, free, origin)}{_advice(table)}"
        )


def null_options(table: Table, words: Sequence[str]) -> str:
    """Return options that declare these words as missing, and also the words in use, which options would replace."""
    used = [*words, *(table.asked.nulls or ()), *(word for one in table.fields for word in one.missing)]
    # An option need not name NaN, which always counts as missing.
    return options(
        "null-values", (one for one in dict.fromkeys(used) if one in words or one.casefold() != "nan")
    )


def options(name: str, values: Iterable[str]) -> str:
    """Return an option once for each value, such as `--text a --text b`."""
    return " ".join(f"--{name} {shell_word(value)}" for value in values)


def kept_as_text(name: str) -> str:
    """Return the advice to keep a column as text."""
    return f"{options('text', [name])} keeps the column as text"


def as_spelled(table: Table, requested: Iterable[str]) -> list[str]:
    """Return the names. If the table has a name only without the spaces around it, remove these spaces."""
    known = {field.name for field in table.fields}
    return [name if name in known or name.strip() not in known else name.strip() for name in requested]


def refuse_slips(table: Table, absent: Iterable[str], features: Iterable[str], origin: str) -> None:
    """Raise an error if a name to exclude is absent but resembles a feature: a mistyped label would stay a feature."""
    features = list(features)
    for name in absent:
        hint = _with_hint(name, features, NEAR)
        if hint != quoted(name):
            advice = "remove the name if it is meant to be absent"
            raise table.error(f"{origin}: expected the column {hint}; {advice}")


def excluding(names: Iterable[str]) -> str:
    """Return advice to use --exclude with those names that can be written in it, or an empty text if none can."""
    columns = [name for name in names if name and "," not in name and shown(name) == name]
    which = "this column" if len(columns) == 1 else "these columns"
    return f"; --exclude {shell_word(','.join(columns))} leaves {which} out" if columns else ""


def listed(names: Sequence[str]) -> str:
    """Return column names on one line. Long lists are abbreviated."""
    return abbreviated([shown(name) if name else "''" for name in names])


def abbreviated(spelled: list[str]) -> str:
    """Return texts on one line. Long lists are abbreviated."""
    return ", ".join(spelled if len(spelled) <= MOST_LISTED else [*spelled[:8], "…", *spelled[-2:]])


def _with_hint(name: str, known: Sequence[str], least: float = 0.6) -> str:
    meant = near(name, known, least)
    return quoted(name) if meant is None else f"{quoted(name)} (did you mean {quoted(meant)}?)"


def _folder(table: Table, missing: Sequence[str], free: Sequence[str], origin: str | None) -> str:
    """Return advice if a missing column may come from the names of folders, such as year=2024."""
    parts = table.location.split("/")
    for i, part in enumerate(parts[:-1]):
        name, mark, _ = part.partition("=")
        if mark and name in missing:
            return f"; names of folders contain it: give the folder {'/'.join(parts[:i]) or '.'} instead of the file"
    [name, *more] = missing
    if origin or table.fitting or table.positional or more or near(name, free) is not None:
        return ""
    return (
        f"; if names of folders contained it when fitting, put the file into a folder such as {shown(name)}=VALUE, and "
        "give the folder above that"
    )


def _advice(table: Table) -> str:
    """Return advice if the first line was read as names, but the line looks like a row of data, or was not split."""
    known = [field.name for field in table.fields]
    if lacks_names(table):
        return "; is the first line a row (--no-header)?"
    if known and known[0].startswith('{"'):
        return "; are these JSON lines (--input-format jsonl)?"
    if len(known) == 1:
        mark = next((mark for mark in ";\t|, " if mark in known[0]), "")
        if mark and not (mark == " " and table.odd_rows):
            return f"; is the delimiter another character (--delimiter {as_option(mark)})?"
    unread = len(known) == 1 or len({*known}) < len(known)
    return f"; {table.odd_rows}" if unread and table.odd_rows else ""


def indices_of(table: Table, requested: Iterable[str]) -> list[int]:
    """Return the positions of the columns with these names. Each name must exist exactly once."""
    names = list(requested)
    if not names:
        return []
    places = {field.name: i for i, field in enumerate(table.fields)}
    if len(places) < len(table.fields) or not places.keys() >= set(names):
        require(table, names)
        counts = Counter(field.name for field in table.fields)
        for name in names:
            if counts[name] != 1:
                raise table.refusal(
                    name, f"expected one column of that name, got {counts[name]}; rename one{_advice(table)}"
                )
    return [places[name] for name in names]


def fields_of(table: Table, requested: Iterable[str]) -> list[Field]:
    """Return the fields with these names. Each name must exist exactly once."""
    return [table.fields[i] for i in indices_of(table, requested)]


def shown(name: str) -> str:
    """Return a name as it is if it is short and printable, and quoted otherwise."""
    return name if name.isprintable() and len(name) <= LONGEST else quoted(name)


def is_harmful(name: str) -> bool:
    """Return true if a name contains control characters other than white space, which could control a terminal."""
    return any(category(char) == "Cc" and not char.isspace() for char in name)


def lacks_names(table: Table) -> bool:
    """Return true if the names look like a row of data, because all columns of numbers have numbers as names.

    At least two columns of numbers are needed. One is enough if the table has no other column, or if the name of a
    text column is also among its first values.
    """
    counts = Counter(field.name for field in table.fields)
    texts = [field.name for field in table.fields if not field.numeric and counts[field.name] == 1]
    recurs = any(name in table.first_texts(name) for name in texts)
    numbers = [field.name for field in table.fields if field.numeric]
    if not recurs:
        return len(numbers) >= min(2, len(table.fields)) > 0 and are_numbers(numbers)
    return bool(numbers) and are_numbers([*numbers, numbers[0], numbers[0]])


def are_numbers(names: list[str]) -> bool:
    """Return true if the names look like a row of data: they are numbers, but not ascending like wavelengths."""
    try:
        numbers = [float(name) for name in names]
    except ValueError:
        return False
    return len(numbers) < 2 or not all(low < high for low, high in pairwise(numbers))


def unique(names: Iterable[str]) -> bool:
    """Return true if no name occurs twice."""
    return all(count == 1 for count in Counter(names).values())
