"""Read, write and lock open files, and convert errors of the system."""

from __future__ import annotations

import errno
import fcntl
import io
import os
import select
import sys
import time
from contextlib import nullcontext
from typing import Any, Literal

from kafeat.errors import SystemRefusedError, may_pass


class ReadOnce(str):
    """The name of a file, or `-` for standard input, whose first bytes are read once and kept for later calls."""

    _head: bytes | None = None

    def head(self, size: int) -> bytes:
        """Return the first `size` bytes. Later calls return the same bytes, because a pipe cannot be read again."""
        if self._head is None:
            with nullcontext(sys.stdin.buffer) if self == "-" else open(self, "rb") as file:
                self._head = file.read(size)
        return self._head


def refused(location: object, error: OSError) -> SystemRefusedError:
    """Convert an error of the operating system into an error that names the location, for the user."""
    problem = os.strerror(error.errno) if error.errno else error
    return SystemRefusedError(f"{location}: {problem}", retry=may_pass(error))


def standard_stream(number: Literal[0, 1]) -> io.FileIO:
    """Open standard input or output without Python's buffer, whose lock a thread stuck in a read would never free."""
    # If the stream is closed, Python sets it to None, and its descriptor may belong to another file by now.
    if (sys.stdin, sys.stdout)[number] is None:
        raise SystemRefusedError(
            f"-: expected an open standard {('input', 'output')[number]}, got a closed one"
        )
    try:
        return io.FileIO(number, ("rb", "wb")[number], closefd=False)
    except OSError as error:
        raise refused("-", error) from error


def read_full(file: io.RawIOBase, size: int) -> bytes:
    """Read `size` bytes, or fewer at the end or where the file is `paused`. One read of a pipe may return less."""
    data = bytearray()
    while len(data) < size:
        part = file.read(size - len(data))
        if part is None:  # the other process has made the pipe non-blocking
            select.select([file], [], [])
        elif not part:
            break
        else:
            data += part
            if getattr(file, "paused", False):
                break
    return bytes(data)


def read_until_pause(file: io.RawIOBase, size: int, seconds: float) -> tuple[bytes, bool]:
    """Read `size` bytes, or fewer at the end or at a pause. The second result is true at a pause.

    The first byte may take any time. The input pauses if, `seconds` after that byte, no more bytes are there.
    """
    data, until = bytearray(), 0.0
    while len(data) < size:
        if data and not select.select([file], [], [], max(0.0, until - time.monotonic()))[0]:
            return bytes(data), True
        part = file.read(size - len(data)) if data else read_full(file, 1)
        if part == b"":
            break
        until = until if data else time.monotonic() + seconds
        data += part or b""
    return bytes(data), False


def write_full(file: io.FileIO, data: Any, at: int | None = None) -> None:
    """Write all bytes, even if the file accepts only a few at a time: at the current position, or from byte `at` on."""
    rest = memoryview(data)
    rest = rest.cast("B") if rest.nbytes else rest
    while rest.nbytes:
        written = file.write(rest) if at is None else os.pwrite(file.fileno(), rest, at)
        if written is None:
            select.select([], [file], [])
            continue
        rest = rest[written:]
        at = None if at is None else at + written


def lock(file: int, *, shared: bool = False, wait: bool = True) -> bool | None:
    """Lock an open file, or change its lock. Return false if another process has a lock, None if locks fail."""
    try:
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB))
    except OSError as error:
        return False if error.errno in (errno.EWOULDBLOCK, errno.EACCES, errno.EINTR) else None
    return True


def is_at(file: int, path: str) -> bool:
    """Return true if an open file is still the file at this path, and was not replaced or removed."""
    try:
        return os.path.samestat(os.fstat(file), os.stat(path, follow_symlinks=False))
    except OSError:
        return False
