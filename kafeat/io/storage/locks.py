"""Locks on open files (flock): unlike a process number in a name, a lock ends with its process, on any host."""

from __future__ import annotations

import errno
import os

try:
    import fcntl
except ImportError:  # no locks here
    fcntl = None  # type: ignore[assignment]


def lock(file: int, *, shared: bool = False, wait: bool = True) -> bool | None:
    """Lock an open file, or change its lock; False if another holds it, None where the file system has no locks."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB))
    except OSError as error:
        return False if error.errno in (errno.EWOULDBLOCK, errno.EACCES, errno.EINTR) else None
    return True


def is_at(file: int, path: str) -> bool:
    """Whether the open file has that name still."""
    try:
        return os.path.samestat(os.fstat(file), os.stat(path, follow_symlinks=False))
    except OSError:
        return False
