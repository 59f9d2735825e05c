"""CSV, packed or not, from a file or from standard input.

Every column is read as text and becomes numbers in the worker: so the row of a bad value is known, a kept
column is copied as it stands, and a pipe needs to be read only once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import closing

import pyarrow as pa
import pyarrow.csv as pa_csv

from kafeat.errors import DataError, UsageError, spell_row
from kafeat.io.bytestream import Tap, Unpacked, Utf8Only, first_not_utf8
from kafeat.io.columns import Columns
from kafeat.io.csv_kept import ARROW, Type, inferred, typed
from kafeat.io.csv_quotes import CheckedText
from kafeat.io.csv_ragged import Ragged
from kafeat.io.csv_sniff import sniff
from kafeat.io.files import digest_of
from kafeat.io.locations import kind_of, size_of
from kafeat.io.names import indices_of
from kafeat.io.source import Chunk, Source
from kafeat.io.table import Broken, Keeper, TableChunk, cut
from kafeat.io.uri import is_remote, shown


class CsvSource(Source):
    """A CSV file or object, or standard input (`-`), which can be read once."""

    untyped = True

    def __init__(
        self, place: str, *, delimiter: str = ",", header: bool = True, tap: Tap | None = None
    ) -> None:
        if len(delimiter) != 1 or delimiter in '"\r\n' or not delimiter.isascii():
            raise UsageError(f"--delimiter: expected one character, got {delimiter!r}")
        self._name, self.place = place, "<stdin>" if place == "-" else shown(place)
        self.positional, self._delimiter = not header, delimiter
        text = self._open() if tap is None else Unpacked(self.place, tap)
        self._sniffed = sniff(self.place, text, delimiter, header)
        self.fields = self._sniffed.fields
        self.rows = 0 if self._sniffed.empty else None
        self._tap = text.tap
        # A pipe cannot be opened twice: what was looked at is handed on.
        self._once = place == "-" or not _repeats(place)
        self._text: Unpacked | None = text if self._once else None
        self._ragged: Ragged | None = None
        self._types: dict[int, Type] = {}
        if not self._once:
            text.close()

    @property
    def row_names(self) -> frozenset[str]:
        """The first column, where it alone has no name: so pandas and R write the names of rows."""
        nameless = [i for i, field in enumerate(self.fields) if not field.name]
        return frozenset([""] if nameless == [0] and len(self.fields) > 1 else [])

    def set_aside(self) -> None:
        self._ragged = Ragged()

    def _chunks(
        self, columns: Columns, keep: Sequence[str], height: int, *, typed_keep: bool
    ) -> Iterator[Chunk]:
        features = indices_of(self, (column.name for column in columns.features))
        kept = indices_of(self, keep)
        indices = list(dict.fromkeys([*features, *kept]))
        keeper = self._keeper([indices.index(i) for i in kept], keep, typed_keep) if kept else None
        for start, table in cut(self._pieces(indices), height):
            yield TableChunk(self.place, start, table, columns, keeper, self._broken())

    def _broken(self) -> Broken | None:
        ragged, skip = self._ragged, self._sniffed.skip
        return None if ragged is None else lambda row: ragged.problems.get(row + skip)

    def _keeper(self, where: list[int], names: Sequence[str], typed_keep: bool) -> Keeper:
        if not typed_keep:
            return lambda table, _start: table.select(where).rename_columns(list(names))
        types = {self.fields[i].name: self._type(i) for i in indices_of(self, names)}
        return lambda table, start: typed(self.place, table.select(where), types, start)

    def _type(self, index: int) -> Type:
        """Of a column, inferred when it is asked for: a wide file has many, of which few are kept."""
        if index not in self._types:
            self._types[index] = inferred(self._sniffed.values[index])
        return self._types[index]

    def kept_fields(self, keep: Sequence[str], typed: bool = True) -> pa.Schema:
        kinds = [ARROW[self._type(i)] for i in indices_of(self, keep)]
        return pa.schema(
            [(name, kind if typed else pa.string()) for name, kind in zip(keep, kinds, strict=True)]
        )

    def estimated_rows(self) -> int | None:
        """By the lines of its beginning: the reader itself reads far ahead."""
        if self.rows is not None or self._once:
            return self.rows
        with closing(self._open()) as text:
            head = text.look(_HEAD)
            share = text.tap.n_bytes / max(1, size_of(self._name) or 0)
        return max(0, round(head.count(b"\n") / max(share, 1e-12)) - self._sniffed.skip)

    def digest(self) -> str:
        return self._tap.digest() if self._once else digest_of(self._name)

    def close(self) -> None:
        self._tap.close()

    def _open(self) -> Unpacked:
        return Unpacked(self.place, Tap(self._name))

    def _pieces(self, indices: list[int]) -> Iterator[pa.RecordBatch]:
        """Batches of text. The header is read as a row, and dropped: names may come twice, or be quoted."""
        text, self._text = self._text if self._once else self._open(), None
        if text is None:
            raise UsageError(f"{self.place}: expected to be read once; a pipe cannot be read again")
        done, skip = 0, self._sniffed.skip
        # The reader's call for a row of other width fails on text that is no UTF-8, and that would go unnoticed.
        whole = text if self._ragged is None else Utf8Only(self.place, text)
        checked = CheckedText(self.place, whole, self._delimiter)
        try:
            batches = self._reader(checked, indices)
            for batch in batches if self._ragged is None else self._ragged.woven(batches):
                checked.check()
                yield batch.slice(skip)
                done += max(0, batch.num_rows - skip)
                skip = max(0, skip - batch.num_rows)
            checked.check()
        except pa.ArrowInvalid as error:
            checked.check()
            raise self._damage(str(error), done) from error
        finally:
            if not self._once:
                text.close()

    def _reader(self, text: CheckedText, indices: list[int]) -> pa_csv.CSVStreamingReader:
        names = [str(i) for i in range(len(self.fields))]
        return pa_csv.open_csv(
            pa.PythonFile(text, mode="r"),
            # One thread: it is as fast here, and only then are the rows of mistakes counted.
            read_options=pa_csv.ReadOptions(
                column_names=names, use_threads=False, block_size=self._sniffed.block
            ),
            parse_options=pa_csv.ParseOptions(
                delimiter=self._delimiter,
                newlines_in_values=True,
                ignore_empty_lines=not self._sniffed.blanks,
                invalid_row_handler=None if self._ragged is None else self._ragged.take,
            ),
            convert_options=pa_csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()),
                strings_can_be_null=False,
                include_columns=[str(i) for i in indices],
            ),
        )

    def _damage(self, message: str, done: int) -> DataError:
        ragged = re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", message)
        if ragged:
            row = int(ragged[1]) - 1 - self._sniffed.skip
            return DataError(f"{self.place}: {spell_row(row)}: expected {ragged[2]} fields, got {ragged[3]}")
        if "UTF8" in message:
            return DataError(f"{self.place}: {self._not_utf8(done)}")
        if "straddling" in message:
            return DataError(
                f"{self.place}: after {done} rows: expected rows of less than {self._sniffed.block} bytes, "
                "got a longer one; is a quote left open?"
            )
        return DataError(f"{self.place}: after {done} rows: expected CSV, got: {message}")

    def _not_utf8(self, done: int) -> str:
        """Where it is not; of what can be read once, after how many rows."""
        if not self._once:
            with closing(self._open()) as text:
                found = first_not_utf8(text)
            if found is not None:
                return str(found)
        return f"after {done} rows: expected UTF-8 text, got other bytes"


_HEAD = 8 << 20


def _repeats(place: str) -> bool:
    return is_remote(place) or kind_of(place) == "file"
