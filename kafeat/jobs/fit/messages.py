"""Messages when fitting: callbacks for progress, the line about the features, and warnings about columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from kafeat.config import Config
from kafeat.contract.name_patterns import expand, is_pattern
from kafeat.errors import DataError, counted, quoted, shell_word
from kafeat.io.columns.columns import Column, Columns
from kafeat.io.columns.dialect import ISO, KEEP, UTF8, factors_of
from kafeat.io.columns.fields import (
    MOST_LISTED,
    Cells,
    Field,
    abbreviated,
    fields_of,
    lacks_names,
    listed,
    null_options,
    options,
    shown,
)
from kafeat.io.columns.number_forms import remedy
from kafeat.io.columns.numbers import first_no_number
from kafeat.io.columns.time_forms import LEAST_TIMES, are_times, far_times, guess_dates, late_year
from kafeat.io.columns.times import has_offset
from kafeat.io.readers.base import Reader

# Names of columns that are rarely features, in lower case, without spaces and underscores.
_NO_FEATURES = re.compile(r"(labels?|targets?|y|ytrue|class(es)?|outcome|response|ids?|rowid|uuid|guid)")


LABEL = "--label"
"""The reason in messages why a label column is not a feature."""
_UNLABELLED = "tune, fit and evaluate leave rows without a label out with --drop-unlabelled"
_ENDINGS = ("_id", "_label", "_target", "_class")


def features_line(config: Config, source: Reader, columns: Columns, others: Mapping[str, str]) -> str:
    """Return a line with the features, and with the columns that are left out and the reasons.

    `others` maps columns to the reason why they are left out, such as an option that names them.
    """
    lists = {one.name: one.width for one in columns.features if one.width is not None and not one.text}
    names = [
        one.name + (f" ({lists[one.name]} numbers)" if one.name in lists else "") for one in columns.features
    ]
    line = f"{source.location}: {counted(len(columns.inputs), 'feature')}: {listed(names)}"
    coded = [column.name for column in columns.features if column.categories is not None]
    line += f"; as categories: {listed(coded)}" if coded else ""
    texts = [column.name for column in columns.features if column.text]
    line += f"; as text: {listed(texts)}" if texts else ""
    labels = [field for field in source.fields if others.get(field.name) == LABEL and field.kind == "number"]
    line += _dialect(source, columns, labels)
    reasons = _left_out(config, source, columns, others)
    left_out = [f"{listed(names)} ({_count(names)}{reason})" for reason, names in reasons.items()]
    return line + (f"; left out: {', '.join(left_out)}" if left_out else "")


def _dialect(source: Reader, columns: Columns, labels: Sequence[Field]) -> str:
    """Return how text is read: which columns are times, which forms numbers have, and which words mean missing."""
    fields, asked = {field.name: field for field in source.fields}, source.asked
    times = [_times(source, column) for column in columns.features if column.times]
    read = {column.name: column.dialect for column in columns.features if column.categories is None}
    forms = dict[str, list[str]]()
    for name, dialect in [*read.items(), *((field.name, field.dialect) for field in labels)]:
        special = (dialect.decimal == "," or dialect.dressed) and name not in columns.times
        for what, mark in dialect.seen_in(source.first_texts(name)) if special else ():
            forms.setdefault(f"with {what}", []).append(shown(name) + (f" ({mark})" if mark else ""))
    missing = [
        f"{shown(name)} ({', '.join(f'{word}: {n:,}' for word, n in fields[name].missing.items())})"
        for name in read
        if fields[name].missing
    ]
    parts = {
        "delimiter": [] if asked.delimiter == "," else [repr(asked.delimiter)],
        "encoding": [] if asked.encoding == UTF8 else [asked.encoding],
        "as times": times, **dict(sorted(forms.items())), "missing in the first rows": missing,
    }  # fmt: skip
    return "".join(f"; {what}: {abbreviated(names)}" for what, names in parts.items() if names)


def _times(source: Reader, column: Column) -> str:
    """Return the name of a column of times, with their form and time zone if these matter."""
    dialect, notes = column.dialect, []
    if dialect.dates not in ("", ISO):
        notes.append(dialect.dates)
    if dialect.timezone != KEEP:
        notes.append(f"hours of {dialect.timezone}")
    elif any(map(has_offset, source.first_texts(column.name))):
        notes.append("hours as written, whatever their offset: `timezone` in date_parts names another zone")
    return shown(column.name) + (f" ({', '.join(notes)})" if notes else "")


def text_warning(config: Config, source: Reader, columns: Columns, others: Mapping[str, str]) -> str | None:
    """Return a warning about columns of text that no step reads, for callers who do not see the features line."""
    names = _left_out(config, source, columns, others).get("text")
    if not names:
        return None
    return (
        f"{source.location}: left out as text: {listed(names)}; name them in a one_hot step to take them as "
        "categories, in a text step to take them as words, or in columns.exclude"
    )


def _left_out(
    config: Config, source: Reader, columns: Columns, others: Mapping[str, str]
) -> dict[str, list[str]]:
    """Return the names of the columns that are not features, by the reason."""
    taken, names = {column.name for column in columns.features}, [field.name for field in source.fields]
    excluded = {name for _, found in expand(config.columns.exclude, names) for name in found}
    reasons: dict[str, list[str]] = {}
    for field in (field for field in source.fields if field.name not in taken):
        kind = field.spelled if field.kind == "other" else field.kind
        if field.name in others:
            reason = others[field.name]
        elif config.columns.include:
            reason = "not in columns.include"
        elif field.name in excluded:
            reason = "columns.exclude" if field.numeric else f"{kind}, in columns.exclude"
        else:
            reason = "names of rows" if field.name in source.row_names else kind
        reasons.setdefault(reason, []).append(field.name)
    return reasons


def label_warnings(source: Reader, names: Iterable[str]) -> Iterator[str]:
    """Yield a warning about each label of text whose values are mostly numbers or times.

    Fractions with a word such as `unknown` are an error, because a model with a class for each fraction is useless.
    """
    for field in fields_of(source, names) if source.untyped else ():
        texts = source.first_texts(field.name)
        odd = first_no_number(texts, field.dialect) if field.kind == "number" and not field.problem else ""
        place = f"{source.location}: label {quoted(field.name)}"
        if odd:
            advice = remedy(odd, field.dialect, True, Cells(source, field.name, label=True))
            told = f"{place}: most values are numbers, but {odd[:40]!r} is not, so all are text{advice}; {_UNLABELLED}"
            fraction = re.compile(rf"[0-9]*[{field.dialect.decimal}][0-9]*[1-9]")
            if odd.startswith("#") or any(map(fraction.match, texts)):
                raise DataError(told)
            yield told
        guess = guess_dates(texts, source.asked) if field.kind == "text" else None
        if guess is not None and guess.note:
            yield f"{place}: {guess.note}"
        if guess is not None and guess.share >= LEAST_TIMES:
            yield (
                f"{place}: the values are times, such as {texts[0][:40]!r}, and each becomes a class: to predict a "
                "time, make a column of numbers of it, such as the days since a date"
            )


def fit_warnings(
    config: Config, source: Reader, columns: Columns, labelled: bool, labels: Sequence[str] = ()
) -> Iterator[str]:
    """Yield warnings about columns that are used as features but probably are not, and about odd values of labels."""
    names = [field.name for field in source.fields]
    if source.untyped and not source.positional and lacks_names(source):
        first = ", ".join([field.name for field in source.fields if field.numeric][:3])
        yield (
            f"{source.location}: the names of the columns are numbers ({first}, …); if the first line is a row, "
            "read it with --no-header"
        )
    if source.odd_rows:
        yield f"{source.location}: {source.odd_rows}"
    yield from _codes(source, columns)
    yield from _absent_units(source)
    yield from _markers(source, columns, labels)
    for column in columns.features if source.untyped else ():
        if column.times and (why := late_year(source.first_texts(column.name), column.dialect)):
            yield f"{source.location}: column {quoted(column.name)}: {why}"
    excluded = {name for _, found in expand(config.columns.exclude, names) for name in found}
    for field in source.fields:
        if field.note and field.name not in excluded:
            yield f"{source.location}: column {quoted(field.name)}: {field.note}"
    if config.columns.include:
        return
    absent = [name for name in config.columns.exclude if name not in names and not is_pattern(name)]
    if absent and not labelled and not source.positional:
        missing = ", ".join(map(quoted, absent))
        yield f"{source.location}: nothing was left out as {missing} (columns.exclude): the file has no such column"
    if not source.positional:
        yield from _likely_labels(source.location, columns, names)


def _markers(source: Reader, columns: Columns, labels: Sequence[str]) -> Iterator[str]:
    """Yield a warning about numbers and times of features and labels that may stand for missing values."""
    read = {*columns.names, *labels}
    marked = {field.name: field.markers for field in source.fields if field.markers and field.name in read}
    for column in columns.features if source.untyped else ():
        if column.times:
            far = far_times(source.first_texts(column.name), column.dialect)
            marked |= {column.name: far} if far else {}
    if not marked:
        return
    values = {field.name: {*map(str.strip, source.first_texts(field.name))} for field in source.fields}
    which = ", ".join(f"{quoted(name)} ({', '.join(words)})" for name, words in [*marked.items()][:8])
    words = [word for markers in marked.values() for word in markers]
    also = [
        f"{shown(name)} ({word})"
        for word in dict.fromkeys(words)
        for name in values
        if word in values[name] and word not in marked.get(name, ())
    ]
    advice = "; if those are real values, empty only the others in the file" if also else ""
    advice += f"; {_UNLABELLED}" if {*labels} & {*marked} else ""
    yield (
        f"{source.location}: values that repeat, and are far from all others: {which}: if they stand for what is "
        f"missing, {null_options(source, words)} reads them so"
        f"{', and also those in ' * bool(also)}{abbreviated(also)}{advice}"
    )


def _likely_labels(place: str, columns: Columns, names: list[str]) -> Iterator[str]:
    """Yield a warning about features that are named like labels or row ids."""
    plain = [one.name for one in columns.features if one.categories is None and not one.text]
    odd = [name for name in plain if _is_no_feature(name, names)]
    if odd:
        which, meant = ("is", "is it") if len(odd) == 1 else ("are", "is one of them")
        yield (
            f"{place}: {', '.join(map(quoted, odd[:3]))}{', …' if len(odd) > 3 else ''} {which} taken for "
            f"{'a feature' if len(odd) == 1 else 'features'}: {meant} the label (--label), or no feature "
            "(columns.exclude)?"
        )


def _codes(source: Reader, columns: Columns) -> Iterator[str]:
    """Yield a warning about numbers of CSV that begin with zeros, such as postcodes, or seem to be versions."""
    numbers = {one.name for one in columns.features if one.categories is None and not one.times}

    def told(field: Field) -> str:
        return are_times(source.first_texts(field.name), source.asked)[1]

    codes = [field for field in source.fields if field.code and field.name in numbers and not told(field)]
    if codes:
        which = ", ".join(f"{quoted(field.name)} ({field.code})" for field in codes[:3])
        names = [field.name for field in codes]
        ends = "beginning" if all(re.match("0[0-9]", field.code) for field in codes) else "end"
        yield (
            f"{source.location}: {which}{', …' if len(codes) > 3 else ''}: zeros at the {ends} are lost, as "
            f"{'this column is' if len(codes) == 1 else 'these columns are'} read as numbers. If the values are codes, "
            f"{options('text', names)} keeps them as text: as categories in `tune`, and for `one_hot` in a config. "
            f"{options('exclude', [','.join(names)])} leaves the column{'s' * (len(codes) > 1)} out"
        )


def _absent_units(source: Reader) -> Iterator[str]:
    """Yield a warning about units that are requested but that no column of numbers has."""
    numbers = [field.name for field in source.fields if field.kind == "number"]
    columns = listed([field.name for field in source.fields])
    for unit in source.asked.units if source.untyped else ():
        [word] = factors_of([unit])
        if not any(word in text for name in numbers for text in source.first_texts(name)):
            option = f"--unit {shell_word(unit)}"
            yield f"{source.location}: {option}: no numbers in the first rows have it, in none of {columns}"


def _count(names: list[str]) -> str:
    """Return the number of names, such as `120, `, if `listed` shows only some of them, and '' if it shows all."""
    return f"{len(names):,}, " if len(names) > MOST_LISTED else ""


def _is_no_feature(name: str, names: list[str]) -> bool:
    """Return true if the name suggests a label or a row id. Next to a column `x`, the name `y` does not."""
    plain = re.sub(r"[\s_-]", "", name).casefold()
    if plain == "y" and "x" in {other.casefold() for other in names}:
        return False
    return _NO_FEATURES.fullmatch(plain) is not None or name.casefold().endswith(_ENDINGS)


Say = Callable[[str], None]


def _ignore(_: object) -> None:
    """Do nothing."""


@dataclass(frozen=True)
class Listener:
    """Callbacks for the progress of a fit.

    Attributes:
        rows: Called with the number of rows that were read since the last call.
        phase: Called with the name of the current phase.
        inform: Called with a line about the columns.
        warn: Called with a sentence about input that is valid but may be a mistake.
    """

    rows: Callable[[int], None] = _ignore
    phase: Say = _ignore
    inform: Say = _ignore
    warn: Say = _ignore

    def once(self) -> Listener:
        """Return a listener for several fits. It passes on each line and each warning only once."""
        return replace(self, inform=cache(self.inform), warn=cache(self.warn))


SILENT = Listener()
