"""Ownership of a local folder, by locks on its file `.kafeat.lock`.

The driver of the run holds a shared lock. Each worker also holds one while it gives a file its name. Another run needs
the exclusive lock to write itself into the file. So the owner changes only after the driver has ended, and never while
a file gets its name.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from kafeat.errors import SystemRefusedError
from kafeat.io.storage.files import is_at, lock, refused
from kafeat.io.storage.local_path import LocalPath
from kafeat.io.storage.owner import MOST_BYTES, NAME, Owner, check, refuse_if_alive, signs_of_life, taken

# Another process may hold the exclusive lock, or be giving a file its name, for this long.
_MOMENT_SECONDS = 2.0
_LOOK_SECONDS = 0.02


@contextmanager
def holding_local(folder: LocalPath, run: str) -> Iterator[None]:
    """Keep the folder with its run until the end of the block. Refuse it if it belongs to another run."""
    location = folder.join(NAME).path
    try:
        file = os.open(location, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        check(folder, None, run)
        raise
    except OSError as error:
        raise refused(location, error) from error
    try:
        lock(file, shared=True)
        check(folder, _owner_of(file) if is_at(file, location) else None, run)
        yield
    finally:
        os.close(file)


@contextmanager
def owning_local(folder: LocalPath, owner: Owner) -> Iterator[None]:
    """Own the folder until the end of the block. Refuse it while another run owns it."""
    location = folder.absolute().join(NAME).path
    try:
        file = _claimed(folder, location, owner)
    except OSError as error:
        raise refused(location, error) from error
    try:
        with signs_of_life(lambda: os.utime(file)):
            yield
    finally:
        _release(file, location, owner)
        os.close(file)


def _claimed(folder: LocalPath, location: str, owner: Owner) -> int:
    """Return the open file after writing our run to it and locking it (shared)."""
    ends = time.monotonic() + _MOMENT_SECONDS
    while True:
        file = os.open(location, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
        try:
            if not stat.S_ISREG(os.fstat(file).st_mode):
                raise SystemRefusedError(f"{location}: expected a file of kafeat, got a pipe or a device")
            if _claim(file, folder, location, owner):
                return file
            if time.monotonic() > ends:
                raise taken(folder, _owner_of(file))
        except BaseException:
            os.close(file)
            raise
        os.close(file)
        time.sleep(_LOOK_SECONDS)


def _claim(file: int, folder: LocalPath, location: str, owner: Owner) -> bool:
    """Try to make the file ours. Return false if another process holds it, or if it was removed after it was opened."""
    locked = lock(file, wait=False)
    if locked is False or not is_at(file, location):
        return False
    before = _owner_of(file)
    # Some file systems have no locks, and some do not share locks between hosts.
    if before is not None and (locked is None or before.host != owner.host):
        refuse_if_alive(folder, before, LocalPath(location))
    try:
        os.ftruncate(file, 0)
        os.pwrite(file, owner.dumps(), 0)
    except OSError:
        os.unlink(location)  # the disk is full
        raise
    # The change from exclusive to shared lock is not atomic: another run may have written itself in between.
    return lock(file, shared=True, wait=False) is not False and _owner_of(file) == owner


def _release(file: int, location: str, owner: Owner) -> None:
    """Remove the file when no worker is giving a file its name. After two seconds it stays for the next run."""
    ends = time.monotonic() + _MOMENT_SECONDS
    with suppress(OSError):
        while lock(file, wait=False) is False:
            if time.monotonic() > ends:
                return
            time.sleep(_LOOK_SECONDS)
        if is_at(file, location) and _owner_of(file) == owner:
            os.unlink(location)


def _owner_of(file: int) -> Owner | None:
    return Owner.loads(os.pread(file, MOST_BYTES, 0))
