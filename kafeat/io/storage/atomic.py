"""Write files that appear complete or not at all.

A local file is written to a temporary file in the same folder, which is renamed when it is complete and on the disk.
An object is written to a temporary file on this machine, which is uploaded when it is complete.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import IO

from kafeat.errors import SystemRefusedError, UsageError
from kafeat.io.storage.files import digest_of, refused
from kafeat.io.storage.locations import entry_of, kind_of, stamp_of
from kafeat.io.storage.temporary_files import remove_stale, temporary_file
from kafeat.io.storage.uri import identity, is_remote, local_path, name_of, shown


@dataclass(frozen=True)
class AtomicFile:
    """A local file to write to: `path` exists and is empty. `regular` is false for a pipe or a device."""

    path: str
    regular: bool


@dataclass
class WrittenFile:
    """Bytes, SHA-256 and stamp of a complete file. They stay None for a pipe or a device."""

    bytes: int | None = None
    sha256: str | None = None
    stamp: str | None = None


Guard = Callable[[], AbstractContextManager[object]]
"""Return a context that is held while a file gets its name. It raises if the file must not get it."""


@contextmanager
def atomic(
    path: str,
    clobber: bool = True,
    *,
    fsync: bool = True,
    written: WrittenFile | None = None,
    sweep: bool = True,
    guard: Guard = nullcontext,
) -> Iterator[AtomicFile]:
    """Open a file that gets the name `path` when the block ends, and is removed if the block fails.

    Links are followed, the mode of a replaced file is kept, and pipes and devices are written to directly. With
    `fsync`, the content is on the disk before the name is, and the name before this returns. `written` is filled in.
    `sweep` removes stale temporary files of this target first, which takes time in a folder of many files. `guard` is
    held while the file gets its name. An object is uploaded when the block ends, completely or not at all, and `guard`
    is entered right before it gets its name.
    """
    if is_remote(path):
        with (
            naming(f"{shown(path)} (written to {tempfile.gettempdir()} first)"),
            _for_upload(path, clobber, written, guard) as output,
        ):
            yield output
        return
    path = local_path(path)
    with naming(path), _writing(path, clobber, fsync, written, sweep, guard) as output:
        yield output


@contextmanager
def naming(path: str) -> Iterator[None]:
    """Convert an OSError of the block into SystemRefusedError with this path. A broken pipe is passed on as it is."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise refused(path, error) from error


# Names of open files. /dev/shm is not among them: it holds ordinary files.
_OF_OPEN_FILES = ("/dev/std", "/dev/fd/", "/proc/")


def check_place(path: str, clobber: bool) -> int | None:
    """Refuse a location that `atomic` would refuse. Return the mode of an existing local file, else None."""
    if is_remote(path):
        _check_object(path, clobber)
        return None
    path = local_path(path)
    if path.endswith(os.sep):
        raise SystemRefusedError(f"{path}: expected the name of a file, got that of a folder")
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        if os.path.isdir(os.path.dirname(os.path.realpath(path))):
            return None
        raise
    if stat.S_ISDIR(mode):
        raise SystemRefusedError(f"{path}: expected a file, got a directory")
    if stat.S_ISREG(mode) and path.startswith(_OF_OPEN_FILES):
        raise UsageError(
            f"{path}: expected the file's own name, got that of an open one, whose content would be lost"
            f"{'; - is standard output' if path == '/dev/stdout' else ''}"
        )
    if stat.S_ISREG(mode) and not clobber:
        raise _taken(path)
    return mode


def write_bytes(
    path: str, data: bytes, clobber: bool = True, *, fsync: bool = True, guard: Guard = nullcontext
) -> None:
    """Write a small file at once."""
    with atomic(path, clobber, fsync=fsync, guard=guard) as output, open(output.path, "wb") as file:
        file.write(data)


@contextmanager
def beside(path: str, fsync: bool, *, sweep: bool = True, guard: Guard = nullcontext) -> Iterator[IO[str]]:
    """Open a text file that accompanies an output. A broken pipe is an error here, unlike for the output itself."""
    if path == "-":
        raise UsageError("-: expected the name of a file: standard output is for the features")
    try:
        with (
            atomic(path, fsync=fsync, sweep=sweep, guard=guard) as output,
            open(output.path, "w", encoding="utf-8", errors="replace", newline="") as file,
        ):
            yield file
    except BrokenPipeError as error:
        raise refused(path, error) from error


@contextmanager
def _for_upload(
    location: str, clobber: bool, written: WrittenFile | None, guard: Guard
) -> Iterator[AtomicFile]:
    from kafeat.io.storage.upload import upload

    def may_stand() -> None:
        if not clobber:
            _check_object(location, clobber)
        with guard():
            pass

    _check_object(location, clobber)
    target = spool_of(location)
    remove_stale(target)
    # The temporary folder may be shared with other users, who must not read the content.
    with temporary_file(target, 0o600) as (spool, _):
        yield AtomicFile(spool, regular=True)
        if written is not None:
            written.bytes, written.sha256 = os.path.getsize(spool), digest_of(spool)
        upload(spool, location, may_stand)
    if written is not None:
        entry = entry_of(location)
        if entry is None or entry.bytes != written.bytes:
            raise SystemRefusedError(f"{shown(location)}: expected the object that was written, got another")
        written.stamp = entry.stamp


def spool_of(location: str) -> str:
    """Return the path in the temporary folder from which temporary files of a remote location get their names."""
    mark = hashlib.sha256(identity(location).encode()).hexdigest()[:12]
    return os.path.join(tempfile.gettempdir(), f"{mark}-{name_of(location)}")


def _check_object(location: str, clobber: bool) -> None:
    """Refuse a folder, a missing bucket and, without `clobber`, an existing object."""
    from kafeat.io.storage.object_store import bucket_is_missing

    if location.partition("?")[0].endswith("/") or not name_of(location):
        raise SystemRefusedError(f"{location}: expected the name of an object, got that of a folder")
    if bucket_is_missing(location):
        raise SystemRefusedError(
            f"{shown(location)}: expected a bucket of that name, got none; make it first"
        )
    if not clobber and kind_of(location) is not None:
        raise _taken(shown(location))


@contextmanager
def _writing(
    path: str, clobber: bool, fsync: bool, written: WrittenFile | None, sweep: bool, guard: Guard
) -> Iterator[AtomicFile]:
    mode = check_place(path, clobber)
    if mode is not None and not stat.S_ISREG(mode):
        # Use the name as it is: the target of /dev/stdout may have no name.
        yield AtomicFile(path, regular=False)
        return
    target = os.path.realpath(path)
    if sweep:
        remove_stale(target)
    with temporary_file(target, mode) as (temporary, file):
        yield AtomicFile(temporary, regular=True)
        if written is not None:
            written.bytes, written.sha256 = os.path.getsize(temporary), digest_of(temporary)
        if fsync:
            os.fsync(file)
        with guard():
            _publish(temporary, target, path, clobber)
        if written is not None:
            written.stamp = stamp_of(os.fstat(file))  # the name may belong to another file by now
        if fsync:
            _sync_folder(target)


def _publish(temporary: str, target: str, path: str, clobber: bool) -> None:
    if clobber:
        os.replace(temporary, target)
        return
    try:
        # Unlike a rename, a link fails if another process made the file first.
        os.link(temporary, target)
    except FileExistsError:
        raise _taken(path) from None
    os.unlink(temporary)


def _sync_folder(target: str) -> None:
    folder = os.open(os.path.dirname(target), os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _taken(path: str) -> UsageError:
    return UsageError(
        f"{path}: expected no file of that name, got one; allow it to be replaced (--overwrite, in Python "
        "overwrite=True), or name another"
    )
