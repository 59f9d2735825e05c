"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from kafeat.errors import SystemRefusedError, UsageError
from kafeat.io.files import refused


@dataclass(frozen=True)
class Output:
    """Where to write: `path` exists and is empty. `regular` is false for a pipe or a device."""

    path: str
    regular: bool


@contextmanager
def atomic(path: str, clobber: bool = True) -> Iterator[Output]:
    """A file to write that takes the name `path` when the block ends, and vanishes when it fails.

    A link is followed, the mode of a replaced file is kept, and a pipe or a device is written straight
    through.
    """
    try:
        with _writing(path, clobber) as output:
            yield output
    except BrokenPipeError:
        raise
    except OSError as error:
        raise refused(path, error) from error


def write_bytes(path: str, data: bytes, clobber: bool = True) -> None:
    """Write a small file at once."""
    with atomic(path, clobber) as output, open(output.path, "wb") as file:
        file.write(data)


@contextmanager
def _writing(path: str, clobber: bool) -> Iterator[Output]:
    mode = _mode(path)
    if mode is not None and not stat.S_ISREG(mode):
        if stat.S_ISDIR(mode):
            raise SystemRefusedError(f"{path}: expected a file, got a directory")
        # By its own name: what /dev/stdout links to may have none.
        yield Output(path, regular=False)
        return
    if mode is not None and not clobber:
        raise _taken(path)
    target = os.path.realpath(path)
    draft = _draft(target, mode)
    try:
        yield Output(draft, regular=True)
        _publish(draft, target, path, clobber)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(draft)


def _mode(path: str) -> int | None:
    try:
        return os.stat(path).st_mode
    except FileNotFoundError:
        return None


def _draft(target: str, mode: int | None) -> str:
    folder, name = os.path.split(target)
    # A long name must leave room for the rest.
    draft = os.path.join(folder, f".{name[:150]}.kafeat-{os.getpid()}-{secrets.token_hex(4)}.tmp")
    os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    if mode is not None:
        os.chmod(draft, stat.S_IMODE(mode))
    return draft


def _publish(draft: str, target: str, path: str, clobber: bool) -> None:
    if clobber:
        os.replace(draft, target)
        return
    try:
        # Unlike a rename, a link fails if someone else was faster.
        os.link(draft, target)
    except FileExistsError:
        raise _taken(path) from None


def _taken(path: str) -> UsageError:
    return UsageError(
        f"{path}: expected no file of that name, got one; allow it to be replaced, or name another"
    )
