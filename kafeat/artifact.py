"""The model file: a joblib file of one dict of builtins and numeric arrays, and a checksum behind it.

Pickle runs what it reads, so loading goes through a guard: the checksum is verified before anything is parsed, and
the parser knows three names only (joblib's array wrapper, ndarray, dtype), each replaced by a stand-in that
can hold a plain numeric array and do nothing else.
"""

from __future__ import annotations

import hashlib
import io
import math
import pickle  # for the names of its opcodes only
import sys
from typing import Any, ClassVar

import numpy as np
from joblib import numpy_pickle

from kafeat.errors import ArtifactError

_MAGIC = b"KAFEAT-SHA256\n"
_TRAILER = len(_MAGIC) + 32

# A map has some hundred entries; a file that unfolds into more is not one.
_MAX_NODES = 1_000_000
_MAX_DEPTH = 50


def dumps(content: dict[str, Any]) -> bytes:
    """The bytes of the artifact; equal content gives equal bytes."""
    buffer = io.BytesIO()
    numpy_pickle.dump(_canonical(content), buffer, protocol=4)
    payload = buffer.getvalue()
    return payload + _MAGIC + hashlib.sha256(payload).digest()


def loads(data: bytes, place: str) -> dict[str, Any]:
    """The content of an artifact; `ArtifactError` for anything that is not a sound one."""
    if len(data) < _TRAILER or data[-_TRAILER:-32] != _MAGIC:
        raise ArtifactError(
            f"{place}: expected a kafeat model, got a file without its closing checksum: it is cut short, or no model"
        )
    payload = data[:-_TRAILER]
    if hashlib.sha256(payload).digest() != data[-32:]:
        raise ArtifactError(
            f"{place}: expected the checksum that closes the file, got another: it is damaged"
        )
    try:
        content = _Unpickler(payload).load()
    except ArtifactError as error:
        raise ArtifactError(f"{place}: {error}") from None
    except Exception as error:  # the bytes are a stranger's: whatever the parser stumbles over is a bad file
        raise ArtifactError(
            f"{place}: expected a kafeat model, got bytes that cannot be read ({error})"
        ) from None
    try:
        content = _canonical(content, max_bytes=len(payload))
    except (TypeError, ValueError) as error:
        raise ArtifactError(f"{place}: expected builtins and numeric arrays, got {error}") from None
    if not isinstance(content, dict):
        raise ArtifactError(f"{place}: expected a dict, got {type(content).__name__}")
    return content


def _canonical(content: Any, max_bytes: float = math.inf) -> Any:
    """A copy in which equal strings are one object and nothing else is shared.

    Pickle writes a second mention of an object as a reference, so bytes would depend on what happens to be shared.
    It also proves that there is nothing but builtins and numeric arrays.
    """
    nodes, n_bytes = 0, 0

    def copy(value: Any, depth: int) -> Any:
        nonlocal nodes, n_bytes
        nodes += 1
        if nodes > _MAX_NODES or depth > _MAX_DEPTH:
            raise ValueError("more entries, or deeper nested ones, than any map has")
        kind = type(value)
        if kind is str:
            return sys.intern(value)
        if value is None or kind in (bool, int, float):
            return value
        if kind is list:
            return [copy(item, depth + 1) for item in value]
        if kind is dict and all(type(key) is str for key in value):
            return {sys.intern(key): copy(item, depth + 1) for key, item in value.items()}
        if kind is np.ndarray and value.dtype.kind in "biuf" and value.dtype.isnative:
            n_bytes += value.nbytes
            if n_bytes > max_bytes:  # one array mentioned many times
                raise ValueError("more array bytes than the file holds")
            return np.array(value, order="C")
        raise TypeError(f"{kind.__name__}")

    return copy(content, 0)


class _NDArray:
    """Stands for numpy.ndarray; never made."""


class _DType:
    """Stands for numpy.dtype: remembers the name that it was made with."""

    def __init__(self, name: str, *_: object) -> None:
        if not isinstance(name, str) or name[:1] not in "biuf" or not name[1:].isdigit():
            raise ArtifactError(f"expected a numeric dtype, got {name!r:.40}")
        self.dtype = np.dtype(name)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        if self.dtype.itemsize > 1 and state[1] != "<":
            raise ArtifactError("expected little-endian numbers")
        if any(state[i] is not None for i in (2, 3, 4)):
            raise ArtifactError("expected plain numbers, got a structured dtype")


class _ArrayWrapper(numpy_pickle.NumpyArrayWrapper):  # type: ignore[misc]
    """joblib's wrapper, reading only a plain array that fits in what is left of the file."""

    def __init__(self) -> None:
        # The attributes come from the file, by BUILD; joblib's own initialiser is never run by it.
        raise ArtifactError("expected an array, got a call")

    def read(self, unpickler: _Unpickler, ensure_native_byte_order: bool) -> Any:
        del ensure_native_byte_order
        if self.subclass is not _NDArray or not isinstance(self.dtype, _DType):
            raise ArtifactError("expected a plain array")
        if not isinstance(self.shape, tuple) or len(self.shape) > 4:
            raise ArtifactError("expected the shape of an array")
        if any(type(length) is not int or length < 0 for length in self.shape):
            raise ArtifactError("expected the shape of an array")
        handle, dtype = unpickler.file_handle, self.dtype.dtype
        padding = handle.read(1)
        handle.read(padding[0])
        size = math.prod(self.shape) * dtype.itemsize
        left = len(handle.getbuffer()) - handle.tell()
        if size > left:
            raise ArtifactError(f"expected an array of at most {left} bytes, got one of {size}")
        flat = np.frombuffer(handle.read(size), dtype=dtype)
        return flat.reshape(self.shape, order="F" if self.order == "F" else "C").copy()


_STAND_INS: dict[tuple[str, str], type] = {
    ("joblib.numpy_pickle", "NumpyArrayWrapper"): _ArrayWrapper,
    ("numpy", "ndarray"): _NDArray,
    ("numpy", "dtype"): _DType,
}


# What joblib writes for such a dict; all else is refused, for some opcodes allocate what the file merely claims.
_OPCODES = (
    "PROTO FRAME STOP MARK MEMOIZE BINGET LONG_BINGET NONE NEWTRUE NEWFALSE BININT BININT1 BININT2 LONG1 BINFLOAT "
    "SHORT_BINUNICODE BINUNICODE EMPTY_TUPLE TUPLE TUPLE1 TUPLE2 TUPLE3 EMPTY_LIST APPEND APPENDS EMPTY_DICT SETITEM "
    "SETITEMS STACK_GLOBAL NEWOBJ REDUCE BUILD"
)


class _Unpickler(numpy_pickle.NumpyUnpickler):  # type: ignore[misc]
    """joblib's unpickler with the stand-ins in place of everything that could run."""

    dispatch: ClassVar[dict[int, Any]] = {
        code: numpy_pickle.NumpyUnpickler.dispatch[code]
        for code in (getattr(pickle, name)[0] for name in _OPCODES.split())
    }

    def __init__(self, payload: bytes) -> None:
        super().__init__("", io.BytesIO(payload), ensure_native_byte_order=False)

    def find_class(self, module: str, name: str) -> Any:
        try:
            return _STAND_INS[module, name]
        except KeyError:
            raise ArtifactError(
                f"expected builtins and arrays, got {module}.{name}: nothing of it was run"
            ) from None
