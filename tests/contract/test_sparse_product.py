"""Products with sparse rows and matrices, compiled or not, against sums of wider numbers."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from kafeat.contract.sparse_product import SparseMatrix, times_dense
from kafeat.contract.tile import SparseRows
from kafeat.types import Floats
from tests.recipes import beside, check_bits_of_rows, in_both_codes

_size_of_vectors = in_both_codes("contract.sparse_product")


WAYS = ("sparse by dense", "dense by sparse", "sparse by sparse")
Product = Callable[[Any, Floats], bool]


def sparse(n: int, d: int, dtype: str, share: float = 0.2) -> Floats:
    rng = np.random.default_rng(n + d)
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < share)
    X[n // 2] = 0.0
    return X.astype(dtype)


def compressed(X: Floats) -> SparseRows:
    rows = csr_array(X)
    return SparseRows(rows.data, rows.indices, rows.indptr, X.shape[1])


def product(way: str, A: Floats) -> Product:
    """Rows times the transpose of A (D, d), and the rows in the form that the way takes."""
    if way == "sparse by dense":
        matrix = np.ascontiguousarray(A.T)
        return lambda X, out: times_dense(compressed(X), matrix, out)
    rows = csr_array(A)
    made = SparseMatrix(rows.data, rows.indices, rows.indptr, A.shape[1], A.dtype)
    if way == "sparse by sparse":
        return lambda X, out: made.of_sparse_rows(compressed(X), out)
    return lambda X, out: made.of_rows(X, out, made.scratch(len(X)))


def written(multiply: Product, X: Floats, D: int, order: str) -> Floats:
    return beside(partial(multiply, X), (len(X), D), X.dtype, order)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("n", "d", "D"), [(1, 1, 1), (1, 5, 3), (33, 20, 1), (70, 40, 131), (17, 300, 64)])
def test_sums_are_as_good_as_their_order_allows(way: str, dtype: str, n: int, d: int, D: int) -> None:
    X, A = sparse(n, d, dtype), sparse(D, d, dtype)
    exact, size = (x.astype(np.longdouble) @ a.astype(np.longdouble).T for x, a in ((X, A), (abs(X), abs(A))))
    for order in ("C", "F"):
        off = np.abs(written(product(way, A), X, D, order) - exact)
        # a sum of d products, each rounded at most twice (Higham 2002, section 3.1)
        assert (off <= (d + 1) * np.finfo(dtype).eps * size).all()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_row_does_not_depend_on_its_place_or_the_order_of_memory(way: str, dtype: str) -> None:
    X, A = sparse(70, 40, dtype), sparse(131, 40, dtype)
    multiply = product(way, A)
    check_bits_of_rows(lambda rows, order: written(multiply, rows, 131, order), X)


@pytest.mark.parametrize("way", WAYS)
def test_infinite_numbers_are_told(way: str) -> None:
    X, A = sparse(40, 6, "float32", 1.0), sparse(20, 6, "float32", 1.0)
    A[7], X[33] = 1.0, 3e38
    out = np.empty((40, 20), np.float32)
    with np.errstate(over="ignore"):
        assert not product(way, A)(X, out)
    assert np.isinf(out[33, 7])


@pytest.mark.parametrize("way", ["sparse by dense", "sparse by sparse"])
@pytest.mark.parametrize("columns", [[0, -1], [0, 4]])
def test_columns_that_are_not_there_are_refused(way: str, columns: list[int]) -> None:
    X = SparseRows(np.ones(2, np.float32), np.array(columns), np.array([0, 2]), 4)
    A, out = np.ones((3, 4), np.float32), np.empty((1, 3), np.float32)
    made = SparseMatrix(np.ones(3), np.zeros(3, int), np.arange(4), 4, A.dtype)
    with pytest.raises(IndexError, match="expected columns from 0 to 3"):
        times_dense(X, A.T.copy(), out) if way == "sparse by dense" else made.of_sparse_rows(X, out)
