"""Load the compiled C functions on first use. ctypes releases the interpreter's lock during each call."""

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
"""The C types of floats, by the names of their NumPy dtypes."""
_LINE = 64
"""Size of a cache line, in bytes."""
Loop = Callable[..., Any]
"""A C function. Callers pass arrays by their addresses (see `address`) and numbers by value."""


def loop(
    name: str, dtype: np.dtype[Any], *arguments: type[Any], result: type[Any] | None = None
) -> Loop | None:
    """Return the C function of this name for `dtype`, or None if there is none and NumPy has to compute."""
    suffix = _SUFFIXES.get(dtype.name)
    return None if suffix is None else function(f"{name}_{suffix}", *arguments, result=result)


def function(name: str, *arguments: type[Any], result: type[Any] | None = None) -> Loop | None:
    """Return the C function of this name, or None if the C code was not built and NumPy has to compute."""
    library = _library()
    if library is None:
        return None
    found = library[f"kafeat_{name}"]
    found.argtypes, found.restype = arguments, result
    return found


def address(array: Array) -> int:
    """Return the memory address of the first number. The caller must keep the array alive while C uses it."""
    return array.__array_interface__["data"][0]


def vector_bytes() -> int:
    """Return the vector width, in bytes, of the C loops to use on this processor, or 0 without compiled code."""
    library = _library()
    return 0 if library is None else int(library.kafeat_vector_bytes())


def aligned(count: int, dtype: np.dtype[Any]) -> Array:
    """Return an empty array of `count` numbers that starts at a cache line, so that no vector spans two lines."""
    whole = np.empty(count + _LINE // dtype.itemsize, dtype)
    start = -address(whole) % _LINE // dtype.itemsize
    return whole[start : start + count]


def describe() -> str:
    """Return "compiled", or "NumPy" with the reason why no compiled code is used."""
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
    except OSError:  # not built, or built for another machine
        return None
