"""The model file: a joblib file of one dict of builtins and numeric arrays, followed by a checksum.

Unpickling can run any code, so a file is never unpickled. The checksum is verified before anything is parsed. Then our
own interpreter reads the file; it knows only the few operations that joblib writes. Its stack holds builtins, arrays,
NumPy's dtypes, which are immutable, and the names of `_Name`. Nothing is imported, called or changed by name, so a file
cannot call a class or function, or set an attribute.
"""

from __future__ import annotations

import hashlib
import io
import math
import sys
from collections.abc import Callable
from enum import Enum
from pickletools import genops
from typing import Any, NoReturn

import numpy as np

from kafeat._version import __version__
from kafeat.errors import ArtifactError
from kafeat.model.provenance import printable
from kafeat.types import Array

NUMBERS = frozenset({"b1", "f2", "f4", "f8", *(f"{kind}{size}" for kind in "iu" for size in (1, 2, 4, 8))})
"""The allowed dtypes, all little-endian."""

_ATTRIBUTES = {"subclass", "shape", "order", "dtype", "allow_mmap", "numpy_array_alignment_bytes"}
# No model needs more: joblib fills lists and dicts a thousand entries at a time, and maps have at most 50 levels.
_MOST_ON_STACK = 200_000
_MAGIC = b"KAFEAT-SHA256\n"
_TRAILER = len(_MAGIC) + 32
_MAX_DEPTH = 50


class UnreadablePickleError(ValueError):
    """The bytes are not what joblib writes for builtins and numeric arrays."""


def read(data: bytes) -> Any:
    """Return the content of a pickle, using memory in proportion to its size. Raise an error for other bytes."""
    reader = _Reader(data)
    try:
        return reader.content()
    except MemoryError:
        raise
    except UnreadablePickleError as error:
        problem = str(error)
    except Exception as error:  # the bytes are untrusted: any error of the parser means a bad file
        problem = f"expected a kafeat model, got bytes that cannot be read ({error})"
    raise UnreadablePickleError(f"{problem}{written_by(reader.version)}")


def written_by(version: object) -> str:
    """Return the end of an error message: the version that wrote the model, if it differs from this version."""
    if type(version) is not str or version == __version__:
        return ""
    return f": written by kafeat {printable(version):.40}, this is {__version__}"


class _Name(Enum):
    """The global names that a file may mention, and `EMPTY_WRAPPER`: a joblib array wrapper that is not filled yet."""

    WRAPPER = ("joblib.numpy_pickle", "NumpyArrayWrapper")
    NDARRAY = ("numpy", "ndarray")
    DTYPE = ("numpy", "dtype")
    EMPTY_WRAPPER = ()


_NAMES = {name.value: name for name in _Name}


class _Reader:
    """The interpreter: a stack of values, the outer stacks that marks have set aside, and memoized values."""

    def __init__(self, data: bytes) -> None:
        self._file = io.BytesIO(data)
        self._stack: list[Any] = []
        self._outer: list[list[Any]] = []
        self._memo: list[Any] = []

    def content(self) -> Any:
        """Run the operations up to the end, and return the content."""
        for code, argument, _ in genops(self._file):  # also reads the arguments, and ends after STOP
            if code.name not in _OPERATIONS:
                _refuse(f"the operation {code.name}")
            operation, usual = _OPERATIONS[code.name]
            operation(self, usual if argument is None else argument)
            if len(self._stack) + len(self._outer) > _MOST_ON_STACK:
                _refuse("more values on the stack than a model needs")
        (content,) = self._last(1)
        if self._stack or self._outer or self._file.read(1):
            _refuse("more than one object")
        return content

    @property
    def version(self) -> str | None:
        """The version of kafeat that wrote the file (the text after `kafeat`), or None if it is not read yet."""
        texts = iter([text for text in self._memo if type(text) is str])
        return next(texts, None) if "kafeat" in texts else None

    def _last(self, count: int | None) -> list[Any]:
        """Pop the last `count` values of the stack, or for None all values since the mark."""
        if count is None and self._outer:
            entries, self._stack = self._stack, self._outer.pop()
            return entries
        if count is None or count > len(self._stack):
            _refuse("an operation without its values")
        at = len(self._stack) - count
        entries = self._stack[at:]
        del self._stack[at:]
        return entries

    def skip(self, _: int) -> None:
        """Do nothing, for the pickle version, the length of a frame, and the end of the file."""

    def push(self, value: Any) -> None:
        """Push None, true, false, a number or a text."""
        self._stack.append(value)

    def new(self, kind: Callable[[], Any]) -> None:
        """Push an empty list or dict."""
        self._stack.append(kind())

    def mark(self, _: None) -> None:
        """Begin the entries of a tuple, a list or a dict on a new stack."""
        self._outer.append(self._stack)
        self._stack = []

    def memoize(self, _: None) -> None:
        """Memoize the last value under the next number."""
        (last,) = self._last(1)
        self._stack.append(last)
        self._memo.append(last)

    def mention(self, number: int) -> None:
        """Push the memoized value with this number."""
        if number >= len(self._memo):
            _refuse("a reference to a missing object")
        self._stack.append(self._memo[number])

    def tuple_of(self, count: int | None) -> None:
        """Push the last values as a tuple."""
        entries = self._last(count)
        self._stack.append((*entries,))

    def extend(self, count: int | None) -> None:
        """Append the last values to the list below them."""
        entries = self._last(count)
        (target,) = self._last(1)
        if type(target) is not list:
            _refuse("entries for something that is not a list")
        target += entries
        self._stack.append(target)

    def update(self, count: int | None) -> None:
        """Add the last keys and values to the dict below them."""
        entries = self._last(count)
        (target,) = self._last(1)
        names, values = entries[::2], entries[1::2]
        # Only text: hashing other objects of an untrusted file could take very long or overflow the stack.
        if (
            type(target) is not dict
            or len(names) != len(values)
            or any(type(name) is not str for name in names)
        ):
            _refuse("entries for something that is not a dict with text as keys")
        target.update(zip(names, values, strict=True))
        self._stack.append(target)

    def name(self, _: None) -> None:
        """Push the member of `_Name` for the last two values, a module and a name."""
        names = self._last(2)
        if any(type(name) is not str for name in names):
            _refuse("a name that is not text")
        if (cls := _NAMES.get((*names,))) is None:
            _refuse(f"{'.'.join(names):.80}, which was not run")
        self._stack.append(cls)

    def wrapper(self, _: None) -> None:
        """Push an empty array wrapper, which `build` will fill."""
        name, arguments = self._last(2)
        if name is not _Name.WRAPPER or type(arguments) is not tuple or arguments:
            _refuse("an object that is not an array")
        self._stack.append(_Name.EMPTY_WRAPPER)

    def dtype(self, _: None) -> None:
        """Push the dtype with the given name."""
        name, arguments = self._last(2)
        if name is not _Name.DTYPE or type(arguments) is not tuple or not arguments:
            _refuse("a function call")
        if type(arguments[0]) is not str or arguments[0] not in NUMBERS:
            _refuse("numbers of an unknown dtype")
        self._stack.append(np.dtype(f"<{arguments[0]}"))

    def build(self, _: None) -> None:
        """Fill an array wrapper with the numbers that follow in the file, or check the state of a dtype."""
        target, state = self._last(2)
        if isinstance(target, np.dtype):
            _check_dtype(target, state)
            self._stack.append(target)
        elif target is _Name.EMPTY_WRAPPER and type(state) is dict and set(state) == _ATTRIBUTES:
            self._stack.append(self._array(state["subclass"], state["shape"], state["order"], state["dtype"]))
        else:
            _refuse("attributes of something that is not an array")

    def _array(self, subclass: object, shape: Any, order: object, dtype: object) -> Array:
        if subclass is not _Name.NDARRAY or not isinstance(dtype, np.dtype) or type(order) is not str:
            _refuse("an array of an unknown class, dtype or order")
        if type(shape) is not tuple or len(shape) > 4 or any(type(n) is not int or n < 0 for n in shape):
            _refuse("an array without a shape")
        self._file.read(self._file.read(1)[0])  # padding
        numbers = np.frombuffer(self._file.read(math.prod(shape) * dtype.itemsize), dtype)
        return numbers.reshape(shape, order="F" if order == "F" else "C").copy()


def _check_dtype(dtype: np.dtype[Any], state: object) -> None:
    # the pickled state of a dtype: version, byte order, subarray, names, fields, size, alignment, flags
    plain = (3, "<" if dtype.itemsize > 1 else "|", None, None, None, -1, -1, 0)
    # Types first: comparing untrusted objects may raise anything.
    if type(state) is not tuple or [*map(type, state)] != [*map(type, plain)] or state != plain:
        _refuse("numbers that are structured or not little-endian")


def _refuse(got: str) -> NoReturn:
    raise UnreadablePickleError(f"expected builtins and numeric arrays, got {got}")


_OPERATIONS: dict[str, tuple[Callable[[_Reader, Any], None], Any]] = {
    **dict.fromkeys(("PROTO", "FRAME", "STOP"), (_Reader.skip, None)),
    **dict.fromkeys(("BININT", "BININT1", "BININT2", "BINFLOAT", "LONG1"), (_Reader.push, None)),
    **dict.fromkeys(("SHORT_BINUNICODE", "BINUNICODE"), (_Reader.push, None)),
    "NONE": (_Reader.push, None), "NEWTRUE": (_Reader.push, True), "NEWFALSE": (_Reader.push, False),
    "MARK": (_Reader.mark, None), "MEMOIZE": (_Reader.memoize, None),
    "BINGET": (_Reader.mention, None), "LONG_BINGET": (_Reader.mention, None),
    "EMPTY_TUPLE": (_Reader.tuple_of, 0), "TUPLE1": (_Reader.tuple_of, 1), "TUPLE2": (_Reader.tuple_of, 2),
    "TUPLE3": (_Reader.tuple_of, 3), "TUPLE": (_Reader.tuple_of, None),
    "EMPTY_LIST": (_Reader.new, list), "APPEND": (_Reader.extend, 1), "APPENDS": (_Reader.extend, None),
    "EMPTY_DICT": (_Reader.new, dict), "SETITEM": (_Reader.update, 2), "SETITEMS": (_Reader.update, None),
    "STACK_GLOBAL": (_Reader.name, None), "NEWOBJ": (_Reader.wrapper, None), "REDUCE": (_Reader.dtype, None),
    "BUILD": (_Reader.build, None),
}  # fmt: skip
"""For each allowed operation: its method, and an argument for operations that have none in the pickle."""


def dumps(content: dict[str, Any]) -> bytes:
    """Return the bytes of a model file; equal content gives equal bytes."""
    from joblib import numpy_pickle  # imported here: it costs 50 ms, and reading a model does not need it

    buffer = io.BytesIO()
    numpy_pickle.dump(_canonical(content), buffer, protocol=4)
    payload = buffer.getvalue()
    return payload + _MAGIC + hashlib.sha256(payload).digest()


def loads(data: bytes, place: str) -> dict[str, Any]:
    """Return the content of a model file; raise `ArtifactError` for anything else."""
    if len(data) < _TRAILER or data[-_TRAILER:-32] != _MAGIC:
        raise ArtifactError(
            f"{place}: expected a kafeat model, got a file without its closing checksum: it is truncated, or not a "
            "model (`kafeat fit` makes one)"
        )
    payload = data[:-_TRAILER]
    if hashlib.sha256(payload).digest() != data[-32:]:
        raise ArtifactError(
            f"{place}: expected the checksum that closes the file, got another: it is damaged"
        )
    try:
        content = read(payload)
    except UnreadablePickleError as error:
        raise ArtifactError(f"{place}: {error}") from None
    if not isinstance(content, dict):
        raise ArtifactError(f"{place}: expected a dict, got {type(content).__name__}")
    version = content.get("kafeat")
    try:
        copy: dict[str, Any] = _canonical(content, len(payload))
    except (TypeError, ValueError) as error:
        problem = f"expected builtins and numeric arrays, got {error}{written_by(version)}"
        raise ArtifactError(f"{place}: {problem}") from None
    return copy


def _canonical(content: Any, n_bytes: int = sys.maxsize) -> Any:
    """Return a copy in which equal strings are one object and nothing else is shared.

    Pickle writes an object that occurs again as a reference, so the bytes would depend on which objects are shared.
    An error is raised for anything except builtins and numeric arrays, and for more entries than a file of `n_bytes`
    has room for: that happens only if a hostile file refers to its entries many times.
    """
    left = n_bytes

    def copy(value: Any, depth: int) -> Any:
        nonlocal left
        left -= value.nbytes if type(value) is np.ndarray else 1
        if left < 0 or depth > _MAX_DEPTH:
            raise ValueError(f"expected at most {n_bytes:,} entries and {_MAX_DEPTH} levels, got more")
        kind = type(value)
        if kind is str:
            return sys.intern(value)
        if value is None or kind in (bool, int, float):
            return value
        if kind is list:
            return [copy(item, depth + 1) for item in value]
        if kind is dict and all(type(key) is str for key in value):
            return {sys.intern(key): copy(item, depth + 1) for key, item in value.items()}
        if kind is np.ndarray and value.dtype.str[1:] in NUMBERS and value.dtype.isnative:
            return np.array(value, order="C")
        raise TypeError(f"{kind.__name__}")

    return copy(content, 0)
