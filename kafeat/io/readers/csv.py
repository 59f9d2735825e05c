"""Reader of CSV, compressed or not, from a file or from standard input."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import Self

import pyarrow as pa
import pyarrow.csv as pa_csv

from kafeat.errors import UsageError, spell_row
from kafeat.io.columns.dialect import NOTHING_ASKED, UTF8, Asked, Dialect, as_option, check_delimiter
from kafeat.io.columns.fields import indices_of
from kafeat.io.data_set import Keys
from kafeat.io.formats import delimiter_of
from kafeat.io.readers.base import Wanted
from kafeat.io.readers.csv_quotes import BOM, not_utf8, whole_rows
from kafeat.io.readers.csv_sniff import found_delimiter, inferred, sniff, typed
from kafeat.io.readers.table import Broken, KeyedReader, TakePassthrough
from kafeat.io.readers.text_stream import (
    CUT,
    LOOK,
    HashingStream,
    TextInput,
    TextReader,
    cut_off,
    encoding_of,
    is_utf8,
)
from kafeat.io.storage.base import Location

# Names in the option --delimiter for delimiters that are hard to type or to see.
_NAMED = {"\\t": "\t", "tab": "\t", "blank": " "}


class UntypedReader(TextReader, KeyedReader):
    """A reader of text that yields every value as text. Workers convert the values to numbers.

    Therefore messages can name the row of an invalid value, passthrough columns can be copied unchanged, and a pipe is
    read only once, without a first pass to find types.
    """

    untyped = True
    _meant: frozenset[str] = frozenset()

    @abstractmethod
    def _texts(self, index: int) -> Sequence[str]:
        """Return the first values of the column at position `index`."""

    @abstractmethod
    def _inferred(self, index: int) -> pa.DataType:
        """Return the type that a passthrough column gets in typed formats, inferred from its first values."""

    def _taking(self, where: list[int], wanted: Wanted) -> TakePassthrough:
        if not wanted.typed_passthrough:
            return lambda table, _start: table.select(where).rename_columns(list(wanted.keep))
        places = indices_of(self, wanted.keep)
        types = {self.fields[i].name: (self._type(i), self._dialect(i)) for i in places}
        return lambda table, start: typed(self.location, table.select(where), types, start)

    def coding(self, names: Iterable[str]) -> Self:
        """Return a view that converts these passthrough columns, such as a label, as it converts features."""
        view = copy(self)
        own = len(self.fields) - len(self.keys)
        view._types = {index: kind for index, kind in self._types.items() if index >= own}
        view._meant = self._meant | set(names)
        return view

    def _dialect(self, index: int) -> Dialect | None:
        """Return the dialect of a column of numbers that `coding` names, or None for a column that is only copied."""
        field = self.fields[index]
        if field.name not in self._meant or field.kind != "number":
            return None
        if field.problem:
            raise self.refusal(field.name, field.problem)
        return field.dialect

    def add_keys(self, keys: Keys) -> None:
        super().add_keys(keys)
        own = len(self.fields) - len(self.keys)
        self._types |= {own + i: value.type for i, value in enumerate(self.keys.values())}
        self.keys = {name: value.cast(pa.string()) for name, value in self.keys.items()}

    def first_texts(self, name: str) -> Sequence[str]:
        if name in self.keys:
            return (self.keys[name].as_py() or "",)
        return self._texts(indices_of(self, [name])[0])

    def _type(self, index: int) -> pa.DataType:
        """Infer the type of a passthrough column on demand, because a file may have thousands of other columns."""
        if index not in self._types:
            field = self.fields[index]
            kept = field.name in self.texts or (field.name in self._meant and field.kind == "text")
            self._types[index] = pa.string() if kept else self._inferred(index)
        return self._types[index]

    def passthrough_schema(self, keep: Sequence[str], typed: bool = True) -> pa.Schema:
        kinds = [self._type(i) for i in indices_of(self, keep)]
        return pa.schema(
            [(name, kind if typed else pa.string()) for name, kind in zip(keep, kinds, strict=True)]
        )

    @cached_property
    def _types(self) -> dict[int, pa.DataType]:
        return {}


class CsvReader(UntypedReader):
    """A reader of a CSV file or object, or of standard input (`-`), which can be read only once."""

    def __init__(
        self,
        location: Location,
        *,
        delimiter: str | None = None,
        usual: str = ",",
        header: bool = True,
        asked: Asked = NOTHING_ASKED,
        raw: HashingStream | None = None,
        seen: Sequence[str] | None = None,
        doubted: bool = False,
    ) -> None:
        if delimiter is not None:
            try:
                delimiter = check_delimiter(_NAMED.get(delimiter, delimiter))
            except ValueError as error:
                raise UsageError(f"--delimiter: {error}") from None
        self.location = location.source
        self._text = TextInput(location, raw, seen is not None, encoding=asked.encoding)
        self.positional = not header
        with self._text.opened(peek=True) as text:
            if asked.encoding == _LATIN_1 and _CONTROLS.search(text.look(LOOK)):
                name = encoding_of(text.head.decode(UTF8, "ignore").encode(_LATIN_1))
                if name != "latin-1":
                    got = "expected text in latin-1, got control characters"
                    raise self.error(f"{got}: --encoding {name} reads them")
            if doubted and is_utf8(text.look(LOOK), asked.encoding):  # the encoding comes from a model
                raise self.error(
                    f"expected text in {asked.encoding}, as the model was fitted on, got UTF-8: "
                    f"--encoding utf-8 reads it, or --encoding {asked.encoding} if it only looks like UTF-8"
                )
            line = _SEP.match(text.look(_LONGEST_SEP))
            if line is not None and delimiter in (None, line[1].decode()):
                delimiter, self._text.skipped = line[1].decode(), line.end()
                text.drop(line.end())
            self._delimiter = delimiter or found_delimiter(text, usual)
            recorded = "," if self._delimiter == delimiter_of(location, ",") else self._delimiter
            asked = replace(asked, delimiter=recorded)
            self._sniffed = sniff(text, self._delimiter, header, asked, seen or ())
            self.misread = (not_utf8(text.head, whole=False) or "") if asked.encoding == UTF8 else ""
        self.fields, self.asked, self.odd_rows = self._sniffed.fields, asked, self._sniffed.odd_rows
        self.filling = self._sniffed.filling
        self.rows = 0 if self._sniffed.empty else None
        # pandas and R write row names as the first column, which is then the only one without a name.
        nameless = [i for i, field in enumerate(self.fields) if not field.name]
        self.row_names = frozenset([""] if nameless == [0] and len(self.fields) > 1 else [])

    def _texts(self, index: int) -> Sequence[str]:
        return self._sniffed.values[index]

    def _inferred(self, index: int) -> pa.DataType:
        return inferred(self._sniffed.values[index], self._dialect(index))

    def _batches(self, indices: list[int], wanted: Wanted, broken: Broken) -> Iterator[pa.RecordBatch | None]:
        """Yield batches of text. The header is read as a row and dropped, because names may be repeated or quoted."""
        done = -self._sniffed.skip
        with self._text.opened() as text:
            for rows, line, byte in whole_rows(text, self._delimiter, self._sniffed.block):
                if byte and rows.startswith(BOM):  # Arrow drops the first BOM, but this one is text
                    rows = BOM + rows
                if rows:
                    # Check first: Arrow's handler for rows of another width fails silently on text that is not UTF-8.
                    problem = not_utf8(rows, line, byte) if wanted.set_aside else None
                    if problem is not None:
                        raise self.error(problem)
                    try:
                        table = self._parsed(rows, indices, wanted.set_aside, broken, done)
                    except pa.ArrowInvalid as error:
                        problem = not_utf8(rows, line, byte) if "UTF8" in str(error) else None
                        problem = problem or self._damage(str(error), rows, done)
                        raise self.error(problem) from error
                    yield from table.slice(max(0, -done)).to_batches()
                    done += table.num_rows
                if text.paused:
                    yield None

    def _parsed(
        self, rows: bytes, indices: list[int], set_aside: bool, broken: Broken, done: int
    ) -> pa.Table:
        """Parse `rows`, which follow `done` earlier rows. With `set_aside`, a row of wrong length becomes nulls."""
        names, bad = [str(i) for i in range(len(self._sniffed.fields))], list[int]()

        def take(row: pa_csv.InvalidRow) -> str:
            problem = f"expected {row.expected_columns} fields, got {row.actual_columns}"
            broken[done + row.number - 1] = problem, row.text
            bad.append(row.number - 1)
            return "skip"

        table = pa_csv.read_csv(
            pa.BufferReader(rows),
            # Arrow counts the rows in its errors only with one thread.
            pa_csv.ReadOptions(column_names=names, use_threads=False, block_size=len(rows) + 1),
            pa_csv.ParseOptions(
                delimiter=self._delimiter,
                newlines_in_values=True,
                ignore_empty_lines=not self._sniffed.blanks,
                invalid_row_handler=take if set_aside else None,
            ),
            pa_csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()),
                strings_can_be_null=False,
                include_columns=[str(i) for i in indices],
            ),
        )
        null = pa.Table.from_arrays([pa.nulls(1, f.type) for f in table.schema], schema=table.schema)
        if bad and bad[-1] == table.num_rows + len(bad) - 1 and not rows.endswith((b"\n", b"\r")):
            raise cut_off(self.location, spell_row(done + bad[-1]), broken[done + bad[-1]][0])
        for row in bad:
            table = pa.concat_tables([table.slice(0, row), null, table.slice(row)])
        return table

    def _damage(self, message: str, rows: bytes, done: int) -> str:
        """Return a message for Arrow's error about `rows`, which follow `done` earlier rows."""
        ragged = re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", message)
        if not ragged:
            return f"after {max(0, done)} rows: expected CSV, got: {message}"
        if int(ragged[3]) <= int(ragged[2]):
            text, short = message.partition(f", got {ragged[3]}: ")[2], self.odd_rows or self._sniffed.short
            advice = f", {CUT}" if text and rows.endswith(text.encode()) else short and f"; {short}"
        elif self._sniffed.wide:
            advice = self._sniffed.wide
        elif ragged[2] == "1":
            advice = f"; --delimiter {as_option(',' if self._delimiter == ';' else ';')} reads each line as one value"
        else:
            comma = ", such as 1,5," if self._delimiter == "," else ""
            quotes = f"put values that hold the delimiter{comma} in quotes"
            advice = f"; {quotes}, or write the table with another one"
        if b"\n" in rows and _STRAY_RETURN.search(re.sub(rb'"[^"]*"', b"", rows)):
            advice += "; a carriage return alone also ends a row: put a value that contains one in quotes"
        row = spell_row(int(ragged[1]) - 1 + done)
        return f"{row}: expected {ragged[2]} fields, got {ragged[3]}{advice}"


# Control characters, in UTF-8. Letters of other encodings become such characters if they are read as Latin-1.
_LATIN_1, _CONTROLS = "iso8859-1", re.compile(rb"\xc2[\x80-\x9f]")
# A line such as sep=; that Excel writes before the header.
_SEP = re.compile(rb'(?:\xef\xbb\xbf)?"?sep=([,;\t|])"?\r?\n')
_LONGEST_SEP = 16
_STRAY_RETURN = re.compile(rb"\r(?![\r\n])")
