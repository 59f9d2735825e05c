"""CSV files and standard output."""

from __future__ import annotations

import csv
import io
import sys
from typing import BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from kafeat.errors import UsageError
from kafeat.io.columnar import columns_of
from kafeat.io.sink import Layout, Sink
from kafeat.types import Floats


class CsvSink(Sink):
    """Text, one row a line, every number in the shortest form that reads back to the same value."""

    order = "F"

    def __init__(self, place: str, path: str, layout: Layout) -> None:
        super().__init__(layout)
        if layout.layout == "list":
            raise UsageError(f"{place}: expected the columns layout for CSV, got list; Parquet holds lists")
        self._place = place
        packing = _packing(place, layout.compression)
        for kept in layout.kept_schema or ():
            if pa.types.is_nested(kept.type):
                raise UsageError(
                    f"{place}: column {kept.name!r}: expected a kept column of plain values, got {kept.type}"
                )
        self._file: BinaryIO | io.FileIO = sys.stdout.buffer if place == "-" else io.FileIO(path, "wb")
        self._packed = (
            pa.CompressedOutputStream(pa.PythonFile(self._file, mode="w"), packing) if packing else None
        )

    def begin(self) -> None:
        if self.layout.header:
            self._put(self._header())

    def write(self, block: Floats, kept: pa.Table | None) -> None:
        columns = [] if kept is None else [_plain(column) for column in kept.columns]
        names = [*([] if kept is None else kept.column_names), *self.layout.names]
        columns += [pa.chunked_array([column]) for column in columns_of(block)]
        table = pa.Table.from_arrays(columns, names=names)
        quoting = "needed" if any(self._structural(column) for column in columns) else "none"
        text = pa.BufferOutputStream()
        pa_csv.write_csv(
            table,
            text,
            pa_csv.WriteOptions(include_header=False, delimiter=self.layout.delimiter, quoting_style=quoting),
        )
        self._put(text.getvalue())

    def _structural(self, column: pa.ChunkedArray) -> bool:
        """Whether text needs quotes: Arrow then quotes all text of the block, which reads back the same."""
        if not pa.types.is_string(column.type):
            return not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type))
        found = [
            pc.any(pc.match_substring(column, mark)) for mark in (self.layout.delimiter, '"', "\n", "\r")
        ]
        return any(scalar.as_py() for scalar in found)

    def _header(self) -> bytes:
        line = io.StringIO()
        kept = [] if self.layout.kept_schema is None else self.layout.kept_schema.names
        csv.writer(line, delimiter=self.layout.delimiter, lineterminator="\n").writerow(
            [*kept, *self.layout.names]
        )
        return line.getvalue().encode()

    def _put(self, text: bytes | pa.Buffer) -> None:
        if self._packed is not None:
            self._packed.write(text)
            return
        rest = memoryview(text)
        while rest.nbytes:
            rest = rest[self._file.write(rest) :]

    def _end(self) -> None:
        if self._packed is not None:
            self._packed.close()
        if self._place == "-":
            self._file.flush()

    def close(self) -> None:
        if self._place != "-":
            self._file.close()


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Text as one type, and categories as the values that they stand for."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return column.cast(pa.string())
    return column


def _packing(place: str, compression: str | None) -> str | None:
    if compression in (None, "none"):
        lower = place.lower()
        if compression is None and lower.endswith(".gz"):
            return "gzip"
        return "zstd" if compression is None and lower.endswith(".zst") else None
    if compression not in ("gzip", "zstd"):
        raise UsageError(
            f"{place}: expected a compression of none, gzip or zstd for CSV, got {compression!r}"
        )
    return compression
