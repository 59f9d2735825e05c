"""Choose the feature columns when a map is fitted, and match them to the columns of other tables."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from kafeat.contract.coding import Coding
from kafeat.contract.name_patterns import expand, is_pattern
from kafeat.contract.ngrams import BUCKETS
from kafeat.contract.step import DOUBLE
from kafeat.contract.traits import ColumnTraits
from kafeat.errors import quoted
from kafeat.io.columns.categories import Vocabulary
from kafeat.io.columns.columns import Column, Columns
from kafeat.io.columns.dialect import ISO, KEEP, NOTHING_ASKED
from kafeat.io.columns.fields import Cells, excluding, fields_of, is_harmful, options, refuse_slips, require
from kafeat.io.columns.numbers import first_no_number, spell_problem
from kafeat.io.columns.time_forms import MOSTLY, Guess, digits_form, guess_dates

if TYPE_CHECKING:
    from kafeat.io.columns.fields import Field, Table


_PLAIN = ColumnTraits()


def choose(
    table: Table,
    include: Sequence[str] | None,
    exclude: Sequence[str],
    labels: Sequence[str],
    read: ColumnTraits = _PLAIN,
    missing: bool = False,
) -> Columns:
    """Choose the columns to fit on: those in `include`, or all numeric columns but row names, `exclude` and labels.

    Columns that `read` names are features of any type: categories, whose vocabularies grow while the table is read (see
    `Columns.settled`), times, and texts as counts of n-grams. All names may be shell patterns. Columns in `exclude` may
    be absent, so that one config serves files with labels and without.
    """
    require(table, labels, "--label")
    left_out = {*_expanded(table, exclude, "columns.exclude"), *labels}
    if include is not None:
        include = [name for name in _expanded(table, include, "columns.include") if name not in left_out]
        require(table, include, "columns.include")
    special = dict[str, tuple[str, Any]]()
    for requested, kind in ((read.coded, "one_hot"), (read.times, "date_parts"), (read.texts, "text")):
        named = _special(table, requested, include, left_out, kind)
        for name in (name for name in named if name in special):
            raise table.refusal(name, f"expected one step to read it, got {special[name][0]} and {kind}")
        special |= {name: (kind, how) for name, how in named.items()}
    fields = _numeric(table, left_out, set(special)) if include is None else fields_of(table, include)
    fields_of(table, (field.name for field in fields))
    steps = [(field, *special.get(field.name, ("", None))) for field in fields]
    for field, kind, _ in steps:
        _check_feature(table, field, kind)
    if not fields:
        raise table.error(f"expected at least one numeric feature column, got none{_texts(table)}")
    forms = {field.name: times_of(table, field) for field, kind, _ in steps if kind == "date_parts"}
    unread = [field for field, kind, _ in steps if not kind]
    refuse_unclear(table, [*unread, *fields_of(table, labels)], forms, missing, labels)
    features = tuple(_feature(table, *step, forms.get(step[0].name)) for step in steps)
    groups = frozenset(name for name, (_, how) in special.items() if isinstance(how, Coding) and how.group)
    chosen = Columns(features, table.positional, _width(table), missing, groups)
    _refuse_one_name(table, chosen)
    return chosen


def _expansions(table: Table, requested: Iterable[str], origin: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each requested name or pattern with the columns that match it. Patterns do not match row names."""
    for request, found in expand(requested, (field.name for field in table.fields)):
        matched = found if found == [request] else [name for name in found if name not in table.row_names]
        if not matched and is_pattern(request):
            raise table.error(f"{origin}: expected columns that match {quoted(request)}, got none")
        yield request, matched or [request]


def _expanded(table: Table, requested: Iterable[str], origin: str) -> list[str]:
    return list(dict.fromkeys(name for _, names in _expansions(table, requested, origin) for name in names))


def _special(
    table: Table,
    requested: Mapping[str, Any] | Sequence[str],
    include: Sequence[str] | None,
    left_out: set[str],
    kind: str,
) -> dict[str, Any]:
    """Return the features that a step names, by name or pattern, with their values in `requested`.

    If `requested` is a list, the values are None. A name or pattern without a feature is an error.
    """
    special = dict[str, Any]()
    how = requested if isinstance(requested, Mapping) else dict.fromkeys(requested)
    included = None if include is None else set(include)
    expansions = list(_expansions(table, how, kind))
    require(table, (name for _, names in expansions for name in names), kind)
    for request, names in expansions:
        features = [n for n in names if n not in left_out and (included is None or n in included)]
        if not features:
            raise table.refusal(
                names[0],
                f"expected a feature, because {kind} names it, got a column that is left out, or is the label, the "
                "weight or the split: remove it from the columns of the step",
            )
        special |= dict.fromkeys(features, how[request])
    return special


def _numeric(table: Table, left_out: set[str], special: set[str]) -> list[Field]:
    """Return the numeric fields and those that a step names (`special`), without `left_out` and the row names."""
    excluded = left_out | (table.row_names - special)
    fields = [f for f in table.fields if (f.numeric or f.name in special) and f.name not in excluded]
    if not table.positional:
        absent = left_out.difference(field.name for field in table.fields)
        refuse_slips(table, sorted(absent), [field.name for field in fields], "columns.exclude")
    return fields


def _check_feature(table: Table, field: Field, kind: str) -> None:
    """Raise an error if a step of this kind cannot read the column. Without a kind, the column must hold numbers."""
    if is_harmful(field.name):
        raise table.refusal(field.name, "expected a name without control characters")
    if kind:
        _check_special(table, field, kind != "date_parts")
    elif field.kind == "list" and field.width is None:
        problem = "expected lists of numbers in the first rows, got none; leave it out with columns.exclude"
        raise table.refusal(field.name, problem)
    elif not field.numeric:
        advice = f"; one_hot codes {field.kind}s" if field.codable else ""
        advice += "; date_parts makes numbers of it" if field.kind in ("date", "timestamp") else ""
        raise table.refusal(field.name, f"expected numbers, got {field.spelled}{advice}")


def _feature(table: Table, field: Field, kind: str, how: Any, times: Guess | None) -> Column:
    """Return the column of a field as a step of this kind reads it; for categories, with an empty vocabulary."""
    if kind == "text":
        return Column(field.name, BUCKETS, text=True, dialect=table.asked.dialect)
    column = replace(_column(field), dialect=field.dialect if table.untyped else table.asked.dialect)
    if kind == "one_hot":
        place = f"{table.location}: column {quoted(field.name)}"
        return replace(column, categories=Vocabulary(place, how))
    if times is None:
        return column
    zone = field.zone if how == KEEP and field.zone else how
    return replace(column, times=True, dialect=replace(column.dialect, timezone=zone, dates=times.form))


def times_of(table: Table, field: Field, known: str = "") -> Guess:
    """Return the form of the times of a column, or the problem. Columns of other types than text give ISO 8601."""
    if field.kind != "text" and not table.untyped:
        return Guess(ISO, 1.0)
    texts = table.first_texts(field.name)
    guess = guess_dates(texts, replace(table.asked, dates=(*table.asked.dates, *filter(None, [known]))))
    if field.kind == "number" and texts and guess.share < MOSTLY:
        form = digits_form(texts, table.asked)
        read = (
            f"{form} reads them" if form else "%s reads seconds since 1970, and %Y%m%d dates such as 20240229"
        )
        problem = f"expected times, got numbers such as {texts[0]!r}; --date-format {read}"
        return guess._replace(problem=problem)
    return guess


def date_form(table: Table, field: Field, known: str = "") -> str:
    """Return the form of a column's times, or raise an error if it is not clear. The form `known` is preferred."""
    guess = times_of(table, field, known)
    refuse_unclear(table, (), {field.name: guess}, labels=[field.name])
    return guess.form


def refuse_unclear(
    table: Table,
    numbers: Iterable[Field],
    times: Mapping[str, Guess],
    may_miss: bool = False,
    labels: Collection[str] = (),
) -> None:
    """Raise one error for all columns of numbers and times that can be read in several ways.

    The error also lists words in the first rows that are not numbers. With `may_miss`, it has advice on missing values.
    """
    numbers = [field for field in numbers if field.kind == "number"]
    problems = {field.name: field.problem for field in numbers if field.problem}
    problems |= {name: guess.problem for name, guess in times.items() if guess.problem}
    for field in numbers if problems and table.untyped else ():
        word = "" if field.problem else first_no_number(table.first_texts(field.name), field.dialect)
        if word:
            cells = Cells(table, field.name)
            problems[field.name] = spell_problem(word, None, 0, DOUBLE, field.dialect, may_miss, cells)
    if problems:
        *_, last = [field.name for field in table.fields if field.name in problems]
        others = [name for name in problems if name not in labels and "--" not in problems[name]]
        problems[last] += excluding(others)
        if others and table.fitting and all(field.problem for field in numbers if field.name in others):
            them = "it" if len(others) == 1 else "them"
            problems[last] += f", and {options('text', others)} keeps {them} as text"
        raise table.refusals({one.name: problems[one.name] for one in table.fields if one.name in problems})


def _refuse_one_name(table: Table, columns: Columns) -> None:
    """Raise an error if a column is named like an element of a list column, such as x[0]: names must be unique."""
    single = {column.name for column in columns.features if column.width is None}
    for column in columns.features if single else ():
        for name in (f"{column.name}[{i}]" for i in range(column.width or 0)):
            if name in single:
                of = f"an element of the list column {quoted(column.name)}"
                raise table.refusal(
                    name, f"expected another name than that of {of}, got the same; rename one"
                )


def _check_special(table: Table, field: Field, coded: bool) -> None:
    """Raise an error for a column that cannot be read as categories (if `coded`) or as times (if not)."""
    expected, advice = "timestamps, dates, ISO text or seconds since 1970", ""
    if coded:
        expected, advice = "text, numbers, dates or categories", "; cast it to a date or to text"
    if not (field.codable if coded else field.timed):
        raise table.refusal(field.name, f"expected {expected}, got {field.spelled}{advice}")


def match(table: Table, columns: Columns, not_features: Sequence[str], origin: str | None = None) -> Columns:
    """Match the columns of a fitted map to another table, by name if both have names, and by position if one has none.

    `origin` names the option that lists `not_features`.
    """
    require(table, not_features, origin)
    same = columns.positional and table.positional and columns.input_width == _width(table)
    names, known = [column.name for column in columns.features], {field.name for field in table.fields}
    absent = [name for name in names if name not in known]
    if not (columns.positional or table.positional) or (same and not absent):
        if absent:
            table.expect(absent)
            why = "the groups by which the model has its folds (group, split_by)"
            require(table, [name for name in absent if name in columns.groups], why)
        return _read_as(table, columns, fields_of(table, names))
    fields = _candidates(table, columns, {*not_features, *table.row_names})
    found = Columns(tuple(map(_column, fields)), table.positional, _width(table), columns.missing)
    texts = any(column.text for column in columns.features)
    if found.n_features != columns.n_features and not (texts and len(fields) == len(columns.features)):
        raise table.error(
            f"expected {columns.n_features} feature columns, got {found.n_features}"
            f"{_texts(table)}; columns without names are matched by position: "
            "remove a column that is not a feature, or name it as the label or in --keep"
        )
    fields_of(table, (field.name for field in fields))
    _refuse_one_name(table, found)
    if [field.width for field in fields] == [None if c.text else c.width for c in columns.features]:
        return _read_as(table, columns, fields)
    if not columns.plain:
        some = "times" if columns.times else "categories" if any(columns.n_categories) else "texts"
        raise table.error(f"expected one column for every feature, because some are {some}, got lists")
    return _as_asked(table, found)


def _candidates(table: Table, columns: Columns, left_out: set[str]) -> list[Field]:
    """Return the fields that may be the features of a map, by their position."""
    coded = any(column.special and not column.times for column in columns.features)
    readable = (f for f in table.fields if f.numeric or (coded and f.codable) or (columns.times and f.timed))
    fields = [field for field in readable if field.name not in left_out]
    if table.rows == 0 and table.untyped:
        # Without rows, nothing shows which columns are text and which are numbers.
        fields = fields[: columns.n_features]
    # If one list column has an unknown length, it gets the features that the other columns leave.
    unknown = [field for field in fields if field.kind == "list" and field.width is None]
    rest = columns.n_features - sum(field.width or 1 for field in fields if field not in unknown)
    if len(unknown) != 1 or rest < 1:
        return fields
    return [replace(field, width=rest) if field in unknown else field for field in fields]


def _read_as(table: Table, columns: Columns, fields: Sequence[Field]) -> Columns:
    """Return columns for these fields, each read like the fitted column at the same position."""
    features = []
    for column, field in zip(columns.features, fields, strict=True):
        if column.special:
            _check_special(table, field, not column.times)
        elif not _fits(table, field, column):
            got = _spell(_column(field)) if field.kind == "number" or field.width else field.spelled
            raise table.refusal(field.name, f"expected {_spell(column)}, got {got}")
        features.append(column if column.name == field.name else replace(column, name=field.name))
    return _as_asked(table, Columns(tuple(features), table.positional, _width(table), columns.missing))


def _as_asked(table: Table, columns: Columns) -> Columns:
    """Return the columns with dialects in which the user's options for this table replace those of the map."""
    if not columns.times and replace(table.asked, dates=()) == NOTHING_ASKED:
        return columns  # a shortcut for tables in memory: for a few rows, every millisecond counts
    features, fields = [], fields_of(table, (column.name for column in columns.features))
    for column, field in zip(columns.features, fields, strict=True):
        dialect, asked = column.dialect, table.asked
        if asked.nulls is not None:
            dialect = replace(dialect, nulls=asked.nulls)
        if (asked.decimal or asked.thousands or asked.units) and table.untyped:
            # If the column is ambiguous, only the options apply. Rows that they cannot read are rejected one by one.
            dialect = asked.over(dialect, asked.numbers if field.problem else field.dialect)
        if asked.dates and column.times:
            dialect = replace(dialect, dates=date_form(table, field, dialect.dates))
        if field.zone and column.times and dialect.timezone == KEEP:
            raise table.refusal(
                field.name,
                f"expected times without a zone, as when fitting, got instants with the zone {field.zone}; fit with "
                f"`timezone: {field.zone}`, or the zone of the place, in date_parts",
            )
        features.append(column if dialect == column.dialect else replace(column, dialect=dialect))
    return replace(columns, features=tuple(features))


def _fits(table: Table, field: Field, column: Column) -> bool:
    if field.kind == "list":
        # The field has no width if the table has no rows. A list of another width is rejected when it is read.
        return column.width is not None and field.width in (None, column.width)
    # A guess from the first rows must not reject a column. A row with text is rejected when it is read.
    return column.width is None and (field.numeric or (table.untyped and field.kind == "text"))


def _column(field: Field) -> Column:
    return Column(field.name, field.width)


def _width(table: Table) -> int | None:
    return table.width if table.positional else None


def _spell(column: Column) -> str:
    return "numbers" if column.width is None else f"lists of {column.width} numbers"


def _texts(table: Table) -> str:
    texts = [f"{quoted(field.name)} ({field.spelled})" for field in table.fields if not field.numeric]
    return f" (not numeric: {', '.join(texts[:5])}{', ...' if len(texts) > 5 else ''})" if texts else ""
