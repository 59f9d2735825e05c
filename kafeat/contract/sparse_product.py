"""Products of rows with matrices of which one is sparse, by compiled loops or else by SciPy."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from kafeat.compiled.library import ARRAY, FLAG, SIZE, address, loop, vector_bytes
from kafeat.contract.tile import Rows, SparseRows
from kafeat.types import Array, Floats

# Rows in a buffer, the gap between them, and vectors of rows that are computed together, as in the C files.
_ROWS, _GAP, _VECTORS = 16, 16, 2
_CSR = (ARRAY, ARRAY, ARRAY)
_OUT = (ARRAY, ARRAY, SIZE, SIZE)


def csr_addresses(X: SparseRows) -> tuple[tuple[int, int, int], object]:
    """Return the addresses of values, columns and starts, and an object to keep while they are in use."""
    _check_columns(X)
    arrays = [np.ascontiguousarray(array, dtype=np.int64) for array in (X.columns, X.starts)]
    values = np.ascontiguousarray(X.values)
    return (address(values), address(arrays[0]), address(arrays[1])), (values, arrays)


def times_dense(X: SparseRows, matrix: Floats, out: Floats) -> bool:
    """Write the product with a matrix (width, D; C order) into `out` (n, D). Return False if a number is infinite.

    The bytes of a row do not depend on its neighbours.
    """
    run = loop("sparse_by_dense", out.dtype, *_CSR, SIZE, ARRAY, SIZE, *_OUT, result=FLAG)
    if run is None:
        _check_columns(X)
        out[...] = X.csr @ matrix
        return bool(np.isfinite(out).all())
    rows, kept = csr_addresses(X)
    buffer = _buffer(matrix.shape[1], out.dtype)
    lost = run(*rows, len(X), address(matrix), matrix.shape[1], address(buffer), address(out), *_steps(out))
    del kept
    return not lost


class DenseMatrix:
    """A matrix (D, d) to multiply rows with, which may be sparse."""

    def __init__(self, matrix: Floats, dtype: np.dtype[Any]) -> None:
        self.matrix, self.shape = np.ascontiguousarray(matrix, dtype=dtype), matrix.shape

    def scratch(self, rows: int) -> None:
        """Return the buffer of one worker: none."""

    def of_rows(self, X: Rows, out: Floats, scratch: object = None) -> bool:
        """Write X (n, d) times the transpose into `out` (n, D); return False if a number of sparse rows is infinite."""
        if isinstance(X, SparseRows):
            return times_dense(X, self._by_inputs, out)
        np.matmul(X, self.matrix.T, out=out)
        return True

    @cached_property
    def _by_inputs(self) -> Floats:
        return np.ascontiguousarray(self.matrix.T)


class SparseMatrix:
    """A sparse matrix (D, d) to multiply rows with. Row i has its `values` in `columns`, from starts[i] on."""

    def __init__(
        self, values: Floats, columns: Array, starts: Array, n_columns: int, dtype: np.dtype[Any]
    ) -> None:
        self.shape = len(starts) - 1, n_columns
        self.dtype = dtype
        self._values = np.ascontiguousarray(values, dtype=dtype)
        self._columns = np.ascontiguousarray(columns, dtype=np.int32)
        self._starts = np.ascontiguousarray(starts, dtype=np.int64)
        self._loop = loop(
            f"dense_by_sparse_{vector_bytes()}", dtype, ARRAY, SIZE, SIZE, *_CSR, SIZE, *_OUT, result=FLAG
        )
        self._sparse_loop = loop("sparse_by_sparse", dtype, *_CSR, SIZE, *_CSR, SIZE, *_OUT, result=FLAG)

    def scratch(self, rows: int) -> Floats:
        """Return the buffer of one worker."""
        high = rows if self._loop is None else _VECTORS * vector_bytes() // self.dtype.itemsize
        return np.empty((self.shape[1], high), dtype=self.dtype)

    def of_rows(self, X: Rows, out: Floats, scratch: Floats) -> bool:
        """Write X (n, d) times the transpose into `out` (n, D). Return False if a number is infinite."""
        if isinstance(X, SparseRows):
            return self.of_sparse_rows(X, out)
        if self._loop is None:
            scratch[:, : len(X)] = X.T
            out[...] = (self.csr @ scratch[:, : len(X)]).T
            return bool(np.isfinite(out).all())
        X = np.ascontiguousarray(X)
        matrix = address(self._values), address(self._columns), address(self._starts), self.shape[0]
        return not self._loop(address(X), *X.shape, *matrix, address(scratch), address(out), *_steps(out))

    def of_sparse_rows(self, X: SparseRows, out: Floats) -> bool:
        """Do the same for sparse rows."""
        if self._sparse_loop is None:
            _check_columns(X)
            out[...] = (X.csr @ self._transposed).toarray()
            return bool(np.isfinite(out).all())
        rows, kept = csr_addresses(X)
        matrix = *map(address, self._of_inputs), self.shape[0]
        buffer = _buffer(self.shape[0], self.dtype)
        lost = self._sparse_loop(*rows, len(X), *matrix, address(buffer), address(out), *_steps(out))
        del kept
        return not lost

    @cached_property
    def csr(self) -> Any:
        from scipy.sparse import csr_array

        return csr_array((self._values, self._columns, self._starts), shape=self.shape)

    @cached_property
    def _transposed(self) -> Any:
        return self.csr.T.tocsr()

    @cached_property
    def _of_inputs(self) -> tuple[Floats, Array, Array]:
        turned = self._transposed
        return turned.data, turned.indices.astype(np.int32), turned.indptr.astype(np.int64)


def _check_columns(X: SparseRows) -> None:
    """Refuse column numbers beyond the width. Neither C nor SciPy checks them, and they would read other memory."""
    if len(X.columns) and not 0 <= X.columns.min() <= X.columns.max() < X.width:
        raise IndexError(f"expected columns from 0 to {X.width - 1}, got others")


def _buffer(width: int, dtype: np.dtype[Any]) -> Floats:
    return np.empty(_ROWS * (width + _GAP), dtype=dtype)


def _steps(out: Floats) -> tuple[int, int]:
    """Return the strides between rows and between columns, in numbers."""
    return out.strides[0] // out.itemsize, out.strides[1] // out.itemsize
