"""Products of rows with a matrix, if either is sparse, by compiled loops or, where a loop is missing, by SciPy."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from kafeat.compiled.library import ARRAY, FLAG, SIZE, address, loop, vector_bytes
from kafeat.contract.tile import Rows, SparseRows
from kafeat.types import Array, Floats

# Sizes in the C code: the rows of a buffer, the numbers between two of its rows, and the SIMD vectors in a dense block.
_ROWS, _GAP, _VECTORS = 16, 16, 2
_CSR = (ARRAY, ARRAY, ARRAY)
_OUT = (ARRAY, ARRAY, SIZE, SIZE)


def csr_addresses(X: SparseRows) -> tuple[tuple[int, int, int], object]:
    """Return the addresses of values, columns and starts, and an object to keep alive while C uses them."""
    _check_columns(X)
    arrays = [np.ascontiguousarray(array, dtype=np.int64) for array in (X.columns, X.starts)]
    values = np.ascontiguousarray(X.values)
    return (address(values), address(arrays[0]), address(arrays[1])), (values, arrays)


def times_dense(X: SparseRows, matrix: Floats, out: Floats) -> bool:
    """Write X times a matrix (width, D; C order) into `out` (n, D). Return False if a result is infinite.

    The result of a row does not depend on the other rows, to the last bit.
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
    """A dense matrix (D, d) by which dense or sparse rows are multiplied."""

    def __init__(self, matrix: Floats, dtype: np.dtype[Any]) -> None:
        self.matrix, self.shape = np.ascontiguousarray(matrix, dtype=dtype), matrix.shape

    def scratch(self, rows: int) -> None:
        """Return None, because this product needs no buffer."""

    def of_rows(self, X: Rows, out: Floats, scratch: object = None) -> bool:
        """Write X (n, d) times the transpose into `out` (n, D). Return False if sparse rows give an infinite number."""
        if isinstance(X, SparseRows):
            return times_dense(X, self._by_inputs, out)
        np.matmul(X, self.matrix.T, out=out)
        return True

    @cached_property
    def _by_inputs(self) -> Floats:
        return np.ascontiguousarray(self.matrix.T)


class SparseMatrix:
    """A sparse matrix (D, d), in CSR format, by which dense or sparse rows are multiplied."""

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
        """Return the buffer that one worker needs for tiles of `rows` rows."""
        high = rows if self._loop is None else _VECTORS * vector_bytes() // self.dtype.itemsize
        return np.empty((self.shape[1], high), dtype=self.dtype)

    def of_rows(self, X: Rows, out: Floats, scratch: Floats) -> bool:
        """Write X (n, d) times the transpose into `out` (n, D). Return False if a result is infinite."""
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
        """Write sparse rows X times the transpose into `out` (n, D). Return False if a result is infinite."""
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
    """Raise IndexError for column numbers beyond the width, for which C and SciPy would read other memory."""
    if len(X.columns) and not 0 <= X.columns.min() <= X.columns.max() < X.width:
        raise IndexError(f"expected columns from 0 to {X.width - 1}, got others")


def _buffer(width: int, dtype: np.dtype[Any]) -> Floats:
    return np.empty(_ROWS * (width + _GAP), dtype=dtype)


def _steps(out: Floats) -> tuple[int, int]:
    """Return the strides between rows and between columns, counted in numbers instead of bytes."""
    return out.strides[0] // out.itemsize, out.strides[1] // out.itemsize
