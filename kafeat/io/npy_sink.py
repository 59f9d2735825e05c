"""NPY files, filled in place by the workers where the number of rows is known."""

from __future__ import annotations

import errno
import io
import mmap
import os
from typing import TYPE_CHECKING, Any

import numpy as np

from kafeat.errors import UsageError
from kafeat.io.sink import Layout, Sink
from kafeat.types import Floats

if TYPE_CHECKING:
    import pyarrow as pa

HEADER = 128
"""Bytes before the numbers, whatever the number of rows: the header can be written last."""


class NpySink(Sink):
    """A matrix in C order."""

    def __init__(self, place: str, path: str, regular: bool, layout: Layout) -> None:
        super().__init__(layout)
        if layout.kept_schema is not None and len(layout.kept_schema):
            raise UsageError(
                f"{place}: expected no kept columns in NPY, got {', '.join(layout.kept_schema.names)}"
            )
        if layout.compression not in (None, "none"):
            raise UsageError(f"{place}: expected no compression for NPY, got {layout.compression!r}")
        self._row = len(layout.names) * layout.dtype.itemsize
        self._rows = 0
        self._handed: dict[int, Floats] = {}
        self._file = io.FileIO(path, "r+b" if regular else "wb")
        self._place, self._regular, self._mapped = place, regular, False
        self._late = layout.rows is None

    def begin(self) -> None:
        if self._late and not self._regular and not self._file.seekable():
            raise UsageError(
                f"{self._place}: expected a file, got a pipe: the number of rows is known at the end only"
            )
        rows = self.layout.rows or 0
        self._mapped = self._regular and not self._late and self._reserve(rows)
        self._put(_header(self.layout.dtype, rows, len(self.layout.names)))

    def _reserve(self, rows: int) -> bool:
        """Take the room on the disk now: a full one would kill the process that writes into a map."""
        if not hasattr(os, "posix_fallocate") or not rows * self._row:
            return False
        try:
            os.posix_fallocate(self._file.fileno(), 0, HEADER + rows * self._row)
        except OSError as error:
            if error.errno in (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS):
                return False
            raise
        return True

    def buffer(self, start: int, rows: int) -> Floats:
        if not self._mapped or not rows:
            return super().buffer(start, rows)
        first = HEADER + start * self._row
        page = first - first % mmap.ALLOCATIONGRANULARITY
        window = mmap.mmap(self._file.fileno(), first - page + rows * self._row, offset=page)
        flat: Any = np.frombuffer(window, self.layout.dtype, rows * len(self.layout.names), first - page)
        block: Floats = flat.reshape(rows, -1)
        self._handed[start] = block
        return block

    def write(self, block: Floats, kept: pa.Table | None) -> None:
        del kept
        start, self._rows = self._rows, self._rows + len(block)
        if self.layout.rows is not None and self._rows > self.layout.rows:
            raise AssertionError("more rows than were announced")
        if _same(block, self._handed.pop(start, None)):
            return
        if self._mapped:
            self._file.seek(HEADER + start * self._row)
        self._put(np.ascontiguousarray(block, self.layout.dtype))

    def _put(self, data: Any) -> None:
        rest = memoryview(data).cast("B") if memoryview(data).nbytes else memoryview(b"")
        while rest.nbytes:
            rest = rest[self._file.write(rest) :]

    def _end(self) -> None:
        if self._late:
            self._file.seek(0)
            self._put(_header(self.layout.dtype, self._rows, len(self.layout.names)))
        elif self._rows != self.layout.rows:
            raise AssertionError("fewer rows than were announced")

    def close(self) -> None:
        self._file.close()


def _same(block: Floats, handed: Floats | None) -> bool:
    """Whether the block is the memory that was handed out for these rows, so that the file has it already."""
    if handed is None or block.shape != handed.shape or block.strides != handed.strides:
        return False
    return bool(block.dtype == handed.dtype and block.ctypes.data == handed.ctypes.data)


def _header(dtype: np.dtype[Any], rows: int, width: int) -> bytes:
    text = f"{{'descr': '{dtype.str}', 'fortran_order': False, 'shape': ({rows}, {width}), }}"
    return (
        b"\x93NUMPY\x01\x00" + (HEADER - 10).to_bytes(2, "little") + text.ljust(HEADER - 11).encode() + b"\n"
    )
