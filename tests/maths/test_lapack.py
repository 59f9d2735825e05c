"""LAPACK's routines by themselves: the bytes of SciPy's functions, while other threads run."""

import threading
import time

import numpy as np
import pytest
import scipy.linalg

from kafeat.chain.blas import one_blas_thread
from kafeat.maths import lapack


@pytest.mark.parametrize("n", [1, 2, 17, 64, 300])
def test_the_results_are_those_of_scipy_to_the_bit(n: int) -> None:
    rng = np.random.default_rng(n)
    root = rng.normal(size=(n, n + 3))
    near = root @ root.T + 1e-9 * rng.random((n, n)) + np.eye(n)
    for A in (root @ root.T + np.eye(n), np.asfortranarray(near)):
        given = A.copy()
        with one_blas_thread(linalg=True):
            for size in {1, (n + 1) // 2, n}:
                right = scipy.linalg.eigh(A, subset_by_index=[n - size, n - 1])[1]
                assert lapack.top_eigenvectors(A, size).tobytes() == right.tobytes()
            for lower in (False, True):
                R, right = lapack.cholesky(A, lower=lower), scipy.linalg.cholesky(A, lower=lower)
                assert (R.tobytes(), R.flags.f_contiguous) == (right.tobytes(), right.flags.f_contiguous)
            for B in (rng.normal(size=(n, 3)), rng.normal(size=n), np.empty((n, 0))):
                right = scipy.linalg.cho_solve(scipy.linalg.cho_factor(A), B)
                x = lapack.solved(A, B)
                assert (x.tobytes(), x.shape) == (right.tobytes(), right.shape)
        np.testing.assert_array_equal(A, given)


def test_a_matrix_that_is_not_positive_definite_is_refused() -> None:
    for call in (lapack.cholesky, lambda A: lapack.solved(A, A)):
        told = "dpotrf: expected a matrix that it can factor, got LAPACK's error code 2"
        with pytest.raises(np.linalg.LinAlgError, match=told):
            call(np.diag([1.0, -1.0, 1.0]))
    with pytest.raises(ValueError, match="must not contain infs or NaNs"):
        lapack.top_eigenvectors(np.full((3, 3), np.nan), 1)


def test_other_threads_run_meanwhile() -> None:
    """SciPy's own function lets this thread run when it is done, and not before."""
    A = np.cov(np.random.default_rng(0).normal(size=(600, 700)))
    done = threading.Event()

    def work() -> None:
        lapack.top_eigenvectors(A, 300)
        done.set()

    lapack.top_eigenvectors(A[:9, :9], 3)  # imported
    thread = threading.Thread(target=work)
    turns = 0
    thread.start()
    while not done.is_set():
        time.sleep(0.001)
        turns += not done.is_set()
    thread.join()
    assert turns > 3
