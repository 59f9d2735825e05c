"""Open an input in the format of its name or its first bytes. The modules of readers are imported on use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafeat.errors import UsageError
from kafeat.io.storage.base import Location, StandardStream
from kafeat.io.storage.formats import INPUTS, PIPED, delimiter_of, format_of

if TYPE_CHECKING:
    from kafeat.io.readers.base import Reader


def open_reader(
    location: Location,
    format: str | None = None,
    *,
    delimiter: str = ",",
    header: bool = True,
    stamp: str | None = None,
) -> Reader:
    """Open a file, an object or standard input, as a context manager. Arrow on standard input is recognised.

    `stamp` is the stamp of the file when it was listed. Without it, the file must not change from now on.
    """
    if stamp is None:
        entry = location.entry()
        stamp = None if entry is None else entry.stamp
    reader = _reader(location, format, delimiter, header)
    reader.origin = None if stamp is None else (location, stamp)
    return reader


def _reader(location: Location, format: str | None, delimiter: str, header: bool) -> Reader:
    name = format_of(location, format, INPUTS)
    if name not in INPUTS:
        raise UsageError(
            f"{location}: expected an input format of {', '.join(INPUTS)}, got {name}: it is written only"
        )
    if isinstance(location, StandardStream) and name not in PIPED:
        raise UsageError(
            f"-: expected CSV, Arrow or LIBSVM on standard input, got {name}: it cannot be piped"
        )
    if name == "csv":
        from kafeat.io.readers.csv import CsvReader
        from kafeat.io.readers.text_stream import HashingStream

        raw = HashingStream(location) if isinstance(location, StandardStream) else None
        if raw is not None and format is None and is_arrow(raw.magic):
            from kafeat.io.readers.arrow_ipc import open_arrow

            return open_arrow(location, raw)
        return CsvReader(location, delimiter=delimiter_of(location, delimiter), header=header, raw=raw)
    return _opened(location, name)


def is_arrow(head: bytes) -> bool:
    """Return true for the first bytes of an Arrow IPC stream or file."""
    return head.startswith((b"\xff\xff\xff\xff", b"ARROW1"[:4]))


def _opened(location: Location, name: str) -> Reader:
    if name == "parquet":
        from kafeat.io.readers.parquet import ParquetReader

        return ParquetReader(location)
    if name == "arrow":
        from kafeat.io.readers.arrow_ipc import open_arrow

        return open_arrow(location)
    if name == "libsvm":
        from kafeat.io.readers.libsvm import LibsvmReader

        return LibsvmReader(location)
    if name == "npz":
        from kafeat.io.readers.sparse_matrix import NpzReader

        return NpzReader(location)
    from kafeat.io.readers.npy import NpyReader

    return NpyReader(location)
