"""Find what a CSV file contains besides its table: titles, units, totals, notes, and columns without names."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from kafeat.errors import quoted, shell_word
from kafeat.io.columns.fields import Field
from kafeat.io.columns.number_forms import TOTALS
from kafeat.io.columns.numbers import first_no_number, to_doubles
from kafeat.io.readers.text_stream import DecompressedStream

MOST_TITLES, _MOST_UNITS, _MOST_NAMES = 30, 6, 3
_WORDS = re.compile(r"[^0-9]*[^\W0-9]")
_RULE = re.compile(r"[-+|: ]*-:?[+|][-+|: ]*")
_NOTE = re.compile(r"[^\W\d]{2,}[.:]?\s")


def ruled(text: DecompressedStream, delimiter: str, rows: Sequence[list[str]]) -> str:
    """Return advice if a line of dashes is above or below the names, as databases print it, or an empty text."""
    rule = next((line for line in map(delimiter.join, rows[:3]) if _RULE.fullmatch(line)), "")
    if not rule:
        return ""
    framed = any(delimiter.join(row).startswith("|") for row in rows[:3])
    cut = r"s/^\| *| *\| *$//g" if framed else "s/^ +| +$//g"
    plain = text.through(rf"sed -E '/^[-+|: ]+$|^\([0-9]+ rows?\)$/d; {cut}; s/ *\| */|/g'")
    return (
        f"expected rows, got the line {rule[:40]!r}: {plain} leaves out such lines and the blanks next to |"
    )


def named_rows(
    text: DecompressedStream, delimiter: str, rows: Sequence[list[str]], width: int, line: int
) -> str:
    """Return advice if every row has one field more than the line of names, because R writes row names without a title.

    `width` is the number of names, and `line` that of their line in the file. Other files get an empty text.
    """
    names = {row[0] for row in rows}
    if not rows or len(names) < len(rows) or any(len(row) != width + 1 for row in rows):
        return ""
    mark = r"\t" if delimiter == "\t" else delimiter
    named = text.through(f"""sed '{line}s/^/""{mark}/'""")
    return f"; {named} gives the first column, the names of the rows, an empty name"


def too_wide(text: DecompressedStream, delimiter: str, rows: Sequence[list[str]], width: int) -> str:
    """Return advice if rows have one field too many because a delimiter ends them, otherwise an empty text."""
    wide = [row for row in rows if len(row) > width]
    if not wide or any(len(row) > width + 1 or row[-1].strip() for row in wide):
        return ""
    if not all(row[-1].strip() for row in rows if len(row) == width):
        return ""
    mark = r"\t" if delimiter == "\t" else delimiter
    shorter = text.through(rf"sed 's/[{mark}][[:blank:]]*\r*$//'")
    return f"{shorter} leaves it out"


def too_short(text: DecompressedStream, delimiter: str, rows: Sequence[list[str]], width: int) -> str:
    """Return advice if some rows lack fields at their end, or an empty text."""
    if re.search(rb'"|\r(?!\n)', text.head) or all(len(row) >= width for row in rows):
        return ""
    mark = r"'\t'" if delimiter == "\t" else shell_word(delimiter)
    filled = text.through(rf"""awk -F{mark} -v OFS={mark} '{{sub(/\r$/, ""); ${width} = ${width}}} 1'""")
    return f"{filled} adds empty fields at its end"


def odd_rows_of(
    text: DecompressedStream,
    delimiter: str,
    lines: Sequence[list[str]],
    fields: Sequence[Field],
    columns: Sequence[list[str]],
) -> str:
    """Describe columns without names and values, units below the names, or notes below the rows, with the remedy."""
    full = [at for at, row in enumerate(lines) if len(row) == len(fields)]
    if (
        len(fields) == 1
        and len({len(row[0].split()) for row in lines if row} - {0}) == 1
        and " " in fields[0].name
    ):
        cut = text.through("sed -E 's/^ +| +$//g; s/ +/,/g'")
        return f"if blanks separate the fields, {cut} writes commas for them"
    named = max((i + 1 for i, field in enumerate(fields) if field.name or any(columns[i])), default=0)
    if len(fields) - named > 1:
        mark = r"\t" if delimiter == "\t" else delimiter
        shorter = text.through(rf"sed -E 's/([{mark}][[:blank:]]*){{{len(fields) - named}}}\r*$//'")
        return (
            f"the last {len(fields) - named} columns have neither names nor values: {shorter} leaves them out"
        )
    again = _numbered([field.name for field in fields])
    changed = [field.name for field, name in zip(fields, again, strict=True) if field.name != name]
    if changed and _line(text, lines, full[0] + 1) == _line(text, lines, full[0]) + 1:
        line = io.StringIO()
        csv.writer(line, delimiter=delimiter, lineterminator="").writerow(again)
        renamed = text.through(f"sed {shell_word(f'{_line(text, lines, full[0])}c{line.getvalue()}')}")
        return f"several columns are named {quoted(changed[0])}: {renamed} numbers them"
    numeric = [(field.dialect, texts) for field, texts in zip(fields, columns, strict=True) if field.numeric]
    words = list[str]()
    for row in range(min(_MOST_NAMES, len(full) - 2)):
        found = [
            "" if texts[row] in texts[row + 1 :] else first_no_number(texts[row : row + 1], dialect)
            for dialect, texts in numeric
        ]
        if not all(found) or len({*found}) < 2:
            break
        words += found
    if words:
        count, them = len(words) // len(numeric), "them" if len(words) > len(numeric) else "it"
        first, last = _line(text, lines, full[1]), _line(text, lines, full[count] + 1) - 1
        shorter = text.through(f"sed {first}d" if first == last else f"sed {first},{last}d")
        shown = ", ".join(repr(word[:40]) for word in words[:_MOST_UNITS])
        many = "row 1 looks like a line" if count == 1 else f"rows 1 to {count} look like lines"
        return f"{many} of units or of more names ({shown}): {shorter} leaves {them} out"
    return _below(text, lines, fields, columns) if text.whole and len(full) > 1 else ""


def _line(text: DecompressedStream, rows: Sequence[list[str]], row: int) -> int:
    """Return the number of the first line of a row in the file, counted from 1. A quoted value may span lines."""
    return text.dropped + 1 + sum(1 + sum(value.count("\n") for value in one) for one in rows[:row])


def _numbered(names: Sequence[str]) -> list[str]:
    """Return names that differ: a, a becomes a, a.2, and an empty name that is not the first becomes c3 in column 3."""
    counts, out = Counter[str](), list[str]()
    for i, name in enumerate(names):
        counts[name] += 1
        again = f"{name}.{counts[name]}" if name else f"c{i}"
        out.append(again if counts[name] > 1 else name)
    return out


def _below(
    text: DecompressedStream,
    lines: Sequence[list[str]],
    fields: Sequence[Field],
    columns: Sequence[list[str]],
) -> str:
    """Describe a line of totals, and notes, below the rows, with the remedy."""
    width = len(fields)

    def is_note(row: list[str]) -> bool:
        return len(row) < width or (
            width > 2 and bool(_NOTE.match(row[0])) and not any(map(str.strip, row[1:]))
        )

    end = next(at + 1 for at in reversed(range(len(lines))) if not is_note(lines[at]))
    notes = [row for row in lines[end:] if row]
    if notes and 1 < len(notes[0]) < width and lines[end]:
        notes = []  # not notes, but rows with missing fields: the reader reports them
    rows = [at for at, row in enumerate(lines[:end]) if len(row) == width][1:]
    told = list[str]()
    kept, columns = len(rows), [texts[: len(rows)] for texts in columns]
    if kept > 1 and (totals := totals_of(lines[rows[-1]], fields, columns)) is not None:
        told.append(f"row {kept} looks like a line of totals ({totals[:40]!r})")
        kept -= 1
    if notes:
        told.append(f"the lines below row {len(rows)} look like notes ({notes[0][0][:40]!r})")
    if not told:
        return ""
    shorter = text.through(f"head -n {_line(text, lines, rows[kept - 1] + 1) - 1}")
    return f"{' and '.join(told)}: {shorter} leaves {'them' if notes else 'it'} out"


def totals_of(last: Sequence[str], fields: Sequence[Field], columns: Sequence[list[str]]) -> str | None:
    """Return the value that shows that the last row has totals, or None if it has none.

    It is a word such as `total`, or an empty label if a number is the sum of its column.
    """
    values = [*map(str.strip, last)]
    words = (
        value
        for field, value in zip(fields, values, strict=True)
        if TOTALS.fullmatch(value) or (field.numeric and "±" in value)
    )
    word = next(words, None)
    blank = next((value for value in values if not any(map(str.isalnum, value))), None)
    for field, texts in zip(fields, columns, strict=True) if word is None and blank is not None else ():
        numbers = to_doubles(pa.array(texts, pa.string()), field.dialect) if field.numeric else np.zeros(1)
        known, total = numbers[:-1][np.isfinite(numbers[:-1])], numbers[-1]
        n = len(known)  # compare means, because a sum may overflow
        if (
            n > 2
            and abs(total) > np.abs(known).max()
            and np.isclose((known / n).sum(), total / n, rtol=1e-9, atol=0.0)
        ):
            return blank
    return word


def line_of_names(rows: Sequence[list[str]], first: int = 0) -> int:
    """Return the index of the row of names: `first` or, after titles, the next row of usual width with only words."""
    width, top = Counter(map(len, filter(None, rows))).most_common(1)[0][0], rows[first]
    title = len(top) < width or (width > 2 and bool(top[0].strip()) and not any(map(str.strip, top[1:])))
    groups = width > 2 and [*map(str.strip, top)].count("") > 1  # titles of column groups have gaps
    title |= groups and not all(map(_WORDS.match, [*rows, [], []][first + 2]))
    for at in range(first + 1, min(len(rows), first + MOST_TITLES) if title and width > 1 else 0):
        names = (
            rows[at][:-1] if len(rows[at]) > 2 and not rows[at][-1] else rows[at]
        )  # a delimiter ends each line
        if len(rows[at]) == width and all(map(_WORDS.match, names)):
            return at
    return first
