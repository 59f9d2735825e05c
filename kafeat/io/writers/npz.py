"""Writer of sparse matrices in the format of `scipy.sparse.save_npz`: a zip of the arrays of CSR, not compressed."""

from __future__ import annotations

import os
import shutil
import tempfile
import zipfile
from contextlib import ExitStack
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from kafeat.contract.tile import SparseRows
from kafeat.errors import UsageError
from kafeat.io.writers.base import Layout
from kafeat.io.writers.sparse import SparseWriter
from kafeat.types import Array, Mask

if TYPE_CHECKING:
    import pyarrow as pa

_START = np.dtype("<i8")
_COPY = 1 << 20


class NpzWriter(SparseWriter):
    """A writer of a CSR matrix.

    The arrays of all rows lie one behind the other in a zip. So they are collected in temporary files without a name,
    in the folder of the output, and copied at the end.
    """

    def __init__(self, location: str, path: str, regular: bool, layout: Layout) -> None:
        super().__init__(location, layout, "NPZ")
        if layout.passthrough_names:
            raise UsageError(
                f"{location}: expected no passthrough columns in NPZ, got {', '.join(layout.passthrough_names)}"
            )
        if layout.compression not in (None, "none"):
            raise UsageError(f"{location}: expected no compression for NPZ, got {layout.compression!r}")
        self._width = len(layout.names)
        self._dtype: np.dtype[Any] = layout.dtype.newbyteorder("<")
        self._index: np.dtype[Any] = np.dtype("<i4" if self._width <= 2**31 else "<i8")
        self._files, self._path = ExitStack(), path
        folder = os.path.dirname(path) or "." if regular else None
        self._values, self._columns, self._starts = (
            self._files.enter_context(tempfile.TemporaryFile(dir=folder))  # noqa: SIM115  # closed with the writer
            for _ in range(3)
        )
        self._rows = self._entries = 0
        self._starts.write(bytes(_START.itemsize))

    def _write_rows(self, rows: SparseRows, passthrough: pa.Table | None, good: Mask | None) -> None:
        del passthrough, good
        starts = np.asarray(rows.starts[1:], _START) + self._entries
        self._values.write(np.ascontiguousarray(rows.values, self._dtype).data)
        self._columns.write(np.ascontiguousarray(rows.columns, self._index).data)
        self._starts.write(starts.data)
        self._rows += len(rows)
        self._entries += len(rows.values)

    def _end(self) -> None:
        with zipfile.ZipFile(self._path, "w") as archive:
            _put(archive, "indices", self._index, (self._entries,), self._columns)
            _put(archive, "indptr", _START, (self._rows + 1,), self._starts)
            _put_array(archive, "format", np.array(b"csr"))
            _put_array(archive, "shape", np.array([self._rows, self._width], _START))
            _put(archive, "data", self._dtype, (self._entries,), self._values)

    def close(self) -> None:
        self._files.close()


def _put(
    archive: zipfile.ZipFile, name: str, dtype: np.dtype[Any], shape: tuple[int, ...], file: IO[bytes]
) -> None:
    """Add an array whose bytes are in a file."""
    file.flush()
    file.seek(0)
    with _member(archive, name) as member:
        np.lib.format.write_array_header_1_0(member, _described(dtype, shape))
        shutil.copyfileobj(file, member, _COPY)


def _put_array(archive: zipfile.ZipFile, name: str, array: Array) -> None:
    with _member(archive, name) as member:
        np.lib.format.write_array_header_1_0(member, _described(array.dtype, array.shape))
        member.write(array.tobytes())


def _described(dtype: np.dtype[Any], shape: tuple[int, ...]) -> dict[str, Any]:
    return {"descr": dtype.str, "fortran_order": False, "shape": shape}


def _member(archive: zipfile.ZipFile, name: str) -> IO[bytes]:
    # A fixed time, so that the same features give the same bytes.
    info = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
    info.external_attr = 0o644 << 16
    return archive.open(info, "w", force_zip64=True)
