"""Readers of Arrow IPC: Feather files (version 2), and streams, which can be piped.

A file is a stream between two marks, so a file that comes through a pipe is read as a stream.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any

import pyarrow as pa

from kafeat.errors import DataError
from kafeat.io.readers.base import damage
from kafeat.io.readers.table import ArrowReader
from kafeat.io.readers.text_stream import DecompressedStream, HashingStream, TextInput, TextReader
from kafeat.io.readers.wide_integers import footer_of, wide_integers
from kafeat.io.storage.base import Location
from kafeat.io.storage.files import read_full

FILE, STREAM, FEATHER_1 = b"ARROW1", b"\xff\xff\xff\xff", b"FEA1"
_FILE_MARK = 8
"""Length in bytes of the mark at the beginning of a file, with its padding."""
_TAIL = 4 + len(FILE)
"""Length in bytes of what follows the footer of a file: the length of the footer, and the mark."""

_damage = partial(
    damage,
    expected="sound Arrow IPC",
    kinds=(pa.ArrowException, OSError, ValueError, OverflowError, MemoryError),
)


def open_arrow(location: Location, raw: HashingStream | None = None) -> ArrowReader:
    """Open a file or a stream, depending on its first bytes. `raw` is standard input if it is already open."""
    if location.kind() == "file":
        with location.open_random() as file:
            magic = read_full(file, len(FILE))
        if magic == FILE:
            return ArrowFileReader(location)
    return ArrowStreamReader(location, raw)


class ArrowFileReader(ArrowReader):
    """A reader of an Arrow IPC file, which stores its number of rows. It is read one record batch at a time."""

    def __init__(self, location: Location) -> None:
        self._place, self.location = location, location.source
        self._file = location.open_random()
        with ExitStack() as failing, _damage(self.location):
            failing.callback(self.close)
            reader = self._readable()
            self.schema, self.rows = reader.schema, self._count(reader)
            self._describe()
            failing.pop_all()

    def _readable(self) -> Any:
        try:
            return pa.ipc.open_file(pa.PythonFile(self._file, mode="r"))
        except pa.ArrowNotImplementedError:
            wide_integers(footer_of(self._file, _TAIL), footer=True).refuse(self.location)
            raise

    def _count(self, reader: Any) -> int:
        if hasattr(reader, "count_rows"):  # new in pyarrow 26
            return int(reader.count_rows())
        if len(reader.schema):  # one column is enough to count rows
            options = pa.ipc.IpcReadOptions(included_fields=[0])
            reader = pa.ipc.open_file(pa.PythonFile(self._file, mode="r"), options=options)
        return sum(reader.get_batch(number).num_rows for number in range(reader.num_record_batches))

    def pieces(self, indices: list[int], height: int) -> Iterator[pa.RecordBatch]:
        options = pa.ipc.IpcReadOptions(included_fields=indices or [0])
        with _damage(self.location):
            reader = pa.ipc.open_file(pa.PythonFile(self._file, mode="r"), options=options)
            order = sorted(set(indices))
            for number in range(reader.num_record_batches):
                batch = _sound(reader.get_batch(number))
                yield batch.select([order.index(index) for index in indices])

    def close(self) -> None:
        self._file.close()


class ArrowStreamReader(TextReader, ArrowReader):
    """A reader of an Arrow IPC stream in a file, a pipe or standard input (`-`)."""

    def __init__(self, location: Location, raw: HashingStream | None = None) -> None:
        self.location, self._text = location.source, TextInput(location, raw, binary=True)
        self._files = ExitStack()
        self._files.callback(self._text.close)
        with ExitStack() as failing, _damage(self.location):
            failing.callback(self.close)
            self._stream = _Stream(self.location, self._files.enter_context(self._text.opened()))
            self.schema = self._stream.schema
            self._first = next(self._stream.batches(), None)
            self._describe()
            failing.pop_all()
        self._fresh = True

    def _peek(self, index: int) -> Iterable[pa.Scalar]:
        return () if self._first is None else self._first.column(index)

    def pieces(self, indices: list[int], height: int) -> Iterator[pa.RecordBatch]:
        with _damage(self.location):
            for batch in self._all():
                yield batch.select(indices)

    def _all(self) -> Iterator[pa.RecordBatch]:
        if self._fresh:
            self._fresh, first, self._first = False, self._first, None
            if first is not None:
                yield first
                yield from self._stream.batches()
        else:
            with self._text.opened() as text:
                yield from _Stream(self.location, text).batches()

    def close(self) -> None:
        self._first = None
        self._files.close()


class _Stream:
    """The record batches of a complete stream. Arrow's own reader also accepts a stream that ends after any batch.

    The format allows a writer to close the stream without the end mark, but the writers of pyarrow, Polars, Spark and
    kafeat write it. Without the mark, a failed writer would look like a finished one.
    """

    def __init__(self, location: str, text: DecompressedStream) -> None:
        magic = text.look(_FILE_MARK)
        if magic.startswith(FEATHER_1):
            raise DataError(
                f"{location}: expected Arrow IPC, got Feather of version 1; write it as version 2"
            )
        self._in_file = magic.startswith(FILE)
        if self._in_file:
            read_full(text, _FILE_MARK)
        elif not magic.startswith(STREAM):
            raise DataError(f"{location}: expected Arrow IPC, got bytes that start with {magic!r}")
        self._location, self._full_reads = location, _FullReads(text)
        try:
            self._reader = pa.ipc.open_stream(pa.PythonFile(self._full_reads, mode="r"))
        except pa.ArrowNotImplementedError:
            wide_integers(b"".join(self._full_reads.first or ())).refuse(location)
            raise
        self._full_reads.first, self.schema = None, self._reader.schema

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the remaining batches, then check that the stream is complete."""
        for batch in self._reader:
            yield _sound(batch)
        self._check_end()

    def _check_end(self) -> None:
        if self._full_reads.ended:
            raise DataError(
                f"{self._location}: expected the mark at the end of an Arrow IPC stream, got the end of the "
                f"{'input' if self._location == '<stdin>' else 'file'}: it was cut off, or its writer failed"
            )
        length, tail = self._full_reads.rest()
        if self._in_file:
            length -= len(tail) + int.from_bytes(tail[:4], "little")
            if length or tail[4:] != FILE:
                raise DataError(
                    f"{self._location}: expected the footer of an Arrow IPC file and its end, got other bytes"
                )
        elif length:
            raise DataError(
                f"{self._location}: expected nothing after the end of the Arrow IPC stream, got {length:,} bytes more; "
                "cat cannot join streams"
            )


class _FullReads(io.RawIOBase):
    """A file for Arrow whose reads wait for all requested bytes: Arrow mistakes a shorter read for the end."""

    ended = False
    """True if a read returned fewer bytes than requested."""

    def __init__(self, text: DecompressedStream) -> None:
        self._text = text
        self.first: list[bytes] | None = []
        """The bytes of all reads until the schema is read, for the error about wide integers; then None."""

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        data = self._text.read() if size < 0 else read_full(self._text, size)
        self.ended |= len(data) < size
        if self.first is not None:
            self.first.append(data)
        return data

    def rest(self) -> tuple[int, bytes]:
        """Read to the end. Return the number of bytes that were left, and the last 10 of them."""
        length, tail = 0, b""
        while data := read_full(self._text, 1 << 20):
            length, tail = length + len(data), (tail + data)[-_TAIL:]
        return length, tail


def _sound(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the batch if its offsets and lengths are valid, because later code uses them without checks."""
    batch.validate(full=True)
    return batch
