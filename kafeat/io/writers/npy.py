"""Writer of NPY files. Workers write each block at its position."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np

from kafeat.errors import UsageError
from kafeat.io.storage.atomic import AtomicFile
from kafeat.io.storage.files import write_full
from kafeat.io.writers.base import Layout, Writer
from kafeat.io.writers.buffer_pool import BufferPool
from kafeat.types import Floats, Mask

if TYPE_CHECKING:
    import pyarrow as pa

HEADER = 128
"""Size of the header in bytes. It is fixed, so that the header can be written last."""


class NpyWriter(Writer):
    """A writer of a matrix in C order."""

    def __init__(self, location: str, file: AtomicFile, layout: Layout) -> None:
        super().__init__(location, file, layout)
        width = len(layout.names)
        self._row = width * layout.dtype.itemsize
        self._pool = BufferPool(layout.block_rows, layout.block_rows, width, layout.dtype, self.wants)
        self._rows = 0
        self._stored: set[int] = set()
        self._file = io.FileIO(file.path, "wb")
        self._late = layout.rows is None

    def begin(self) -> None:
        if self._late and not self.file.regular and not self._file.seekable():
            raise UsageError(
                f"{self.location}: expected a file, got a pipe: the number of rows is known at the end only"
            )
        write_full(self._file, _header(self.layout.dtype, self.layout.rows or 0, len(self.layout.names)))

    def buffer(self, start: int, rows: int) -> Floats:
        return self._pool.take(rows)

    def filled(self, start: int, block: Floats) -> None:
        if self.file.regular and not self.layout.dropping:
            self._put_at(start, block)
            self._stored.add(start)

    def _write(self, block: Floats, passthrough: pa.Table | None, good: Mask | None) -> None:
        piece = self._pool.back(block, good)
        block = piece.block
        start, self._rows = self.layout.first + self._rows, self._rows + len(block)
        if self.layout.rows is not None and self._rows > self.layout.rows:
            raise AssertionError("more rows than were announced")
        if start in self._stored:
            self._stored.remove(start)
        elif self.file.regular:
            self._put_at(start, block)
        else:
            write_full(self._file, np.ascontiguousarray(block, self.layout.dtype))
        self._pool.free(piece)

    def _put_at(self, start: int, block: Floats) -> None:
        at = HEADER + (start - self.layout.first) * self._row
        write_full(self._file, np.ascontiguousarray(block, self.layout.dtype), at)

    def _end(self) -> None:
        if self._late:
            self._file.seek(0)
            write_full(self._file, _header(self.layout.dtype, self._rows, len(self.layout.names)))
        elif self._rows != self.layout.rows:
            raise AssertionError("fewer rows than were announced")

    def close(self) -> None:
        self._file.close()


def _header(dtype: np.dtype[Any], rows: int, width: int) -> bytes:
    text = f"{{'descr': '{dtype.str}', 'fortran_order': False, 'shape': ({rows}, {width}), }}"
    return (
        b"\x93NUMPY\x01\x00" + (HEADER - 10).to_bytes(2, "little") + text.ljust(HEADER - 11).encode() + b"\n"
    )
