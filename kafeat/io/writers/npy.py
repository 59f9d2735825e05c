"""Writers of NPY files, in which workers write each block at its position, and of NPZ.

NPZ is the format of `scipy.sparse.save_npz`: an uncompressed zip of the CSR arrays.
"""

from __future__ import annotations

import io
import os
import shutil
import tempfile
import zipfile
from contextlib import ExitStack
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from kafeat.contract.tile import Rows, SparseRows
from kafeat.errors import UsageError
from kafeat.io.storage.atomic import AtomicFile
from kafeat.io.storage.files import write_full
from kafeat.io.writers.base import Layout, Writer
from kafeat.io.writers.buffer_pool import BufferPool
from kafeat.types import Floats, Mask

if TYPE_CHECKING:
    import pyarrow as pa


HEADER = 128
"""Size of the header in bytes. It is fixed, because the header may be written last, when the rows are counted."""


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


def sparse_rows(block: Rows, good: Mask | None) -> SparseRows:
    """Return the good rows of a block as sparse rows."""
    block = block if good is None else block[good]
    if isinstance(block, SparseRows):
        return block
    rows, columns = np.nonzero(block)
    starts = np.append(0, np.cumsum(np.bincount(rows, minlength=len(block))))
    return SparseRows(block[rows, columns], columns, starts, block.shape[1])


_START = np.dtype("<i8")
_COPY = 1 << 20


class NpzWriter(Writer):
    """A writer of a CSR matrix.

    A zip stores one array after the other, while rows add to all three. Therefore the arrays grow in unnamed temporary
    files, in the folder of the output, and are copied at the end.
    """

    def __init__(self, location: str, file: AtomicFile, layout: Layout) -> None:
        super().__init__(location, file, layout)
        self._width = len(layout.names)
        self._dtype: np.dtype[Any] = layout.dtype.newbyteorder("<")
        self._index: np.dtype[Any] = np.dtype("<i4" if self._width <= 2**31 else "<i8")
        self._files = ExitStack()
        folder = os.path.dirname(file.path) or "." if file.regular else None
        self._values, self._columns, self._starts = (
            self._files.enter_context(tempfile.TemporaryFile(dir=folder))  # noqa: SIM115  # closed with the writer
            for _ in range(3)
        )
        self._rows = self._entries = 0
        self._starts.write(bytes(_START.itemsize))

    def _write(self, block: Rows, passthrough: pa.Table | None, good: Mask | None) -> None:
        rows = sparse_rows(block, good)
        starts = np.asarray(rows.starts[1:], _START) + self._entries
        self._values.write(np.ascontiguousarray(rows.values, self._dtype).data)
        self._columns.write(np.ascontiguousarray(rows.columns, self._index).data)
        self._starts.write(starts.data)
        self._rows += len(rows)
        self._entries += len(rows.values)

    def _end(self) -> None:
        with zipfile.ZipFile(self.file.path, "w") as archive:
            _put(archive, "indices", self._columns, self._index, self._entries)
            _put(archive, "indptr", self._starts, _START, self._rows + 1)
            _put(archive, "format", io.BytesIO(b"csr"), np.dtype("S3"))
            shape = np.array([self._rows, self._width], _START)
            _put(archive, "shape", io.BytesIO(shape.tobytes()), _START, 2)
            _put(archive, "data", self._values, self._dtype, self._entries)

    def close(self) -> None:
        self._files.close()


def _put(archive: zipfile.ZipFile, name: str, content: IO[bytes], dtype: np.dtype[Any], *shape: int) -> None:
    """Add an array to the zip, copied from a file of its bytes. `np.savez` would need the array in memory."""
    content.seek(0)
    info = zipfile.ZipInfo(f"{name}.npy")  # its time is fixed, so that the same features give the same bytes
    info.external_attr = 0o644 << 16
    with archive.open(info, "w", force_zip64=True) as member:
        header = {"descr": dtype.str, "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(member, header)
        shutil.copyfileobj(content, member, _COPY)
