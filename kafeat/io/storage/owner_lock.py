"""A local folder belongs to one run by locks on its file `.kafeat.lock`.

The driver of the run has a shared lock, and so has each worker for the moment in which it gives a file its name. Who
puts another run into the file needs the lock alone: so the folder changes hands only when its driver is gone, and
never in such a moment.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from kafeat.errors import SystemRefusedError
from kafeat.io.storage.files import refused
from kafeat.io.storage.locations import absolute, join
from kafeat.io.storage.locks import is_at, lock
from kafeat.io.storage.owner import NAME, Owner, check, refuse_signs, signs_of_life, taken

# For this long another may hold the lock alone, or be giving a file its name.
_MOMENT_SECONDS = 2.0
_LOOK_SECONDS = 0.02


@contextmanager
def held_here(folder: str, run: str) -> Iterator[None]:
    """Until the end of the block the folder stays the run's; `SystemRefusedError` if it is not the run's."""
    place = join(folder, NAME)
    try:
        file = os.open(place, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        check(folder, None, run)
        raise
    except OSError as error:
        raise refused(place, error) from error
    try:
        lock(file, shared=True)
        check(folder, _owner_of(file) if is_at(file, place) else None, run)
        yield
    finally:
        os.close(file)


@contextmanager
def owning_here(folder: str, own: Owner) -> Iterator[None]:
    """Until the end of the block the folder is that run's; `SystemRefusedError` while it is another's."""
    place = join(absolute(folder), NAME)
    try:
        file = _claimed(folder, place, own)
    except OSError as error:
        raise refused(place, error) from error
    try:
        with signs_of_life(lambda: os.utime(file)):
            yield
    finally:
        _release(file, place, own)
        os.close(file)


def _claimed(folder: str, place: str, own: Owner) -> int:
    """The open file, with our run in it and our shared lock on it."""
    ends = time.monotonic() + _MOMENT_SECONDS
    while True:
        file = os.open(place, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
        try:
            if not stat.S_ISREG(os.fstat(file).st_mode):
                raise SystemRefusedError(f"{place}: expected a file of kafeat, got a pipe or a device")
            if _claim(file, folder, place, own):
                return file
            if time.monotonic() > ends:
                raise taken(folder, _owner_of(file))
        except BaseException:
            os.close(file)
            raise
        os.close(file)
        time.sleep(_LOOK_SECONDS)


def _claim(file: int, folder: str, place: str, own: Owner) -> bool:
    """Whether the file is ours now: it is not while another holds it, or if it was removed since it was opened."""
    locked = lock(file, wait=False)
    if locked is False or not is_at(file, place):
        return False
    before = _owner_of(file)
    # Some file systems have no locks, and some do not share them between hosts.
    if before is not None and (locked is None or before.host != own.host):
        refuse_signs(folder, before, place)
    try:
        os.ftruncate(file, 0)
        os.pwrite(file, own.dumps(), 0)
    except OSError:
        os.unlink(place)  # the disk is full
        raise
    # Between two locks there is none: another may be faster, and then its run is there.
    return lock(file, shared=True, wait=False) is not False and _owner_of(file) == own


def _release(file: int, place: str, own: Owner) -> None:
    """Remove the file when no worker is giving a file its name; after a moment it stays, and the next run takes it."""
    ends = time.monotonic() + _MOMENT_SECONDS
    with suppress(OSError):
        while lock(file, wait=False) is False:
            if time.monotonic() > ends:
                return
            time.sleep(_LOOK_SECONDS)
        if is_at(file, place) and _owner_of(file) == own:
            os.unlink(place)


def _owner_of(file: int) -> Owner | None:
    return Owner.loads(os.pread(file, 4096, 0))
