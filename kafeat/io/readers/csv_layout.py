"""Find what a CSV file contains besides its table: titles, units, totals, notes, and columns without names."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafeat.errors import quoted, shell_word
from kafeat.io.columns.fields import Field, excluding, listed
from kafeat.io.columns.number_forms import TOTALS
from kafeat.io.columns.numbers import first_no_number, to_doubles
from kafeat.io.readers.text_stream import DecompressedStream
from kafeat.types import Floats

MOST_TITLES, _MOST_UNITS, _MOST_NAMES = 30, 6, 3
_WORDS = re.compile(r"[^0-9]*[^\W0-9]")
_RULE = re.compile(r"[-+|: ]*-:?[+|][-+|: ]*")
# Arrow searches for it, because Python's `re` would take a tenth of the time to open a file of texts.
_SUBTOTALS = rf"^\s*(?:{TOTALS.pattern}|.*(?:total|summe|ergebnis)|sub-?total.*)\s*$"
_NOTE = re.compile(r"[^\W\d]{2,}[.:]?\s")


@dataclass(frozen=True)
class Layout:
    """The first lines of a CSV text, split into fields, and the index of the first line that is not blank.

    Its methods return advice on unusual lines, with a command for them. If no line is unusual, the text is empty.
    """

    text: DecompressedStream
    delimiter: str
    lines: Sequence[list[str]]
    first: int

    @property
    def width(self) -> int:
        """The number of columns."""
        return len(self.lines[self.first])

    @property
    def _mark(self) -> str:
        """The delimiter as a pattern of sed."""
        return r"\t" if self.delimiter == "\t" else self.delimiter

    def _line(self, row: int) -> int:
        """Return the number of the first line of a row in the file, counted from 1. A quoted value may span lines."""
        above = self.lines[:row]
        return self.text.dropped + 1 + sum(1 + sum(value.count("\n") for value in one) for one in above)

    def no_names(self) -> str:
        """Describe titles above the names, or a line of dashes next to the names, which databases print."""
        top = [self.delimiter.join(row) for row in self.lines[:3]]
        rule = next(filter(_RULE.fullmatch, top), "")
        if rule:
            cut = r"s/^\| *| *\| *$//g" if any(line[:1] == "|" for line in top) else "s/^ +| +$//g"
            plain = self.text.through(rf"sed -E '/^[-+|: ]+$|^\([0-9]+ rows?\)$/d; {cut}; s/ *\| */|/g'")
            leaves = "leaves out such lines and the blanks next to |"
            return f"expected rows, got the line {rule[:40]!r}: {plain} {leaves}"
        title = line_of_names(self.lines, self.first)
        if title == self.first:
            return ""
        got = self.delimiter.join(self.lines[self.first]).strip(self.delimiter)
        line = title + 1 + self.text.dropped
        return (
            f"expected the names of columns, got the line {got[:60]!r}; the names may be in line {line}: "
            f"{self.text.through(f'tail -n +{line}')} leaves out those above"
        )

    def named_rows(self, rows: Sequence[list[str]]) -> str:
        """Advise if every row has one field more than the line of names, because R writes row names without a title."""
        different = len({row[0] for row in rows}) == len(rows) > 0
        if not different or any(len(row) != self.width + 1 for row in rows):
            return ""
        named = self.text.through(f"""sed '{self._line(self.first)}s/^/""{self._mark}/'""")
        return f"; {named} gives the first column, the names of the rows, an empty name"

    def other_quotes(self, rows: Sequence[list[str]]) -> str:
        """Advise if rows have too many fields because their quotes are single, or because blanks precede the quotes."""
        wide = [self.delimiter.join(row) for row in rows if len(row) > self.width]
        start, double = f"(^|[{self._mark}])", r"""s/"/""/g"""
        single = rf"""{double}; s/'[[:blank:]]*([{self._mark}]|\r*$)/"\1/g; s/{start} *'/\1"/g; s/''/'/g"""
        ways = {"'": single, '"': rf"""s/{start}[[:blank:]]+"/\1"/g"""}
        for quote, change in ways.items() if wide and not re.search("[\r\n]", "".join(wide)) else ():
            again = csv.reader(wide, delimiter=self.delimiter, quotechar=quote, skipinitialspace=True)
            if all(len(row) == self.width for row in again):
                plain = self.text.through(f"sed -E {shell_word(change)}")
                return f"; {plain} puts double quotes next to the delimiters"
        return ""

    def too_wide(self, rows: Sequence[list[str]]) -> str:
        """Advise if rows have one field too many because a delimiter ends them."""
        wide = [row for row in rows if len(row) > self.width]
        ended = all(len(row) == self.width + 1 and not row[-1].strip() for row in wide)
        if not (wide and ended and all(row[-1].strip() for row in rows if len(row) == self.width)):
            return ""
        shorter = self.text.through(rf"sed 's/[{self._mark}][[:blank:]]*\r*$//'")
        return f"{shorter} leaves it out"

    def too_short(self, rows: Sequence[list[str]]) -> str:
        """Advise if some rows lack fields at their end."""
        last = f"${self.width}"
        filled = self.changed(f"{last} = {last}") if any(len(row) < self.width for row in rows) else ""
        return f"{filled} adds empty fields at its end" if filled else ""

    def changed(self, change: str) -> str:
        """Return a command that changes fields of every line, or an empty text if values may be quoted."""
        if re.search(rb'"|\r(?!\n)', self.text.head):
            return ""
        mark = r"'\t'" if self.delimiter == "\t" else shell_word(self.delimiter)
        return self.text.through(rf"""awk -F{mark} -v OFS={mark} '{{sub(/\r$/, ""); {change}}} 1'""")

    def odd_rows(self, fields: Sequence[Field], columns: Sequence[list[str]]) -> str:
        """Describe columns without names and values, units below the names, or notes below the rows."""
        full = [at for at, row in enumerate(self.lines) if len(row) == self.width]
        names = [field.name for field in fields]
        counts = {len(row[0].split()) for row in self.lines if row} - {0}
        if self.width == 1 and len(counts) == 1 and " " in names[0]:
            cut = self.text.through("sed -E 's/^ +| +$//g; s/ +/,/g'")
            return f"if blanks separate the fields, {cut} writes commas for them"
        unnamed = self.width - max(
            (i + 1 for i, name in enumerate(names) if name or any(columns[i])), default=0
        )
        if unnamed > 1:
            shorter = self.text.through(rf"sed -E 's/([{self._mark}][[:blank:]]*){{{unnamed}}}\r*$//'")
            return f"the last {unnamed} columns have neither names nor values: {shorter} leaves them out"
        again = _numbered(names)
        changed = next((name for name, new in zip(names, again, strict=True) if name != new), None)
        twice = [
            new for at, new in enumerate(again)
            if new != names[at] and names[at] and columns[at] == columns[names.index(names[at])]
        ]  # fmt: skip
        same = (
            f"; {listed(twice)}: the same values as in an earlier column{excluding(twice)}" if twice else ""
        )
        line = self._line(full[0])
        if changed is not None and self._line(full[0] + 1) == line + 1:
            written = io.StringIO()
            csv.writer(written, delimiter=self.delimiter, lineterminator="").writerow(again)
            renamed = self.text.through(f"sed {shell_word(f'{line}c{written.getvalue()}')}")
            return f"several columns are named {quoted(changed)}: {renamed} numbers them{same}"
        found = self._units(full, fields, columns) or self._between(full, fields, columns)
        return found or self._below(full, fields, columns)

    def _units(self, full: Sequence[int], fields: Sequence[Field], columns: Sequence[list[str]]) -> str:
        """Describe lines of units, or of more names, below the names. `full` has the indices of complete lines."""
        numeric = [(one.dialect, texts) for one, texts in zip(fields, columns, strict=True) if one.numeric]
        words = list[str]()
        for row in range(min(_MOST_NAMES, len(full) - 2)):
            found = [
                "" if texts[row] in texts[row + 1 :] else first_no_number(texts[row : row + 1], dialect)
                for dialect, texts in numeric
            ]
            if not all(found) or len({*found}) < 2:
                break
            words += found
        if not words:
            return ""
        count = len(words) // len(numeric)
        first, last = self._line(full[1]), self._line(full[count] + 1) - 1
        shorter = self.text.through(f"sed {first}d" if first == last else f"sed {first},{last}d")
        shown = ", ".join(repr(word[:40]) for word in words[:_MOST_UNITS])
        many = "row 1 looks like a line" if count == 1 else f"rows 1 to {count} look like lines"
        them = "it" if count == 1 else "them"
        return f"{many} of units or of more names ({shown}): {shorter} leaves {them} out"

    def _between(self, full: Sequence[int], fields: Sequence[Field], columns: Sequence[list[str]]) -> str:
        """Describe lines of totals between the rows. Each line has a word for totals, and a sum of rows above."""
        named = dict[int, str]()
        for texts in (texts for field, texts in zip(fields, columns, strict=True) if not field.numeric):
            found = pc.match_substring_regex(pa.array(texts, pa.string()), _SUBTOTALS, ignore_case=True)
            named |= {row: texts[row].strip() for row in np.flatnonzero(found).tolist()}
        pairs = zip(fields, columns, strict=True) if named else ()
        numbers = [
            to_doubles(pa.array(texts, pa.string()), one.dialect) for one, texts in pairs if one.numeric
        ]
        parts, last = [*pairwise([-1, *sorted(named)])], len(full) - 2
        sums = {named[end] for x in numbers for top, end in parts if _is_sum(x[top + 1 : end], x[end], 1e-3)}
        rows = [row for row in sorted(named) if named[row] in sums or row == last]
        if not {*rows} - {last}:
            return ""
        words = "|".join(sorted({re.sub(r"[][\\.*^$()+?{}|/]", r"\\\g<0>", named[row]) for row in rows}))
        line, mark = self._line(full[1]), f"[{self._mark}]"
        script = rf'{line},${{/(^|{mark})[" ]*({words})[" ]*({mark}|\r?$)/d;}}'
        shorter = self.text.through(f"sed -E {shell_word(script)}")
        first = f"rows such as {rows[0] + 1} look like lines of totals ({named[rows[0]][:40]!r})"
        return f"{first}: {shorter} leaves them out"

    def _below(self, full: Sequence[int], fields: Sequence[Field], columns: Sequence[list[str]]) -> str:
        """Describe a line of totals, and notes, below the rows."""
        if not self.text.whole or len(full) < 2:
            return ""
        lines, width = self.lines, self.width

        def is_note(row: list[str]) -> bool:
            if len(row) < width:
                return True
            return width > 2 and _NOTE.match(row[0]) is not None and not any(map(str.strip, row[1:]))

        end = next(at + 1 for at in reversed(range(len(lines))) if not is_note(lines[at]))
        notes = [row for row in lines[end:] if row]
        if notes and 1 < len(notes[0]) < width and lines[end]:
            notes = []  # these are rows with missing fields, which the reader reports
        rows = [at for at in full[1:] if at < end]
        told, kept = list[str](), len(rows)
        columns = [texts[:kept] for texts in columns]
        if kept > 1 and (totals := totals_of(lines[rows[-1]], fields, columns)) is not None:
            told.append(f"row {kept} looks like a line of totals ({totals[:40]!r})")
            kept -= 1
        if notes:
            told.append(f"the lines below row {len(rows)} look like notes ({notes[0][0][:40]!r})")
        if not told:
            return ""
        shorter = self.text.through(f"head -n {self._line(rows[kept - 1] + 1) - 1}")
        return f"{' and '.join(told)}: {shorter} leaves {'them' if notes else 'it'} out"


def _numbered(names: Sequence[str]) -> list[str]:
    """Return names that differ: a, a becomes a, a.2, and an empty name that is not the first becomes c3 in column 3."""
    counts, out = Counter[str](), list[str]()
    for i, name in enumerate(names):
        counts[name] += 1
        again = f"{name}.{counts[name]}" if name else f"c{i}"
        out.append(again if counts[name] > 1 else name)
    return out


def totals_of(last: Sequence[str], fields: Sequence[Field], columns: Sequence[list[str]]) -> str | None:
    """Return the value that shows that the last row has totals. Return None for a row without totals.

    The value is a word such as `total` or, in a row with the sum of a column, a cell without letters and digits.
    """
    values = [*map(str.strip, last)]
    pairs = zip(fields, values, strict=True)
    word = next(
        (word for one, word in pairs if TOTALS.fullmatch(word) or (one.numeric and "±" in word)), None
    )
    blank = next((value for value in values if not any(map(str.isalnum, value))), None)
    for field, texts in zip(fields, columns, strict=True) if word is None and blank is not None else ():
        numbers = to_doubles(pa.array(texts, pa.string()), field.dialect) if field.numeric else np.zeros(1)
        if len(numbers) > 3 and _is_sum(numbers[:-1], numbers[-1], 1e-9):
            return blank
    return word


def _is_sum(numbers: Floats, total: float, within: float) -> bool:
    """Return true if `total` is the sum of all finite numbers, at least two, and is larger than each of them."""
    known = numbers[np.isfinite(numbers)]
    n = len(known)  # compare means, because a sum may overflow
    larger = n > 1 and abs(total) > np.abs(known).max()
    return bool(larger and np.isclose((known / n).sum(), total / n, rtol=within, atol=0.0))


def line_of_names(rows: Sequence[list[str]], first: int = 0) -> int:
    """Return the index of the row of names: `first` or, after titles, the next row of usual width with only words."""
    width, top = Counter(map(len, filter(None, rows))).most_common(1)[0][0], rows[first]
    title = len(top) < width or (width > 2 and bool(top[0].strip()) and not any(map(str.strip, top[1:])))
    groups = width > 2 and [*map(str.strip, top)].count("") > 1  # titles of column groups have gaps
    below, beneath = [*rows, [], []][first + 1 : first + 3]
    again = width > 2 and len(top) - len({*top} - {""}) > 1  # titles of column groups may repeat
    groups |= again and len({*below}) == len(below) and all(map(_WORDS.match, below))
    title |= groups and not all(map(_WORDS.match, beneath))
    for at in range(first + 1, min(len(rows), first + MOST_TITLES) if title and width > 1 else 0):
        # A delimiter may end each line.
        names = rows[at][:-1] if len(rows[at]) > 2 and not rows[at][-1] else rows[at]
        if len(rows[at]) == width and all(map(_WORDS.match, names)):
            return at
    return first
