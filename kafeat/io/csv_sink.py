"""CSV files and standard output."""

from __future__ import annotations

import io
from contextlib import suppress
from typing import Any

import pyarrow as pa

from kafeat.errors import UsageError, quoted
from kafeat.io.columnar import columns_of, nulls_of
from kafeat.io.csv_text import header, lines, spelled
from kafeat.io.files import standard_output, write_full
from kafeat.io.sink import Layout, Sink
from kafeat.types import Floats, Mask


class CsvSink(Sink):
    """Text, one row a line, every number in the shortest form that reads back to the same value."""

    order = "F"

    def __init__(self, place: str, path: str, layout: Layout) -> None:
        super().__init__(layout)
        if layout.layout == "list":
            raise UsageError(f"{place}: expected the columns layout for CSV, got list; Parquet holds lists")
        packing = _packing(place, layout.compression)
        for kept in layout.kept_schema or ():
            if not spelled(kept.type):
                raise UsageError(
                    f"{place}: column {quoted(kept.name)}: expected a kept column of plain values, got {kept.type}; "
                    "leave it out, or write Parquet"
                )
        self._file = _Pour(standard_output() if place == "-" else io.FileIO(path, "wb"))
        self._packed = (
            pa.CompressedOutputStream(pa.PythonFile(self._file, mode="w"), packing) if packing else None
        )

    def begin(self) -> None:
        if self.layout.header:
            kept = [] if self.layout.kept_schema is None else self.layout.kept_schema.names
            self._put(header([*kept, *self.layout.names], self.layout.delimiter))

    def write(self, block: Floats, kept: pa.Table | None, good: Mask | None = None) -> None:
        if good is not None:
            block, kept = block[good], None if kept is None else kept.filter(pa.array(good))
        features = columns_of(block, nulls_of(block) if self.layout.nullable else None)
        for text in lines([] if kept is None else kept.columns, features, self.layout.delimiter):
            self._put(text)

    def _put(self, text: pa.Buffer) -> None:
        (self._file if self._packed is None else self._packed).write(text)

    def _end(self) -> None:
        if self._packed is not None:
            self._packed.close()

    def close(self) -> None:
        self._file.deaf = True
        if self._packed is not None:
            with suppress(pa.ArrowException, OSError):
                self._packed.close()
        self._file.close()


class _Pour(io.RawIOBase):
    """A file that takes all bytes or fails. Once it is deaf it drops them: a packer writes its end even after a
    failure, and complains on stderr if that fails too.
    """

    def __init__(self, file: io.FileIO) -> None:
        self._file, self.deaf = file, False

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        if not self.deaf:
            write_full(self._file, data)
        return len(data)

    def close(self) -> None:
        # A packer closes what it writes to: only what is deaf is at its end.
        if self.deaf:
            self._file.close()
            super().close()


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
