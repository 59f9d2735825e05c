"""The model file: a joblib file of one dict of builtins and numeric arrays, followed by a checksum.

Pickle runs what it reads, so a file is never unpickled: the checksum is verified before anything is parsed, and
`array_pickle` knows builtins and plain numeric arrays only.
"""

from __future__ import annotations

import hashlib
import io
import sys
from typing import Any

import numpy as np

from kafeat.errors import ArtifactError
from kafeat.model import array_pickle

_MAGIC = b"KAFEAT-SHA256\n"
_TRAILER = len(_MAGIC) + 32

_MAX_DEPTH = 50


def dumps(content: dict[str, Any]) -> bytes:
    """Return the bytes of a model file; equal content gives equal bytes."""
    from joblib import numpy_pickle  # 50 ms, which a command that reads a model need not wait for

    buffer = io.BytesIO()
    numpy_pickle.dump(_canonical(content), buffer, protocol=4)
    payload = buffer.getvalue()
    return payload + _MAGIC + hashlib.sha256(payload).digest()


def loads(data: bytes, place: str) -> dict[str, Any]:
    """Return the content of a model file; raise `ArtifactError` for anything else."""
    if len(data) < _TRAILER or data[-_TRAILER:-32] != _MAGIC:
        raise ArtifactError(
            f"{place}: expected a kafeat model, got a file without its closing checksum: it is cut short, or no model "
            "(`kafeat fit` makes one)"
        )
    payload = data[:-_TRAILER]
    if hashlib.sha256(payload).digest() != data[-32:]:
        raise ArtifactError(
            f"{place}: expected the checksum that closes the file, got another: it is damaged"
        )
    try:
        content = array_pickle.read(payload)
    except array_pickle.UnreadablePickleError as error:
        raise ArtifactError(f"{place}: {error}") from None
    except MemoryError:
        raise
    except Exception as error:  # the bytes are untrusted: any error of the parser means a bad file
        raise ArtifactError(
            f"{place}: expected a kafeat model, got bytes that cannot be read ({error})"
        ) from None
    try:
        content = _canonical(content, len(payload))
    except (TypeError, ValueError) as error:
        raise ArtifactError(f"{place}: expected builtins and numeric arrays, got {error}") from None
    if not isinstance(content, dict):
        raise ArtifactError(f"{place}: expected a dict, got {type(content).__name__}")
    return content


def _canonical(content: Any, n_bytes: int = sys.maxsize) -> Any:
    """Return a copy in which equal strings are one object and nothing else is shared.

    Pickle writes a second mention of an object as a reference, so bytes would depend on which objects are shared. The
    copy also refuses everything but builtins and numeric arrays, and more entries than a file of `n_bytes` can hold.
    Every entry takes a byte or more, unless the file mentions it several times.
    """
    left = n_bytes

    def copy(value: Any, depth: int) -> Any:
        nonlocal left
        left -= value.nbytes if type(value) is np.ndarray else 1
        if left < 0 or depth > _MAX_DEPTH:
            raise ValueError("more entries than the file holds, or deeper nested ones than any map has")
        kind = type(value)
        if kind is str:
            return sys.intern(value)
        if value is None or kind in (bool, int, float):
            return value
        if kind is list:
            return [copy(item, depth + 1) for item in value]
        if kind is dict and all(type(key) is str for key in value):
            return {sys.intern(key): copy(item, depth + 1) for key, item in value.items()}
        if kind is np.ndarray and value.dtype.str[1:] in array_pickle.NUMBERS and value.dtype.isnative:
            return np.array(value, order="C")
        raise TypeError(f"{kind.__name__}")

    return copy(content, 0)
