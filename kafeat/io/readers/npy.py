"""Reader of NPY files and objects.

They are read and not mapped: if a mapped file is truncated or its disk fails, the process is killed without a message.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from kafeat.errors import DataError, KafeatError, first_line
from kafeat.io.readers.array import ArrayReader
from kafeat.io.storage.base import Location
from kafeat.io.storage.files import refused
from kafeat.io.storage.local_path import LocalPath
from kafeat.types import Array

_BLOCK = 256
"""Rows that are read at once if only some rows are needed."""


class NpyReader(ArrayReader):
    """A reader of the array in an NPY file or object."""

    seekable = True

    def __init__(self, location: Location) -> None:
        self._place, name = location, location.source
        if not isinstance(location, LocalPath):
            with _no_array(name):
                there = RemoteNpy(location)
            self._offset, self._by_rows = there.offset, there.by_rows
            super().__init__(name, there.shape, there.dtype, self._rows)
            self._file: RemoteNpy | io.FileIO = there
            return
        location.open_random().close()
        mapped = _mapped(location)
        self._offset, self._by_rows = int(mapped.offset), bool(mapped.flags.c_contiguous)  # type: ignore[attr-defined]  # NumPy has no stub of it
        super().__init__(name, mapped.shape, mapped.dtype, self._rows)
        self._file = location.open_random()

    def _rows(self, start: int, stop: int) -> Array:
        rows, width, size = stop - start, len(self.fields), self._dtype.itemsize
        if self._by_rows:
            block = np.empty((rows, width), self._dtype)
            self._fill(block, self._offset + start * width * size)
            return block
        columns = np.empty((width, rows), self._dtype)
        for j, column in enumerate(columns):
            self._fill(column, self._offset + (j * self._n_rows + start) * size)
        return columns.T

    def _fill(self, block: Array, at: int) -> None:
        rest = block.reshape(-1).view(np.uint8)
        if isinstance(self._file, RemoteNpy):
            self._file.fill(rest, at)
            return
        while len(rest):
            try:
                done = os.preadv(self._file.fileno(), [rest.data], at)
            except OSError as error:
                raise refused(self.location, error) from error
            if not done:
                raise DataError(
                    f"{self.location}: expected {len(rest):,} more bytes at byte {at:,}, got the end of the file: "
                    "it was cut short while it was read"
                )
            rest, at = rest[done:], at + done

    def blocks(self) -> Array:
        return np.append(np.arange(0, self._n_rows, _BLOCK), self._n_rows)

    def close(self) -> None:
        self._file.close()


def _mapped(location: LocalPath) -> Array:
    """Map the array after the header."""
    with _no_array(location):
        array: np.memmap[Any, Any] = np.lib.format.open_memmap(location.path, mode="r")
    return array


@contextmanager
def _no_array(location: object) -> Iterator[None]:
    """Convert the exceptions that NumPy raises for an invalid header."""
    try:
        with np.errstate(all="ignore"):
            yield
    except (KafeatError, MemoryError):
        raise
    except OSError as error:
        raise refused(location, error) from error
    except Exception as error:  # NumPy parses the header, which is not trusted, with Python's own tools
        raise DataError(f"{location}: expected an NPY file of numbers, got {first_line(error)}") from error


# More than any header of a numeric array needs. The length that the header claims is not trusted.
_HEAD = 1 << 16


class RemoteNpy:
    """An NPY object with random access. Raise NumPy's exceptions for an invalid header."""

    def __init__(self, location: Location) -> None:
        from kafeat.io.storage.object_store import unreachable

        self._location, self._refused = location, unreachable
        self._file = location.open_random()
        size = int(self._file.size())
        head = io.BytesIO(self._at(0, min(_HEAD, size)))
        version = np.lib.format.read_magic(head)
        if version not in ((1, 0), (2, 0)):
            raise ValueError(f"format version {version}, expected 1.0 or 2.0")
        read = (
            np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        )
        self.shape, by_columns, self.dtype = read(head)
        if self.dtype.hasobject:
            raise ValueError("Python objects")
        self.offset, self.by_rows = head.tell(), not by_columns
        needed = self.offset + int(np.prod([int(n) for n in self.shape], dtype=object)) * self.dtype.itemsize
        if size < needed:
            raise ValueError(f"{size:,} bytes, and a header that claims {needed:,}")

    def fill(self, block: Array, at: int) -> None:
        """Fill a flat array of bytes, from byte `at` of the object on."""
        data = self._at(at, len(block))
        if len(data) < len(block):
            raise DataError(
                f"{self._location}: expected {len(block):,} bytes at byte {at:,}, got {len(data):,}: "
                "it was cut short while it was read"
            )
        block[:] = np.frombuffer(data, np.uint8)

    def _at(self, at: int, n: int) -> Any:
        try:
            return self._file.read_at(n, at)
        except OSError as error:
            raise self._refused(self._location, error) from error

    def close(self) -> None:
        """Close the object."""
        self._file.close()
