"""Load the compiled core on first use. Calls release the interpreter's lock, as ctypes does."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from kafeat.types import Array

_FILE = Path(__file__).with_name("kernels.so")
_SUFFIXES = {"float32": "f32", "float64": "f64"}
ARRAY, SIZE, FLAG, REAL = ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_double
REALS = {"float32": ctypes.c_float, "float64": ctypes.c_double}
"""A number in a precision."""
_LINE = 64
"""Bytes of a cache line."""
Loop = Callable[..., Any]
"""A C function. Arrays go in as addresses (`address`), whole numbers as they are."""


def loop(
    name: str, dtype: np.dtype[Any], *arguments: type[Any], result: type[Any] | None = None
) -> Loop | None:
    """Return the C function of that name for a precision, or None where NumPy has to compute."""
    suffix = _SUFFIXES.get(dtype.name)
    return None if suffix is None else function(f"{name}_{suffix}", *arguments, result=result)


def function(name: str, *arguments: type[Any], result: type[Any] | None = None) -> Loop | None:
    """Return the C function of that name, or None where NumPy has to compute."""
    library = _library()
    if library is None:
        return None
    found = library[f"kafeat_{name}"]
    found.argtypes, found.restype = arguments, result
    return found


def address(array: Array) -> int:
    """Return the address of the first number. The caller keeps the array while it is in use."""
    return array.__array_interface__["data"][0]


def vector_bytes() -> int:
    """Return the size of the vectors that the processor's loops are for, where a function is there in several."""
    library = _library()
    return 0 if library is None else int(library.kafeat_vector_bytes())


def aligned(count: int, dtype: np.dtype[Any]) -> Array:
    """Return an array for `count` numbers that begins where a cache line does: no vector is in two of them."""
    whole = np.empty(count + _LINE // dtype.itemsize, dtype)
    start = -address(whole) % _LINE // dtype.itemsize
    return whole[start : start + count]


def describe() -> str:
    """Return which core computes, and the reason if it is only NumPy."""
    if _library() is not None:
        return "compiled"
    if _switched_off():
        return "NumPy (KAFEAT_COMPILED=0)"
    return "NumPy (no compiled core: no C compiler was there at installation)"


def _switched_off() -> bool:
    return os.environ.get("KAFEAT_COMPILED") == "0"


@lru_cache(maxsize=1)
def _library() -> ctypes.CDLL | None:
    if _switched_off():
        return None
    try:
        return ctypes.CDLL(str(_FILE))
    except OSError:  # not built, or for another machine
        return None
