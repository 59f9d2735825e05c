"""Open an input in the format of its name or its first bytes. The modules of readers are imported on use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafeat.errors import UsageError
from kafeat.io.storage.formats import INPUTS, PIPED, delimiter_of, format_of
from kafeat.io.storage.locations import entry_of

if TYPE_CHECKING:
    from kafeat.io.readers.base import Reader


def open_reader(
    place: str,
    format: str | None = None,
    *,
    delimiter: str = ",",
    header: bool = True,
    stamp: str | None = None,
) -> Reader:
    """Open a file, an object or standard input, as a context manager. Arrow on standard input is recognised.

    `stamp` is the stamp of the file when it was listed. Without it, the file must not change from now on.
    """
    if stamp is None and place != "-":
        entry = entry_of(place)
        stamp = None if entry is None else entry.stamp
    source = _reader(place, format, delimiter, header)
    source.origin = None if stamp is None else (place, stamp)
    return source


def _reader(place: str, format: str | None, delimiter: str, header: bool) -> Reader:
    name = format_of(place, format, INPUTS)
    if name not in INPUTS:
        raise UsageError(
            f"{place}: expected an input format of {', '.join(INPUTS)}, got {name}: it is written only"
        )
    if place == "-" and name not in PIPED:
        raise UsageError(
            f"-: expected CSV, Arrow or LIBSVM on standard input, got {name}: it cannot be piped"
        )
    if name == "csv":
        from kafeat.io.readers.csv import CsvReader
        from kafeat.io.readers.text_stream import HashingStream

        tap = HashingStream(place) if place == "-" else None
        if tap is not None and format is None and is_arrow(tap.magic):
            from kafeat.io.readers.arrow_ipc import open_arrow

            return open_arrow(place, tap)
        return CsvReader(place, delimiter=delimiter_of(place, delimiter), header=header, tap=tap)
    return _opened(place, name)


def is_arrow(head: bytes) -> bool:
    """Return true for the first bytes of an Arrow IPC stream or file."""
    return head.startswith((b"\xff\xff\xff\xff", b"ARROW1"[:4]))


def _opened(place: str, name: str) -> Reader:
    if name == "parquet":
        from kafeat.io.readers.parquet import ParquetReader

        return ParquetReader(place)
    if name == "arrow":
        from kafeat.io.readers.arrow_ipc import open_arrow

        return open_arrow(place)
    if name == "libsvm":
        from kafeat.io.readers.libsvm import LibsvmReader

        return LibsvmReader(place)
    if name == "npz":
        from kafeat.io.readers.sparse_matrix import NpzReader

        return NpzReader(place)
    from kafeat.io.readers.npy import NpyReader

    return NpyReader(place)
