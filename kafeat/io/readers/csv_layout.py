"""Find what a CSV file contains besides its table: titles, units, totals, notes, and columns without names."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from kafeat.io.columns.fields import Field
from kafeat.io.columns.number_forms import TOTALS
from kafeat.io.columns.numbers import first_no_number, to_doubles
from kafeat.io.readers.text_stream import DecompressedStream

MOST_TITLES, _MOST_UNITS = 30, 6
_WORDS = re.compile(r"[^0-9]*[^\W0-9]")


def too_wide(text: DecompressedStream, delimiter: str, rows: Sequence[list[str]], width: int) -> str:
    """Return advice on rows with one field too many because of a delimiter at their end; empty for other causes."""
    wide = [row for row in rows if len(row) > width]
    if not wide or any(len(row) > width + 1 or row[-1].strip() for row in wide):
        return ""
    if not all(row[-1].strip() for row in rows if len(row) == width):
        return ""
    mark = r"\t" if delimiter == "\t" else delimiter
    shorter = text.through(rf"sed 's/[{mark}][[:blank:]]*\r*$//'")
    return f"{shorter} leaves it out"


def odd_rows_of(
    text: DecompressedStream,
    delimiter: str,
    lines: Sequence[list[str]],
    fields: Sequence[Field],
    columns: Sequence[list[str]],
) -> str:
    """Describe columns without names and values, units below the names, or notes below the rows, with the remedy."""
    full = [at for at, row in enumerate(lines) if len(row) == len(fields)]
    above = text.dropped + 1  # the number of the first line: that of row i is i more if no value spans lines
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
    pairs = zip(fields, columns, strict=True)
    words = [
        "" if texts[0] in texts[1:] else first_no_number(texts[:1], field.dialect)
        for field, texts in pairs
        if field.numeric
    ]
    if all(words) and len({*words}) > 1:
        shorter = text.through(f"sed {above + full[1]}d")
        shown = ", ".join(repr(word[:40]) for word in words[:_MOST_UNITS])
        return f"row 1 looks like a line of units or of more names ({shown}): {shorter} leaves it out"
    below = [row for row in lines[full[-1] + 1 :] if row] if text.whole else []
    if below and max(map(len, below)) < len(fields) and (len(below[0]) == 1 or not lines[full[-1] + 1]):
        shorter = text.through(f"head -n {above + full[-1]}")
        return f"the lines below row {len(full) - 1} look like notes ({below[0][0][:40]!r}): {shorter} leaves them out"
    return ""


def totals_of(last: Sequence[str], fields: Sequence[Field], columns: Sequence[list[str]]) -> str | None:
    """Return the value that shows that the last row has totals (such as `total`, or a blank next to a sum), or None."""
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
        n = len(known)  # means, because a sum may exceed the range of numbers
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
    groups = width > 2 and [*map(str.strip, top)].count("") > 1  # a row that names groups of columns
    title |= groups and not all(map(_WORDS.match, [*rows, [], []][first + 2]))
    for at in range(first + 1, min(len(rows), first + MOST_TITLES) if title and width > 1 else 0):
        if len(rows[at]) == width and all(map(_WORDS.match, rows[at])):
            return at
    return first
