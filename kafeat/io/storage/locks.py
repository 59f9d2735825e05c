"""Locks on open files (flock). Unlike a process number in a name, a lock ends with its process, on any host."""

from __future__ import annotations

import errno
import os

try:
    import fcntl
except ImportError:  # not on this system
    fcntl = None  # type: ignore[assignment]


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
