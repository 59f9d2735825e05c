"""Write files that appear complete or not at all.

A local file is written to a temporary file in the same folder, which is renamed when it is complete and on the disk.
An object is written to a temporary file on this machine, which is uploaded when it is complete.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import IO

from kafeat.errors import SystemRefusedError, UsageError
from kafeat.io.storage.base import Location, StandardStream
from kafeat.io.storage.files import refused
from kafeat.io.storage.local_path import LocalPath, stamp_of
from kafeat.io.storage.object_store import ObjectUri
from kafeat.io.storage.temporary_files import remove_stale, temporary_file


@dataclass
class AtomicFile:
    """A local file to write to: `path` exists and is empty. `regular` is false for a pipe or a device.

    `bytes` is the size of the complete file. Without `hashed`, `sha256` and `stamp` stay None.
    """

    path: str
    regular: bool = True
    bytes: int | None = None
    sha256: str | None = None
    stamp: str | None = None


Guard = Callable[[], AbstractContextManager[object]]
"""Returns a context manager in which a file gets its name. If entering it raises an error, the file gets no name."""


@contextmanager
def atomic(
    location: Location,
    clobber: bool = True,
    *,
    fsync: bool = True,
    hashed: bool = False,
    sweep: bool = True,
    guard: Guard = nullcontext,
) -> Iterator[AtomicFile]:
    """Open a file that gets its name when the block ends, and is removed if the block fails.

    Links are followed, a replaced file's mode is kept, and pipes and devices are written to directly. Without
    `clobber`, an existing file is an error. With `fsync`, the content is flushed to disk before the file gets its name,
    and the folder at the end. `hashed` computes the SHA-256. `sweep` first removes stale temporary files of this
    target, which is slow in a folder with many files. The file gets its name within `guard`. An object is uploaded
    when the block ends, and `guard` is entered right before it gets its name.
    """
    remote = isinstance(location, ObjectUri)
    with naming(f"{location} (written to {location.spool} first)" if remote else location):
        mode = check_place(location, clobber)
        if mode is not None and not stat.S_ISREG(mode):
            # Use the name as it is: the target of /dev/stdout may have no name.
            yield AtomicFile(location.path, regular=False)
            return
        target = _spool_of(location) if isinstance(location, ObjectUri) else os.path.realpath(location.path)
        if sweep or remote:
            remove_stale(target)
        # The temporary folder may be shared with other users, who must not read the content.
        with temporary_file(target, 0o600 if remote else mode) as (temporary, file):
            output = AtomicFile(temporary)
            yield output
            output.bytes = os.path.getsize(temporary)
            output.sha256 = LocalPath(temporary).digest() if hashed else None
            if isinstance(location, ObjectUri):
                _upload(output, location, clobber, guard)
            else:
                _publish(output, file, target, location, clobber, fsync, guard)


@contextmanager
def naming(location: object) -> Iterator[None]:
    """Convert an OSError in the block into SystemRefusedError with this location, except for a broken pipe."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise refused(location, error) from error


# Paths that begin like this name files that are already open. Not all of /dev: /dev/shm has ordinary files.
_OF_OPEN_FILES = ("/dev/std", "/dev/fd/", "/proc/")


def check_place(location: Location, clobber: bool) -> int | None:
    """Raise the error that `atomic` would raise for a location. Return the mode of an existing local file, or None."""
    if isinstance(location, ObjectUri):
        _check_object(location, clobber)
        return None
    path = location.path
    if path.endswith(os.sep):
        raise SystemRefusedError(f"{path}: expected the name of a file, got that of a folder")
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        _check_folder(path)
        return None
    if stat.S_ISDIR(mode):
        raise SystemRefusedError(f"{path}: expected a file, got a directory")
    if stat.S_ISREG(mode) and path.startswith(_OF_OPEN_FILES):
        raise UsageError(
            f"{path}: expected the file's own name, got the name of an open file, whose content would be lost"
            f"{'; - is standard output' if path == '/dev/stdout' else ''}"
        )
    if stat.S_ISREG(mode) and not clobber:
        raise _taken(location)
    return mode


def _check_folder(path: str) -> None:
    """Raise SystemRefusedError if the folder of a new file does not exist."""
    folder = os.path.dirname(os.path.realpath(path))
    if not os.path.isdir(folder):
        folder = os.path.dirname(path) if not os.path.islink(path) else folder
        problem = f"expected a folder {folder}, got none: make it first (mkdir -p)"
        raise SystemRefusedError(f"{path}: {problem}", retry=True)


def write_bytes(
    location: Location, data: bytes, clobber: bool = True, *, fsync: bool = True, guard: Guard = nullcontext
) -> None:
    """Write `data` to a file, completely or not at all."""
    with atomic(location, clobber, fsync=fsync, guard=guard) as output, open(output.path, "wb") as file:
        file.write(data)


@contextmanager
def beside(
    location: Location, fsync: bool, *, sweep: bool = True, guard: Guard = nullcontext
) -> Iterator[IO[str]]:
    """Open a text file that accompanies an output, such as the file of --stats. It may not be standard output.

    If the file is a pipe that its reader has closed, this is an error. A closed pipe for the output itself is not.
    """
    if isinstance(location, StandardStream):
        raise UsageError("-: expected the name of a file: standard output is for the features")
    try:
        with (
            atomic(location, fsync=fsync, sweep=sweep, guard=guard) as output,
            open(output.path, "w", encoding="utf-8", errors="replace", newline="") as file,
        ):
            yield file
    except BrokenPipeError as error:
        raise refused(location, error) from error


def _upload(output: AtomicFile, location: ObjectUri, clobber: bool, guard: Guard) -> None:
    from kafeat.io.storage.upload import put_new, upload

    def may_stand() -> None:
        if not clobber:
            _check_object(location, clobber)
        with guard():
            pass

    new = None
    if not clobber:
        with guard():
            new = put_new(output.path, location)
    if new is False:
        raise _taken(location)
    if new is None:
        upload(output.path, location, may_stand)
    if output.sha256 is not None:
        entry = location.entry()
        if entry is None or entry.bytes != output.bytes:
            raise SystemRefusedError(f"{location}: expected the object that was written, got another")
        output.stamp = entry.stamp


def _spool_of(location: ObjectUri) -> str:
    """Return a path in the temporary folder for an object: `temporary_file` derives its names from it."""
    mark = hashlib.sha256(location.identity.encode()).hexdigest()[:12]
    return os.path.join(location.spool, f"{mark}-{location.name}")


def _check_object(location: ObjectUri, clobber: bool) -> None:
    """Raise an error for a folder, a missing bucket and, without `clobber`, an existing object."""
    if not location.name:
        raise SystemRefusedError(f"{location}: expected the name of an object, got that of a folder")
    location.make_folder()
    if not clobber and location.kind() is not None:
        raise _taken(location)


def _publish(
    output: AtomicFile, file: int, target: str, location: Location, clobber: bool, fsync: bool, guard: Guard
) -> None:
    """Rename a finished temporary file to `target`."""
    if fsync:
        os.fsync(file)
    with guard():
        if clobber:
            os.replace(output.path, target)
        else:
            try:
                # Unlike a rename, a link fails if another process made the file first.
                os.link(output.path, target)
            except FileExistsError:
                raise _taken(location) from None
            os.unlink(output.path)
    if output.sha256 is not None:
        output.stamp = stamp_of(os.fstat(file))  # by now, another process may have replaced the file
    if fsync:
        _sync_folder(target)


def _sync_folder(target: str) -> None:
    folder = os.open(os.path.dirname(target), os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _taken(location: Location) -> UsageError:
    return UsageError(
        f"{location}: expected no file of that name, got one; allow it to be replaced (--overwrite, in Python "
        "overwrite=True), or name another"
    )


def require_space(location: Location, n_bytes: int) -> None:
    """Raise SystemRefusedError if the disk has less than `n_bytes` of free space for a file."""
    free = location.free_bytes()
    if free is not None and n_bytes > free:
        spool = location.spool
        where = "on its disk" if spool is None else f"in {spool}, where it is written first (TMPDIR)"
        raise SystemRefusedError(
            f"{location}: expected room for {spell_bytes(n_bytes)}, got {spell_bytes(free)} free {where}; "
            "--output-dtype float16 halves the bytes",
            retry=True,
        )


def spell_bytes(n: int) -> str:
    """Format a number of bytes with a unit, in powers of 1,024."""
    value, unit = float(n), "B"
    for unit in ("B", "KiB", "MiB", "GiB", "TiB", "PiB"):
        if value < 1024.0 or unit == "PiB":
            break
        value /= 1024.0
    return f"{n} B" if unit == "B" else f"{value:.1f} {unit}"
