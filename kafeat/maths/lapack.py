"""LAPACK routines without the interpreter lock (GIL). SciPy's functions hold it, for minutes if a matrix is large.

While SciPy holds the lock, Python handles no signals and other threads wait. The routines are those that SciPy provides
for Cython, with the same results: https://docs.scipy.org/doc/scipy/reference/linalg.cython_lapack.html
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np

from kafeat.types import Array, Floats


def top_eigenvectors(A: Floats, size: int) -> Floats:
    """Return eigenvectors (n, size) of a symmetric matrix (n, n) for its largest eigenvalues, the largest last."""
    from scipy.linalg.lapack import dsyevr_lwork

    n, a = len(A), np.array(np.asarray_chkfinite(A), np.float64, order="F")
    values, vectors, places = (
        np.empty(n),
        np.empty((n, size), order="F"),
        np.empty(2 * max(1, size), np.int32),
    )
    work, whole, _ = dsyevr_lwork(n, lower=1)
    work, whole = np.empty(int(work)), np.empty(int(whole), np.int32)
    _call(
        "dsyevr", b"V", b"I", b"L", n, a, n, 0.0, 0.0, n - size + 1, n, 0.0, 0, values, vectors, n, places,
        work, len(work), whole, len(whole),
    )  # fmt: skip
    return vectors


def cholesky(A: Floats, *, lower: bool = False) -> Floats:
    """Return the upper factor R in A = RᵀR, or with `lower` the factor L in A = LLᵀ, for positive definite A (n, n)."""
    a = np.array(A, np.float64, order="F")
    _call("dpotrf", b"L" if lower else b"U", len(a), a, len(a))
    return np.asfortranarray(np.tril(a) if lower else np.triu(a))


def solved(A: Floats, B: Floats) -> Floats:
    """Return A⁻¹B for a positive definite matrix A (n, n) and B (n,) or (n, k)."""
    a, b = (np.array(M, np.float64, order="F") for M in (A, B))
    _call("dpotrf", b"U", len(a), a, len(a))
    if b.size:
        _call("dpotrs", b"U", len(a), b.size // len(b), a, len(a), b, len(b))
    return b


def _call(name: str, *arguments: bytes | int | float | Array) -> None:
    """Call a LAPACK routine, and raise an error if the status that it returns in its last argument is not 0."""
    failed = ctypes.c_int()
    _routine(name)(*map(_address, arguments), ctypes.byref(failed))
    if failed.value:
        raise np.linalg.LinAlgError(
            f"{name}: expected a matrix that it can factor, got LAPACK's error code {failed.value}"
        )


def _address(value: bytes | int | float | Array) -> Any:
    if isinstance(value, np.ndarray):
        return ctypes.c_void_p(value.ctypes.data)
    kinds: dict[type, Any] = {bytes: ctypes.c_char, int: ctypes.c_int, float: ctypes.c_double}
    return ctypes.byref(kinds[type(value)](value))


@cache
def _routine(name: str) -> Any:
    """Return a LAPACK routine as a C function. ctypes calls it without the interpreter lock."""
    from scipy.linalg import cython_lapack

    routines: Any = cython_lapack.__pyx_capi__
    capsule, find = ctypes.py_object(routines[name]), ctypes.pythonapi
    find.PyCapsule_GetName.restype, find.PyCapsule_GetPointer.restype = ctypes.c_char_p, ctypes.c_void_p
    find.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    address = find.PyCapsule_GetPointer(capsule, find.PyCapsule_GetName(capsule))
    return ctypes.CFUNCTYPE(None)(address)
