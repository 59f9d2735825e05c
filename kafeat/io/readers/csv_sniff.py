"""Detect the names and kinds of the columns of a CSV file from its first rows."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafeat.errors import DataError, quoted, spell_row
from kafeat.io.columns.dialect import CODE, Asked, Dialect, as_option
from kafeat.io.columns.fields import Field, kept_as_text
from kafeat.io.columns.number_forms import NumberForm, guess_numbers, note_of, remedy, unclear
from kafeat.io.columns.numbers import NOT_FINITE, doubles, far_ends, to_doubles, with_points, without_nulls
from kafeat.io.readers.csv_layout import MOST_TITLES, Layout, line_of_names
from kafeat.io.readers.text_stream import LONGEST, LOOK, DecompressedStream, growing
from kafeat.types import Floats


@dataclass(frozen=True)
class CsvHead:
    """The fields of a CSV file, their first values, and the number of bytes to parse at a time (`block`).

    `skip` is the number of rows before the data. `empty` means that there is no data. `blanks` means that a blank line
    is a row. `odd_rows` describes unusual rows, `wide` is advice on rows with one field too many, and `short` is advice
    on rows with too few fields.
    """

    fields: tuple[Field, ...]
    values: tuple[list[str], ...]
    block: int
    skip: int
    empty: bool
    blanks: bool
    odd_rows: str
    wide: str
    short: str
    filling: str


def sniff(
    text: DecompressedStream, delimiter: str, header: bool, asked: Asked, seen: Collection[str] = ()
) -> CsvHead:
    """Inspect the first rows of a CSV text. Reading `text` afterwards returns them again.

    At a pause of a pipe, rows with a value in each column of `seen` (without a header, in each column) are enough.
    """
    lines = _first_rows(text, delimiter, seen if header else None)
    first = next((index for index, line in enumerate(lines) if line), None)
    if first is None:
        raise text.error(f"expected {'a header line' if header else 'rows'}, got an empty file")
    layout = Layout(text, delimiter, lines, first)
    if header and (advice := layout.no_names()):
        raise text.error(advice)
    names = lines[first] if header else [f"c{i}" for i in range(layout.width)]
    # With one column, a blank line is a missing value. With more, it is ignored.
    blanks = len(names) == 1
    rows = [row or [""] for row in lines] if blanks else [row for row in lines if row]
    skip = int(header) + (first if header and blanks else 0)
    rows = rows[skip:]
    empty = text.whole and not rows
    wide = layout.too_wide(rows)
    if wide and all(len(row) > len(names) for row in rows):
        raise text.error(
            f"expected {len(names)} fields in each row, as in the line of names, got a delimiter at the "
            f"end of each: {wide}"
        )
    wide = f", a delimiter at the end: {wide}" if wide else layout.other_quotes(rows)
    wide = wide or (layout.named_rows(rows) if header else "")
    short = layout.too_short(rows)
    # Leave short and long rows to the reader, which rejects them with their row numbers.
    rows = [row for row in rows if len(row) == len(names)]
    columns = [[row[i] for row in rows] for i in range(len(names))]
    fields = guessed(names, columns, asked)
    odd_rows = layout.odd_rows(fields, columns) if rows and header else ""
    block = LOOK * max(1, len(names) // _NARROW)
    filling = layout.changed('if ($NUMBER == "") $NUMBER = "none"')
    return CsvHead(fields, tuple(columns), block, skip, empty, blanks, odd_rows, wide, short, filling)


def found_delimiter(text: DecompressedStream, usual: str) -> str:
    """Return the delimiter that splits all lines into equally many fields, or `usual` if there is none.

    Titles above the line of names and notes at the end of the file do not count.
    """
    head = text.look(LOOK)
    while not (text.whole or re.search(rb"[^\r\n][\r\n]", head) or len(head) >= LOOK):
        head = text.look(LOOK, beyond=len(head))
    first = re.split(rb"[\r\n]", head.lstrip(b"\r\n"), maxsplit=1)[0]
    where = first if re.search(b"[,;\t|]", first) else head  # the first line may be a title
    marks = [usual, *(mark for mark in ",;\t|" if mark != usual and mark.encode() in where)]
    even = [mark for mark in marks if _even(text, head, mark)] if len(marks) > 1 else []
    if len(even) > 1:
        raise text.error(
            f"expected one delimiter, got {' and '.join(map(repr, even))}, each of which gives every line "
            f"the same number of fields: {' or '.join(f'--delimiter {as_option(mark)}' for mark in even)}"
        )
    return even[0] if even else usual


def _even(text: DecompressedStream, head: bytes, mark: str) -> bool:
    try:
        rows = _parsed(text, head, mark)
    except DataError:
        return False
    rows = [row for row in rows if row]
    widths = [len(row) for row in rows[line_of_names(rows) if rows else 0 :]]
    end = max((at + 1 for at, width in enumerate(widths) if width == widths[0]), default=0)
    below = widths[end:]  # lines below the table are notes if they are few and narrow
    if len(below) < min(end, MOST_TITLES) and all(width < widths[0] for width in below):
        widths = widths[:end]
    return len({*widths}) == 1 and widths[0] > 1


def _first_rows(text: DecompressedStream, delimiter: str, seen: Collection[str] | None) -> list[list[str]]:
    """Return the rows in the first bytes. More bytes are read until there are two rows, or enough rows at a pause."""
    for head, paused in growing(text, "CSV"):
        # `_parsed` drops the last row. At a pause, `|` becomes the row to drop, and a final CR may be half a CRLF.
        known = head.removesuffix(b"\r") + b"|" if paused else head
        rows = _parsed(text, known, delimiter)
        count = sum(map(bool, rows))
        if _show(rows, seen) if paused else count >= 2 or text.whole:
            return rows
    raise text.error(f"expected rows of less than {LONGEST} bytes, got a longer one; is a quote left open?")


def _show(rows: list[list[str]], seen: Collection[str] | None) -> bool:
    """Return true if each column in `seen` has a value. If `seen` is None, for CSV without a header, check all."""
    rows = [row for row in rows if row]
    if not rows:
        return False
    places = [i for i, name in enumerate(rows[0]) if seen is None or name.strip() in seen]
    filled = [row for row in rows[seen is not None :] if len(row) == len(rows[0])]
    return all(any(row[i] for row in filled) for i in places)


def _parsed(text: DecompressedStream, head: bytes, delimiter: str) -> list[list[str]]:
    # The reader rejects invalid UTF-8, wherever it occurs.
    decoded = head.decode("utf-8-sig", errors="replace")
    csv.field_size_limit(LONGEST * 2)
    try:
        rows = list(csv.reader(io.StringIO(decoded, newline=""), delimiter=delimiter))
    except csv.Error as error:
        raise text.error(f"expected CSV, got: {error}") from error
    return rows if text.whole else rows[:-1]


def guessed(names: Sequence[str], columns: Sequence[list[str]], asked: Asked) -> tuple[Field, ...]:
    """Guess the fields of columns from their first values."""
    fields = [_field(name, values, asked) for name, values in zip(names, columns, strict=True)]
    clear = [field.dialect for field in fields if not field.problem]
    decimals, groups = any(one.decimal == "," for one in clear), any(one.thousands == "," for one in clear)
    if decimals != groups:  # read an ambiguous 1,234 as the clear columns are read
        decimal, thousands = asked.decimal or "," * decimals or None, asked.thousands or "," * groups or None
        told = replace(asked, decimal=decimal, thousands=thousands)
        again = zip(fields, columns, strict=True)
        fields = [_field(one.name, values, told) if one.problem else one for one, values in again]
    if any(field.dialect.decimal == "," for field in fields):
        fields = _beside_commas(fields, columns, asked)
    elif asked.decimal is None and asked.thousands is None:
        fields = _beside_no_commas(fields, columns, asked)
    for i, field in enumerate(fields if asked.decimal is None else ()):
        if field.dialect.thousands:
            whole = not any(field.dialect.decimal in word for word in _filled(field, columns[i]))
            fields[i] = replace(field, dialect=replace(field.dialect, whole=whole))
    return tuple(fields)


def _filled(field: Field, values: Iterable[str]) -> Iterator[str]:
    """Yield the values of a field that are neither empty nor words for missing values."""
    return (word for word in map(str.strip, values) if word and word not in field.missing)


def _beside_no_commas(fields: list[Field], columns: Sequence[list[str]], asked: Asked) -> list[Field]:
    """Return the fields of a file without decimal commas. In a column with 1.230 and 5, the point separates thousands.

    A program would write the decimal 1.230 as 1.23. Semicolons as delimiters are also evidence, because files with
    decimal commas use them. The column stays decimal, with a note, if other columns have decimal points or the
    evidence is weak.
    """
    again, words, points = list(fields), dict[int, list[str]](), False
    for i, (field, values) in enumerate(zip(fields, columns, strict=True)):
        if field.numeric and "." in "\n".join(values):
            if _of_json(values) or not all(map(_THOUSANDS.fullmatch, _filled(field, values))):
                points |= any("." in word for word in _filled(field, values))
            else:
                words[i] = [*_filled(field, values)]
    for i, present in words.items():
        large = [word for word in present if "." in word]
        semicolons, mixed = asked.delimiter == ";", len(large) < len(present)
        if mixed and not points and (semicolons or any(map(_LAST_ZERO.search, large))):
            again[i] = _field(fields[i].name, columns[i], replace(asked, decimal=","))
        if large and (mixed or semicolons) and (again[i].problem or not again[i].dialect.thousands):
            note = f"values such as {large[0]} are read as decimals; --thousands . reads {large[0].replace('.', '')}"
            again[i] = replace(fields[i], note=note)
    return again


def _beside_commas(fields: list[Field], columns: Sequence[list[str]], asked: Asked) -> list[Field]:
    """Return the fields of a file with decimal commas, in which points separate thousands: 1.234 means 1234.

    If other columns have decimal points, 1.234 is ambiguous, and the dialect of whole numbers keeps the point.
    """
    again, whole, points = list(fields), set[int](), False
    for i, (field, values) in enumerate(zip(fields, columns, strict=True)):
        commas = "," in (field.dialect.decimal, field.dialect.thousands)
        if commas or not field.numeric or _of_json(values):
            continue
        if any("." in value for value in values):
            again[i] = _field(field.name, values, replace(asked, decimal=","))
            points |= again[i].numeric and again[i].dialect.decimal == "." and not again[i].problem
        else:
            again[i] = replace(field, dialect=replace(field.dialect, decimal=","))
            whole.add(i)
    for i, values in enumerate(columns if points else ()):
        field = again[i] = fields[i] if i in whole else again[i]
        if field.dialect.thousands == "." and fields[i].dialect.decimal == "." and not asked.thousands:
            word = next(word for word in _filled(fields[i], values) if "." in word)
            row = next(row for row, value in enumerate(values) if value.strip() == word)
            again[i] = replace(fields[i], problem=f"{spell_row(row)}: {unclear(word, '.', True)}")
            continue
        first = next((value.strip() for value in values if "," in value), "")
        told = asked.decimal is not None or asked.delimiter != "," or field.note or field.problem
        if field.numeric and field.dialect.decimal == "," and _ANSWERS.fullmatch(first) and not told:
            read = f"values such as {first} are read with decimal commas, although other columns have decimal points"
            again[i] = replace(field, note=f"{read}; {kept_as_text(field.name)}")
    return again


def _of_json(values: Iterable[str]) -> bool:
    """Return true if values are numbers of JSON, which have a point in any dialect."""
    return any(isinstance(value, JsonNumber) for value in values)


def _field(name: str, values: list[str], asked: Asked) -> Field:
    """Return a number field if most filled cells are numbers, despite a few words, and a text field if not."""
    numbers = doubles(values) if asked.plain else None
    if numbers is not None:
        return _odd(Field(name, "number", None, "numbers", dialect=asked.dialect), values, numbers)
    nulls, dialect = asked.dialect.null_words, asked.numbers
    filled = [row for row, value in enumerate(values) if value.strip() not in nulls]
    if values and not filled:
        return Field(name, "text", None, "empty fields", dialect=dialect)
    counts = Counter(value.strip() for value in values) if len(filled) < len(values) else {}
    words_in_order = (*asked.dialect.nulls, r"\N")  # \N, of MySQL, is one of the default words
    missing = {word: counts[word] for word in words_in_order if word in counts and word in nulls}
    number = Field(name, "number", None, "numbers", dialect=dialect, missing=missing)
    # Leave out bytes that are not UTF-8, which may be a unit or a blank. The reader rejects them where they occur.
    texts = [
        text.replace("\ufffd", "") if "\ufffd" in text else text for text in map(values.__getitem__, filled)
    ]
    numbers = to_doubles(pa.array(texts, pa.string()))
    words = [
        row
        for row, text, value in zip(filled, texts, numbers, strict=True)
        if np.isnan(value) and not NOT_FINITE.fullmatch(text.strip())
    ]
    # JSON numbers always have a point, so only texts show how a column writes numbers.
    spelled = [text for text in texts if not isinstance(text, JsonNumber)]
    # ZIP codes have equally many digits, and some have a hyphen and more digits after them.
    zips = [*map(_STEM.fullmatch, map(str.strip, texts))] if words else []
    stems = all(zips) and len({len(match[1]) for match in zips if match}) == 1
    looked_at = (words or (spelled and not asked.plain)) and not stems
    form = guess_numbers(spelled, asked) if looked_at else NumberForm()
    if form.dialect is not None:
        row = next((row for row in filled if values[row].strip() == form.shown), 0)
        problem = form.problem and f"{spell_row(row)}: {form.problem}"
        number = replace(number, dialect=form.dialect, problem=problem, note=form.note)
        return _odd(number, texts, to_doubles(pa.array(texts, pa.string()), form.dialect))
    if not words or (2 * len(words) < len(filled) and not stems):
        return _odd(number, texts, numbers)
    first = values[words[0]]
    shown = f"text ({first[:60]!r} in {spell_row(words[0])})"
    note = form.note or note_of(texts)
    return Field(name, "text", None, shown, dialect=dialect, missing=missing, note=note)


def _odd(field: Field, texts: Sequence[str], numbers: Floats) -> Field:
    """Return a number field with its possible markers (-999) and codes (007), or a text field for codes like 98E02."""
    lines = "\n".join(["", *texts, ""])
    code = _EXPONENT.search(lines) if "e" in lines or "E" in lines else None
    if code is not None and not isinstance(texts[0], JsonNumber):
        alike = re.fullmatch(CODE, code[1]) is not None and len(set(map(len, texts))) == 1
        others = [text for text in map(str.strip, texts) if not _EXPONENT.fullmatch(f"\n{text}\n")]
        beside = "E" in code[1] and all(map(str.isdigit, others))
        if alike or (beside and others and float(code[1]) > _FAR * max(map(float, others))):
            why = f"all have {len(code[1])} characters" if alike else f"others are such as {others[0]}"
            note = f"values such as {code[1]!r} are read as codes and not as numbers, as {why}"
            return replace(field, kind="text", spelled=f"text ({code[1]!r})", note=note)
        if beside:
            note = f"{code[1]} is read as {float(code[1]):g}; {kept_as_text(field.name)}"
            field = replace(field, note=field.note or note)
    zeros, known = _ZEROS.search(lines), numbers[np.isfinite(numbers)]
    if np.abs(known).max(initial=0.0) >= _EXACT and len(np.unique(known)) < len({*texts}) and not field.note:
        long = max(texts, key=len).strip()
        note = f"different values such as {long[:40]} become equal as numbers; {kept_as_text(field.name)}"
        field = replace(field, note=note * long.isdigit())
    ends = far_ends(known, _NINES)
    markers = {texts[row].strip() for row in np.flatnonzero(np.isin(numbers, ends)).tolist()} if ends else ()
    if zeros is None and ".10\n" in lines and _are_counted({*map(str.strip, texts)}):
        zeros = _TEN.search(lines)
    return replace(field, code=zeros[1] if zeros else "", markers=tuple(sorted(markers)))


def _are_counted(texts: Collection[str]) -> bool:
    """Return true if the digits after the points seem to be counted, as in versions: 1.8, 1.9, 1.10, 1.11, 2.0."""
    counts = {int(match[1]) if match else 1000 for match in map(_VERSION.fullmatch, texts)}
    small, large, most = counts & {*range(1, 10)}, counts - {*range(10)}, max(counts)
    return bool(small) and 1 < len(large) > (most - 9) / 2 and len(counts) > most / 2


_NARROW = 256
"""With more columns than this, the text is parsed in larger pieces, because each piece costs time for each column."""


class JsonNumber(str):
    """A JSON number as text, with a decimal point. Its class distinguishes it from JSON strings in the first rows."""


# Numbers of at most 15 digits, each of which a double represents without loss.
_SHORT = r"^-?(0|[1-9][0-9]{0,6})(\.[0-9]{1,8})?$"


# Codes such as 007, 98E02 and +49301234567: as numbers they would lose characters.
_NAME = re.compile(rf"[+-]?0[0-9]|\+[0-9]+\Z|{CODE}\Z")


_VERSION, _TEN = re.compile(r"[0-9]{1,2}\.(0|[1-9][0-9]?)"), re.compile("\n([0-9]+[.]10)\n")
_ZEROS, _EXPONENT = re.compile("\n(0[0-9]+(?:[.,][0-9]+)?)\n"), re.compile("\n([0-9]+[eE][0-9]+)\n")
_THOUSANDS = re.compile(r"[(+\-−]?(?:0|[1-9][0-9]{0,2}(?:\.[0-9]{3})?)[)\-−]?")
_LAST_ZERO = re.compile("0[^0-9]?$")
_STEM = re.compile("([0-9]{3,})(?:-[0-9]+)?")
_FAR = 1e6
"""In a column of whole numbers, 1E50 is a code if it exceeds this multiple of the largest other number."""
_ANSWERS = re.compile("[0-9]{1,2},[0-9]{1,2}")
_EXACT = 2.0**53
"""Larger whole numbers may not be exact as doubles."""
_NINES = frozenset(sign * (10.0**digits - 1.0) for digits in range(2, 10) for sign in (-1.0, 1.0))
"""Numbers such as -999. They may stand for missing values if all other values of the column are far away."""


def inferred(values: Sequence[str], dialect: Dialect | None = None) -> pa.DataType:
    """Return int64 or float64 if it holds all present values without loss. If neither does, return text."""
    text = _present(pa.chunked_array([pa.array(values, pa.string())]), dialect)
    numbers = (pa.int64(), pa.float64()) if text.null_count < len(text) else ()
    return next((kind for kind in numbers if _as(text, kind) is not None), pa.string())


def typed(
    location: str, table: pa.Table, types: Mapping[str, tuple[pa.DataType, Dialect | None]], start: int
) -> pa.Table:
    """Convert the text columns of `table` to `types`: {name: (type, dialect)}. Raise DataError for an unfit value."""
    pairs = zip(types.items(), table.columns, strict=True)
    columns = [_typed(location, text, name, kind, start, dialect) for (name, (kind, dialect)), text in pairs]
    schema = pa.schema([(name, kind) for name, (kind, _) in types.items()])
    return pa.Table.from_arrays(columns, schema=schema)


def _typed(
    location: str, text: pa.ChunkedArray, name: str, kind: pa.DataType, start: int, dialect: Dialect | None
) -> pa.ChunkedArray:
    if kind == pa.string():
        return text
    present = _present(text, dialect)
    numbers = _as(present, kind)
    if numbers is not None:
        return numbers
    row = next(row for row in range(len(present)) if _as(present.slice(row, 1), kind) is None)
    expected, value = np.dtype(kind.to_pandas_dtype()), text[row].as_py()
    if dialect is None:
        advice = "; a CSV output keeps it as it is"
    elif _as(present.slice(row, 1), pa.float64()) is not None:
        advice = "; write the whole numbers of the first rows as 1.0"
    else:
        advice = remedy(value.strip(), dialect, True)
    raise DataError(
        f"{location}: {spell_row(start + row)}, column {quoted(name)}: expected {expected} as in the first rows, "
        f"got {value[:60]!r}{advice}"
    )


def _present(text: pa.ChunkedArray, dialect: Dialect | None) -> pa.ChunkedArray:
    """Return text with null for missing values. If there is a dialect, its numbers are rewritten with a point."""
    if dialect is not None:
        return with_points(without_nulls(text, dialect), dialect)
    # if_else would return wrong bytes before pyarrow 24 if the text begins inside a buffer.
    return pc.case_when(pc.make_struct(pc.not_equal(text, "")), text)


def _as(text: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray | None:
    """Return the values as numbers, or None if a value would lose digits."""
    try:
        numbers = text.cast(kind)
    except pa.ArrowInvalid:
        return None
    same = pc.equal(numbers.cast(pa.string()), text)
    if kind != pa.float64():
        return numbers if pc.all(same).as_py() is not False else None
    unlike = text.filter(pc.invert(pc.or_(same, pc.match_substring_regex(text, _SHORT))))
    return numbers if all(map(_is_double, unlike.to_pylist())) else None


def _is_double(text: str) -> bool:
    """Return true if the nearest double, rounded to as many digits as the text has, is this number again."""
    if NOT_FINITE.fullmatch(text):
        return True
    with suppress(InvalidOperation):
        number, double = Decimal(text), float(text)
        alike = repr(double), f"{double:.{len(number.as_tuple().digits) - 1}e}"
        return not _NAME.match(text) and number in map(Decimal, alike)
    return False
