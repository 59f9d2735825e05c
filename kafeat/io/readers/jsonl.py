"""Reader of JSON lines, compressed or not, from a file or from standard input: a flat object for each row.

Values become the text that they have in the file, and are then read like CSV: numbers keep their digits, and null or an
absent key is a missing value.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from copy import copy
from typing import Any

import pyarrow as pa

from kafeat.errors import quoted, spell_row
from kafeat.io.columns.dialect import NOTHING_ASKED, Asked, Dialect
from kafeat.io.columns.fields import Field, indices_of, listed
from kafeat.io.data_set import Keys
from kafeat.io.readers.base import Chunk, Wanted
from kafeat.io.readers.csv import UntypedReader
from kafeat.io.readers.csv_sniff import JsonNumber, guessed, inferred
from kafeat.io.readers.table import Broken
from kafeat.io.readers.text_stream import (
    LONGEST,
    LOOK,
    DecompressedStream,
    TextInput,
    cut_off,
    growing,
    whole_lines,
)
from kafeat.io.storage.base import Location

Row = dict[str, Any]
"""A row of values by their keys. A value is a text, a number as text, a boolean or None."""
_BOM = b"\xef\xbb\xbf"
_MOST_CELLS = 1 << 23
"""Largest number of cells to make at a time, because rows with different keys make a huge table of a small file."""
_BETWEEN = "\n,0,\n"
"""The text that joins lines to one JSON list. Objects and strings cannot contain it, so no row spans two lines."""


class JsonlReader(UntypedReader):
    """A reader of JSON lines. The keys of the first rows are the columns, in the order in which they occur first."""

    def __init__(
        self, location: Location, *, asked: Asked = NOTHING_ASKED, seen: Sequence[str] | None = None
    ) -> None:
        self.location, self._text = location.source, TextInput(location, prompt=seen is not None)
        with self._text.opened(peek=True) as text:
            rows = self._first_rows(text, seen or ())
        names = list(dict.fromkeys(name for row in rows for name in row))
        rows = rows[: _MOST_CELLS // max(1, len(names))]
        self._values = [[row.get(name) for row in rows] for name in names]
        self.fields = guessed(names, [self._texts(index) for index in range(len(names))], asked)
        self._later: set[str] = set()

    def _first_rows(self, text: DecompressedStream, seen: Sequence[str]) -> list[Row]:
        """Return the valid rows in the first bytes, with numbers as `JsonNumber`.

        At a pause of a pipe, the rows so far are enough if all keys in `seen` have values.
        """
        lines = list[bytes]()
        for head, paused in growing(text, "JSON lines"):
            head = head.removeprefix(_BOM)
            lines = _lines(head if text.whole else head[: head.rfind(b"\n") + 1])
            rows, problems = _parsed(lines, JsonNumber) if paused else ([], {})
            unseen = any(all(row.get(key) is None for row in rows) for key in seen)
            if text.whole or (len(problems) < len(rows) and not unseen if paused else lines):
                break
        else:
            raise self.error(f"expected lines of less than {LONGEST} bytes, got a longer one")
        self._whole = text.whole
        self.rows = None if lines else 0
        rows, problems = _parsed(lines, JsonNumber)
        if lines and len(problems) == len(lines):
            advice = "" if problems[0].startswith("key") else "; jq -c writes one object per line"
            raise self.error(f"{spell_row(0)}: {problems[0]}{advice}")
        return rows

    def add_keys(self, keys: Keys) -> None:
        super().add_keys(keys)
        self._values += [[]] * len(self.keys)

    def expect(self, absent: Sequence[str]) -> None:
        if not self._whole:
            dialect = self.asked.numbers
            self.fields += tuple(
                Field(name, "text", None, "no values in the first rows", dialect=dialect) for name in absent
            )
            self._values += [[]] * len(absent)
            self._later.update(absent)

    def _texts(self, index: int) -> list[str]:
        return [_text(value) or "" for value in self._values[index]]

    def _inferred(self, index: int) -> pa.DataType:
        values = [value for value in self._values[index] if value is not None]
        kinds, dialect = set(map(type, values)), self._dialect(index)
        if kinds == {JsonNumber} or (dialect is not None and bool not in kinds):
            return inferred(values, dialect)
        return pa.bool_() if kinds == {bool} else pa.string()

    def _chunks(self, wanted: Wanted) -> Iterator[Chunk]:
        view = copy(self)
        features = wanted.columns.features
        respelled = [column for column in features if column.dialect.decimal == "," or column.dialect.units]
        indices = indices_of(self, (column.name for column in respelled))
        view._respelled = dict(zip(indices, (column.dialect for column in respelled), strict=True))
        return super(JsonlReader, view)._chunks(wanted)

    def _batches(self, indices: list[int], wanted: Wanted, broken: Broken) -> Iterator[pa.RecordBatch | None]:
        names = [self.fields[index].name for index in indices]
        own = {names[indices.index(i)]: how for i, how in self._respelled.items() if i in indices}
        # A feature that is also a passthrough column occurs twice in `names`. Only the first is respelled.
        keys = [
            f"\0{name}" if name in own and name not in names[:at] else name for at, name in enumerate(names)
        ]
        done, unseen = 0, self._later.intersection(names)
        with self._text.opened() as text:
            for piece in whole_lines(self.location, text, LOOK):
                lines = _lines(piece if done else piece.removeprefix(_BOM))
                rows, problems = _parsed(lines, JsonNumber if own else str)
                for row, problem in problems.items():
                    if row == len(lines) - 1 and piece.endswith(lines[row]) and not _is_json(lines[row]):
                        raise cut_off(self.location, spell_row(done + row), problem)
                    if not wanted.set_aside:
                        raise self.error(f"{spell_row(done + row)}: {problem}")
                    broken[done + row] = problem, lines[row].decode(errors="replace")
                height = max(1, _MOST_CELLS // max(1, len(names)))
                for at in range(0, len(rows), height):
                    for one in rows[at : at + height] if own else ():
                        one |= {f"\0{name}": _respelled(one.get(name), how) for name, how in own.items()}
                    yield _batch(rows[at : at + height], keys)
                unseen.difference_update(*rows)
                done += len(rows)
                if text.paused:
                    yield None
        if unseen:
            raise self.error(f"expected {listed(sorted(unseen))} in at least one row, got none")


def _lines(text: bytes) -> list[bytes]:
    return [line for line in text.split(b"\n") if line.strip()]


def _parsed(lines: list[bytes], number: type[str]) -> tuple[list[Row], dict[int, str]]:
    """Return a row for every line, empty if the line is invalid, and {position: problem} of the invalid lines."""
    decoder = json.JSONDecoder(
        parse_float=number, parse_int=number, parse_constant=_refuse, object_pairs_hook=_object
    )
    with suppress(ValueError, RecursionError):
        return _plain(lines, decoder), {}
    checked = [_checked(line, decoder) for line in lines]
    problems = {at: problem for at, (_, problem) in enumerate(checked) if problem is not None}
    return [row for row, _ in checked], problems


def _plain(lines: list[bytes], decoder: json.JSONDecoder) -> list[Row]:
    """Parse all lines at once. Raise ValueError if lines may be invalid and must be checked one by one."""
    text = _BETWEEN.join(line.decode() for line in lines)
    values = decoder.decode(f"[{text}]")
    rows: list[Row] = values[::2]
    nested = text.count("{") > len(rows) or "[" in text
    escaped = "\\ud" in text or "\\uD" in text  # may be half of a surrogate pair
    if nested or escaped or len(values) != 2 * len(lines) - 1 or set(map(type, rows)) != {dict}:
        raise ValueError
    return rows


def _checked(line: bytes, decoder: json.JSONDecoder) -> tuple[Row, str | None]:
    """Return the row of a line and None. For an invalid line, return an empty row and the problem."""
    try:
        row = decoder.decode(line.decode())
        if type(row) is not dict:
            return {}, f"expected a JSON object, got {quoted(line.decode().strip())}"
        for key, value in row.items():
            if isinstance(value, dict | list):
                kind = "an object" if isinstance(value, dict) else "an array"
                return {}, f"key {quoted(key)}: expected a plain value, got {kind}; flatten it first"
            f"{key}{value}".encode()
    except RecursionError:
        return {}, "expected values that are not nested, got many levels"
    except UnicodeDecodeError as error:
        other = line[error.start : error.start + 4]
        return {}, f"expected UTF-8 text, got {other!r} (byte {error.start + 1}); iconv converts it"
    except UnicodeEncodeError as error:
        return {}, f"expected Unicode text, got half a surrogate pair, {error.object[error.start]!r}"
    except json.JSONDecodeError as error:
        rest = error.doc[error.pos :].rstrip()
        got = quoted(rest) if rest else "the end of the line"
        return {}, f"expected JSON, got {got} at character {error.pos + 1} ({error.msg})"
    except ValueError as error:
        return {}, str(error)
    return row, None


def _is_json(line: bytes) -> bool:
    """Return true for any valid JSON, even if it is not an object and so not a row."""
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def _object(pairs: list[tuple[str, Any]]) -> Row:
    row = dict(pairs)
    if len(row) < len(pairs):
        [(twice, count)] = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"key {quoted(twice)}: expected one value, got {count}")
    return row


def _refuse(constant: str) -> None:
    raise ValueError(f"expected a number or null, got {constant}, which JSON does not have")


def _text(value: Any) -> str | None:
    """Return a value as text. A boolean is spelled as in JSON; text and None are returned unchanged."""
    return ("false", "true")[value] if isinstance(value, bool) else value


def _respelled(value: Any, dialect: Dialect) -> str | None:
    """Return a JSON number as text in the dialect of its column: 1.5 as `1,5 kg`. Other values are as in `_text`."""
    if type(value) is not JsonNumber:
        return _text(value)
    return value.replace(".", dialect.decimal) + "".join(() if dialect.bare else dialect.units[:1])


def _batch(rows: list[Row], names: list[str]) -> pa.RecordBatch:
    kind = pa.struct([(name, pa.string()) for name in names])
    try:
        values = pa.array(rows, kind)
    except pa.ArrowTypeError:  # a value is a boolean
        values = pa.array([{name: _text(row.get(name)) for name in names} for row in rows], kind)
    return pa.RecordBatch.from_struct_array(values)
