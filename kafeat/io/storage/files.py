"""Read, write and lock open files, and convert errors of the system."""

from __future__ import annotations

import errno
import io
import os
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from kafeat.errors import DataError, KafeatError, SystemRefusedError, first_line

try:
    import fcntl
except ImportError:  # not on this system
    fcntl = None  # type: ignore[assignment]  # a module elsewhere


class ReadOnce(str):
    """The name of a file that is read once (`-` is standard input): the content of a pipe is gone after that."""

    _head: bytes | None = None

    def head(self, size: int) -> bytes:
        """Return the first bytes, or those of the first call."""
        if self._head is None:
            with nullcontext(sys.stdin.buffer) if self == "-" else open(self, "rb") as file:
                self._head = file.read(size)
        return self._head


def refused(location: object, error: OSError) -> SystemRefusedError:
    """Convert an error of the operating system, with the location as the user spelled it."""
    return SystemRefusedError(f"{location}: {os.strerror(error.errno) if error.errno else error}")


def standard_input() -> io.FileIO:
    """Open standard input without Python's buffer: a thread stuck in a read would hold the buffer's lock for ever."""
    # sys.stdin is None if it is closed: descriptor 0 may belong to another file by now.
    if sys.stdin is None:
        raise SystemRefusedError("-: expected an open standard input, got a closed one")
    return _standard(0, "rb")


def standard_output() -> io.FileIO:
    """Open standard output without Python's buffer."""
    if sys.stdout is None:
        raise SystemRefusedError("-: expected an open standard output, got a closed one")
    return _standard(1, "wb")


def _standard(number: int, mode: str) -> io.FileIO:
    try:
        return io.FileIO(number, mode, closefd=False)
    except OSError as error:
        raise refused("-", error) from error


def read_full(file: io.RawIOBase, size: int) -> bytes:
    """Read `size` bytes, fewer only at the end. One read from a pipe may return less."""
    data = bytearray()
    while len(data) < size:
        part = file.read(size - len(data))
        if part is None:  # the other process has made the pipe non-blocking
            select.select([file], [], [])
        elif not part:
            break
        else:
            data += part
    return bytes(data)


def write_full(file: io.FileIO, data: Any) -> None:
    """Write all bytes, even if the file accepts few at a time."""
    rest = memoryview(data).cast("B")
    while rest.nbytes:
        written = file.write(rest)
        if written is None:
            select.select([], [file], [])
        else:
            rest = rest[written:]


@contextmanager
def damage(location: object, expected: str, kinds: tuple[type[Exception], ...]) -> Iterator[None]:
    """Convert exceptions of these kinds into DataError with the location: the content is not as `expected`.

    Errors of an object store keep their own message, and those of the system their code.
    """
    try:
        yield
    except (KafeatError, GeneratorExit):
        raise
    except kinds as error:
        if (
            isinstance(error, MemoryError) and MemoryError not in kinds
        ):  # Arrow's own is one of its exceptions
            raise
        if isinstance(error, OSError) and "://" in str(location):
            from kafeat.io.storage.object_store import is_of_transport, unreachable

            if is_of_transport(error):
                raise unreachable(location, error) from error
        if isinstance(error, OSError) and error.errno:  # of the system; damage has no number
            raise refused(location, error) from error
        raise DataError(f"{location}: expected {expected}, got: {first_line(error)}") from error


def lock(file: int, *, shared: bool = False, wait: bool = True) -> bool | None:
    """Lock an open file, or change its lock. Return false if another process holds it, None without file locks."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB))
    except OSError as error:
        return False if error.errno in (errno.EWOULDBLOCK, errno.EACCES, errno.EINTR) else None
    return True


def is_at(file: int, path: str) -> bool:
    """Return true if an open file still has that name."""
    try:
        return os.path.samestat(os.fstat(file), os.stat(path, follow_symlinks=False))
    except OSError:
        return False
