"""Writer of the format of `scipy.sparse.save_npz`: a zip of the arrays of CSR, not compressed."""

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
from kafeat.io.storage.atomic import AtomicFile
from kafeat.io.writers.base import Layout, Writer
from kafeat.types import Mask

if TYPE_CHECKING:
    import pyarrow as pa


def sparse_rows(block: Rows, good: Mask | None) -> SparseRows:
    """Return the good rows of a block without the features that are 0."""
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

    The arrays of all rows lie one behind the other in a zip. So they are collected in temporary files without a name,
    in the folder of the output, and copied at the end.
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
    """Add an array whose bytes are in a file. `np.savez` would need it in memory."""
    content.seek(0)
    info = zipfile.ZipInfo(f"{name}.npy")  # of a fixed time, so that the same features give the same bytes
    info.external_attr = 0o644 << 16
    with archive.open(info, "w", force_zip64=True) as member:
        header = {"descr": dtype.str, "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(member, header)
        shutil.copyfileobj(content, member, _COPY)
