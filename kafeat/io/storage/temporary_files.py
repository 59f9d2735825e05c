"""Temporary files in the folder of their target, named `.NAME.kafeat-PID-HEX.tmp`.

A writer holds a lock on its temporary file, and the lock ends with the process in any case. So the next writer of NAME
knows which temporary files are stale, and removes them. A writer removes its own when it is done or fails, and again
when the process ends, because a signal may raise between any two lines of this module.
"""

from __future__ import annotations

import atexit
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from kafeat.io.storage.base import Location
from kafeat.io.storage.files import is_at, lock
from kafeat.io.storage.local_path import LocalPath

# Paths of temporary files of this process. A path is added before its file exists and discarded after its removal.
_ours: set[str] = set()
uploads_to_call_off: set[str] = set()
"""Paths of objects whose upload is being aborted. If the process ended now, their parts would stay in the bucket."""


@contextmanager
def temporary_file(target: str, mode: int | None) -> Iterator[tuple[str, int]]:
    """Make an empty temporary file for a target. Yield its path and its locked descriptor. Remove it at the end."""
    temporary, file = _make(target, mode)
    try:
        yield temporary, file
    finally:
        # If the disk is lost, these calls fail as well. Only the error of the block is reported.
        with suppress(OSError):
            os.unlink(temporary)
        with suppress(OSError):
            os.close(file)
        _ours.discard(temporary)


def remove_ours() -> None:
    """Remove the temporary files that this process has left."""
    while _ours:
        with suppress(OSError):
            os.unlink(_ours.pop())


atexit.register(remove_ours)
# After a fork, the files belong to the parent: a child must not remove them when it ends.
os.register_at_fork(after_in_child=_ours.clear)


def remove_stale(target: str) -> None:
    """Remove the temporary files that killed processes have left for this target."""
    folder, stem = _stem(target)
    with suppress(OSError):  # a later write to the folder reports the error
        _remove_stale_of(folder, os.listdir(folder), re.escape(stem))


def remove_stale_below(folder: Location) -> None:
    """Remove the temporary files that killed processes have left below a folder, for all targets."""
    for above, _, names in os.walk(folder.path) if isinstance(folder, LocalPath) else ():
        _remove_stale_of(above, names, r"\..+\.kafeat-")


def _remove_stale_of(folder: str, names: list[str], stem: str) -> None:
    """Remove the stale temporary files among `names`, if their names begin with the pattern `stem`."""
    for name in names:
        if re.fullmatch(stem + r"\d+-[0-9a-f]{8}\.tmp", name):
            _remove_if_stale(os.path.join(folder, name))


def _stem(target: str) -> tuple[str, str]:
    folder, name = os.path.split(target)
    # A file name may have at most 255 bytes.
    return folder, f".{os.fsdecode(os.fsencode(name)[:150])}.kafeat-"


def _make(target: str, mode: int | None) -> tuple[str, int]:
    folder, stem = _stem(target)
    while True:
        temporary = os.path.join(folder, f"{stem}{os.getpid()}-{os.urandom(4).hex()}.tmp")
        flags = os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC
        _ours.add(temporary)
        file = os.open(temporary, flags, 0o666 if mode is None else 0o600)
        if not lock(file) or is_at(file, temporary):
            break
        os.close(file)  # another process mistook it for stale before it was locked
    if mode is not None:
        os.chmod(temporary, stat.S_IMODE(mode))
    return temporary, file


def _remove_if_stale(temporary: str) -> None:
    with suppress(OSError):
        file = os.open(temporary, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            if stat.S_ISREG(os.fstat(file).st_mode) and lock(file, wait=False) and is_at(file, temporary):
                os.unlink(temporary)
        finally:
            os.close(file)
