"""Reader of NPY files and objects.

They are not memory-mapped: if a mapped file is truncated or its disk fails, the process is killed without a message.
"""

from __future__ import annotations

import io
import math
import os
from contextlib import ExitStack
from typing import IO, Any

import numpy as np

from kafeat.io.readers.array import ArrayReader
from kafeat.io.readers.base import damage
from kafeat.io.storage.base import Location
from kafeat.io.storage.local_path import LocalPath
from kafeat.types import Array

_BLOCK = 256
"""Number of rows to read at once if only some rows are needed."""
_HEAD = 1 << 16
"""Bytes to read for the header, more than a numeric array needs. The length that the header states is not trusted."""


class NpyReader(ArrayReader):
    """A reader of the array in an NPY file or object."""

    seekable = True

    def __init__(self, location: Location) -> None:
        self._place, self.location = location, location.source
        self._file = location.open_random()
        with ExitStack() as failing:
            failing.callback(self.close)
            with np.errstate(all="ignore"), damage(self.location, "an NPY file of numbers", (Exception,)):
                # NumPy parses the header, which is not trusted, with Python's own tools.
                shape, dtype = self._read_header()
            super().__init__(self.location, shape, dtype, self._rows)
            failing.pop_all()

    def _read_header(self) -> tuple[tuple[int, ...], np.dtype[Any]]:
        """Return shape and dtype. Raise ValueError if the file is too short for them."""
        local = isinstance(self._place, LocalPath)
        size = os.fstat(self._file.fileno()).st_size if local else int(self._file.size())
        head = np.empty(min(_HEAD, size), np.uint8)
        self._fill(head, 0)
        file = io.BytesIO(head.data)
        shape, by_columns, dtype = read_header(file)
        self._offset, self._by_rows = file.tell(), not by_columns
        if size < self._offset + math.prod(shape) * dtype.itemsize:
            raise ValueError(f"{size:,} bytes, and a header that claims the shape {shape} of {dtype}")
        return shape, dtype

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
        while len(rest):
            done = self._read(rest, at)
            if not done:
                raise self.error(
                    f"expected {len(rest):,} more bytes at byte {at:,}, got the end of the file: "
                    "it was cut short while it was read"
                )
            rest, at = rest[done:], at + done

    def _read(self, out: Array, at: int) -> int:
        """Read bytes from position `at` on, and return their number. Any number of threads may read."""
        with self._place.naming():
            if isinstance(self._place, LocalPath):
                return os.preadv(self._file.fileno(), [out.data], at)
            data = self._file.read_at(len(out), at)
        out[: len(data)] = np.frombuffer(data, np.uint8)
        return len(data)

    def blocks(self) -> Array:
        return np.append(np.arange(0, self._n_rows, _BLOCK), self._n_rows)

    def close(self) -> None:
        self._file.close()


def read_header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Return shape, true for an array in Fortran order, and dtype. Raise NumPy's exceptions for an invalid header."""
    version = np.lib.format.read_magic(file)
    if version not in ((1, 0), (2, 0), (3, 0)):
        raise ValueError(f"an NPY header of version {version}, not of 1.0 to 3.0")
    first = version == (1, 0)
    shape, by_columns, dtype = (
        np.lib.format.read_array_header_1_0 if first else np.lib.format.read_array_header_2_0
    )(file)
    if dtype.hasobject:
        raise ValueError("Python objects")
    if not all(type(n) is int and n >= 0 for n in shape):  # NumPy accepts True as a length
        raise ValueError(f"a header that claims the shape {shape}")
    return shape, by_columns, dtype
