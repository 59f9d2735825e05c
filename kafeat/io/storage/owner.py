"""Only one run at a time writes below a folder, and the file `.kafeat.lock` names that run.

A local folder is owned by locks on this file. The driver of the run holds a shared lock. Each worker also holds one
while it gives a file its name. Another run needs the exclusive lock to write itself into the file. So the owner changes
only after the driver has ended, and never while a file gets its name. On file systems without locks, the driver touches
the file every few seconds, as a sign of life.

An object store has no locks. There the newest run owns the folder, and users must start only one. A worker of an
earlier run checks this before its object gets its name. Workers of a run that lost the folder stop before they write.
"""

from __future__ import annotations

import os
import secrets
import socket
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kafeat.contract.threads import repeating
from kafeat.errors import KafeatError, SystemRefusedError
from kafeat.io.storage.atomic import write_bytes
from kafeat.io.storage.base import Location
from kafeat.io.storage.files import is_at, lock
from kafeat.io.storage.local_path import LocalPath

NAME = ".kafeat.lock"
MOST_BYTES = 4096

SIGN_SECONDS = 10.0
PATIENCE_SECONDS = 30.0


class Owner(BaseModel):
    """The run that owns a folder. Host, process and start time help people to find the run."""

    model_config = ConfigDict(defer_build=True, frozen=True, strict=True)

    run: str = Field(pattern=r"^[0-9a-f]{16}$")
    host: str
    process: int
    since: str

    @staticmethod
    def new() -> Owner:
        """Return a new run that this process drives."""
        since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        return Owner(run=secrets.token_hex(8), host=socket.gethostname(), process=os.getpid(), since=since)

    @staticmethod
    def loads(content: bytes) -> Owner | None:
        """Read a run from JSON. Return None for invalid JSON, such as that of a lock file that is half written."""
        try:
            return Owner.model_validate_json(content)
        except ValidationError:
            return None

    def dumps(self) -> bytes:
        return self.model_dump_json().encode()


def signs_of_life(give: Callable[[], None]) -> AbstractContextManager[None]:
    """Call `give`, which touches a file, every few seconds until the end of the block."""
    return repeating(give, SIGN_SECONDS, "kafeat-owner")


def refuse_if_alive(folder: Location, owner: Owner, sign: Location) -> None:
    """Raise SystemRefusedError if the stamp of the file `sign` changes within 30 seconds: then the owner is alive.

    Stamps are compared only with each other, never with this machine's clock.
    """
    first, ends = sign.entry(), time.monotonic() + PATIENCE_SECONDS
    while first is not None and time.monotonic() < ends:
        time.sleep(PATIENCE_SECONDS / 30)
        now = sign.entry()
        if now is None:
            return
        if now != first:
            raise taken(folder, owner)


def check(folder: Location, owner: Owner | None, run: str) -> None:
    """Raise SystemRefusedError if the owner of a folder is None or a run with another ID than `run`."""
    if owner is None or owner.run != run:
        got = f"no owner: {NAME} is gone" if owner is None else _spelled(owner)
        raise SystemRefusedError(
            f"{folder}: expected this run to own the folder, got {got}; let one run at a time write there",
            retry=True,
        )


def taken(folder: Location, owner: Owner | None) -> SystemRefusedError:
    """Return the error for a folder in which another run is at work."""
    return SystemRefusedError(
        f"{folder}: expected a folder that no run writes to, got one of {_spelled(owner)}; wait until it has "
        "ended, or end it",
        retry=True,
    )


def _spelled(owner: Owner | None) -> str:
    if owner is None:
        return "a new run"
    return f"a run since {owner.since} (process {owner.process} on {owner.host})"


# Seconds to wait for another process that writes itself into the lock file or gives a file its name.
_MOMENT_SECONDS = 2.0
_LOOK_SECONDS = 0.02


@contextmanager
def holding_local(folder: LocalPath, run: str) -> Iterator[None]:
    """Prevent a change of the folder's owner during the block. Raise SystemRefusedError if `run` is not the owner."""
    location = folder.join(NAME).path
    with folder.join(NAME).naming():
        try:
            file = os.open(location, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            check(folder, None, run)
            raise
    try:
        lock(file, shared=True)
        check(folder, _owner_of(file) if is_at(file, location) else None, run)
        yield
    finally:
        os.close(file)


@contextmanager
def owning_local(folder: LocalPath, owner: Owner) -> Iterator[None]:
    """Make `owner` the owner of the folder during the block. Raise SystemRefusedError while another run owns it."""
    place = folder.absolute().join(NAME)
    location = place.path
    with place.naming():
        file = _claimed(folder, location, owner)
    try:
        with signs_of_life(lambda: os.utime(file)):
            yield
    finally:
        _release(file, location, owner)
        os.close(file)


def _claimed(folder: LocalPath, location: str, owner: Owner) -> int:
    """Open the lock file, write `owner` to it, and lock it (shared). Return its descriptor."""
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
    """Try to write `owner` to the lock file. Return false if another process has locked it or it was just removed."""
    locked = lock(file, wait=False)
    if locked is False or not is_at(file, location):
        return False
    before = _owner_of(file)
    # Some file systems have no locks, and some do not share them between hosts.
    if before is not None and (locked is None or before.host != owner.host):
        refuse_if_alive(folder, before, LocalPath(location))
    try:
        os.ftruncate(file, 0)
        os.pwrite(file, owner.dumps(), 0)
    except OSError:
        os.unlink(location)  # a full disk must not leave an empty lock file
        raise
    # The change from exclusive to shared lock is not atomic: another run may have written itself in between.
    return lock(file, shared=True, wait=False) is not False and _owner_of(file) == owner


def _release(file: int, location: str, owner: Owner) -> None:
    """Remove the lock file once no worker locks it. If a worker still does after two seconds, leave the file there."""
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


@dataclass(frozen=True)
class Token:
    """The permission of a run to write below some folders. Every task of the run carries it."""

    run: str
    folders: tuple[Location, ...]

    @contextmanager
    def publishing(self) -> Iterator[None]:
        """Prevent a change of the folders' owner during the block, in which a file gets its name or is removed.

        Folders of object stores are only checked. Raise SystemRefusedError if a folder has another owner, or none.
        """
        with ExitStack() as stack:
            for folder in self.folders:
                if isinstance(folder, LocalPath):
                    stack.enter_context(holding_local(folder, self.run))
                else:
                    check(folder, _owner_in(folder), self.run)
            yield


@contextmanager
def owning(*folders: Location) -> Iterator[Token]:
    """Make a new run own the folders during the block. Raise SystemRefusedError if another run owns a local folder."""
    owner = Owner.new()
    with ExitStack() as stack:
        for folder in folders:
            own = owning_local(folder, owner) if isinstance(folder, LocalPath) else _naming(folder, owner)
            stack.enter_context(own)
        yield Token(owner.run, tuple(folder.absolute() for folder in folders))


@contextmanager
def _naming(folder: Location, owner: Owner) -> Iterator[None]:
    """Write the run to the lock file of a folder in an object store, and remove it at the end of the block."""
    location = folder.join(NAME)
    write_bytes(location, owner.dumps())
    try:
        yield
    finally:
        with suppress(KafeatError):  # permission to remove the file may be missing
            if _owner_in(folder) == owner:
                location.remove()


def _owner_in(folder: Location) -> Owner | None:
    location = folder.join(NAME)
    return None if location.entry() is None else Owner.loads(location.read())


def is_lock(name: str) -> bool:
    """Return true for the name of a lock file, which shows the owner of a folder."""
    return name.startswith(NAME)
