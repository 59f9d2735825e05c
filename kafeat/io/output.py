"""Files that appear whole or not at all.

What is written is a draft beside its place, `.NAME.kafeat-PID-HEX.tmp`, which takes the name when it is complete and
on the disk. Its writer holds a lock on it, which ends with the process however that ends: so the next writer of NAME
knows which drafts are dead, and removes them.

What is for an object store is written to the temporary folder in the same way, and uploaded when it is complete.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import IO

from kafeat.errors import SystemRefusedError, UsageError
from kafeat.io.files import digest_of, refused
from kafeat.io.uri import identity, is_remote, local_path, name_of, shown

try:
    import fcntl
except ImportError:  # no locks: drafts of the dead are left alone
    fcntl = None  # type: ignore[assignment]


@dataclass(frozen=True)
class Output:
    """Where to write: `path`, on this machine, exists and is empty. `regular` is false for a pipe or a device."""

    path: str
    regular: bool


@dataclass
class Written:
    """What was written, known once it is complete: bytes and SHA-256; None for a pipe or a device."""

    bytes: int | None = None
    sha256: str | None = None


@contextmanager
def atomic(
    path: str, clobber: bool = True, *, fsync: bool = True, written: Written | None = None, sweep: bool = True
) -> Iterator[Output]:
    """A file to write that takes the name `path` when the block ends, and vanishes when it fails.

    A link is followed, the mode of a replaced file is kept, and a pipe or a device is written straight
    through. With `fsync` the content is on the disk before the name is, and the name before this returns.
    `written` is filled in. Drafts of the dead are looked for if `sweep`: among many files that takes time. A remote
    place gets its object when the block ends, by an upload that is complete or not there.
    """
    if is_remote(path):
        with (
            naming(f"{shown(path)} (written to {tempfile.gettempdir()} first)"),
            _for_upload(path, clobber, written) as output,
        ):
            yield output
        return
    path = local_path(path)
    with naming(path), _writing(path, clobber, fsync, written, sweep) as output:
        yield output


@contextmanager
def naming(path: str) -> Iterator[None]:
    """What the system refuses in the block is said of that file; that the reader of a pipe has left is not its word."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise refused(path, error) from error


# Names of open files: /dev/shm holds files like any other.
_OF_OPEN_FILES = ("/dev/std", "/dev/fd/", "/proc/")


def check_place(path: str, clobber: bool) -> int | None:
    """Refuse a place that `atomic` would refuse; the mode of a local file that is there, None for nothing."""
    if is_remote(path):
        _check_there(path, clobber)
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


def write_bytes(path: str, data: bytes, clobber: bool = True, *, fsync: bool = True) -> None:
    """Write a small file at once."""
    with atomic(path, clobber, fsync=fsync) as output, open(output.path, "wb") as file:
        file.write(data)


@contextmanager
def beside(path: str, fsync: bool) -> Iterator[IO[str]]:
    """A text file that stands beside an output; that its reader has left is an error, unlike with the output."""
    if path == "-":
        raise UsageError("-: expected the name of a file: standard output is for the features")
    try:
        with (
            atomic(path, fsync=fsync) as output,
            open(output.path, "w", encoding="utf-8", errors="replace", newline="") as file,
        ):
            yield file
    except BrokenPipeError as error:
        raise refused(path, error) from error


@contextmanager
def _for_upload(place: str, clobber: bool, written: Written | None) -> Iterator[Output]:
    from kafeat.io.upload import upload

    _check_there(place, clobber)
    target = spool_of(place)
    _remove_dead(target)
    # Nobody else is to read what may lie in a folder of all users.
    spool, lock = _draft(target, 0o600)
    try:
        yield Output(spool, regular=True)
        if written is not None:
            written.bytes, written.sha256 = os.path.getsize(spool), digest_of(spool)
        upload(spool, place, lambda: None if clobber else _check_there(place, clobber))
    finally:
        with suppress(OSError):
            os.unlink(spool)
        with suppress(OSError):
            os.close(lock)


def spool_of(place: str) -> str:
    """The name in the temporary folder by which drafts for a remote place are known."""
    mark = hashlib.sha256(identity(place).encode()).hexdigest()[:12]
    return os.path.join(tempfile.gettempdir(), f"{mark}-{name_of(place)}")


def _check_there(place: str, clobber: bool) -> None:
    """Refuse what is no key, a missing bucket, a folder, and with `clobber` off an object that is there."""
    from kafeat.io.locations import kind_of
    from kafeat.io.remote import bucket_is_missing

    if place.partition("?")[0].endswith("/") or not name_of(place):
        raise SystemRefusedError(f"{place}: expected the name of an object, got that of a folder")
    if bucket_is_missing(place):
        raise SystemRefusedError(f"{shown(place)}: expected a bucket of that name, got none; make it first")
    if not clobber and kind_of(place) is not None:
        raise _taken(shown(place))


@contextmanager
def _writing(path: str, clobber: bool, fsync: bool, written: Written | None, sweep: bool) -> Iterator[Output]:
    mode = check_place(path, clobber)
    if mode is not None and not stat.S_ISREG(mode):
        # By its own name: what /dev/stdout links to may have none.
        yield Output(path, regular=False)
        return
    target = os.path.realpath(path)
    if sweep:
        _remove_dead(target)
    draft, lock = _draft(target, mode)
    try:
        yield Output(draft, regular=True)
        if written is not None:
            written.bytes, written.sha256 = os.path.getsize(draft), digest_of(draft)
        if fsync:
            os.fsync(lock)
        _publish(draft, target, path, clobber)
        if fsync:
            _sync_folder(target)
    finally:
        # On a lost mount these fail too: the first error is the one to tell.
        with suppress(OSError):
            os.unlink(draft)
        with suppress(OSError):
            os.close(lock)


def _stem(target: str) -> tuple[str, str]:
    folder, name = os.path.split(target)
    # A long name must leave room for the rest: 255 bytes are the most.
    return folder, f".{os.fsdecode(os.fsencode(name)[:150])}.kafeat-"


def _draft(target: str, mode: int | None) -> tuple[str, int]:
    """A new draft, and the descriptor that holds its lock."""
    folder, stem = _stem(target)
    while True:
        draft = os.path.join(folder, f"{stem}{os.getpid()}-{secrets.token_hex(4)}.tmp")
        flags = os.O_CREAT | os.O_EXCL | os.O_RDWR | getattr(os, "O_CLOEXEC", 0)
        lock = os.open(draft, flags, 0o666 if mode is None else 0o600)
        if not _locked(lock) or _is_at(lock, draft):
            break
        os.close(lock)  # someone took it for a dead one before it was locked
    if mode is not None:
        os.chmod(draft, stat.S_IMODE(mode))
    return draft, lock


def _locked(file: int, wait: bool = True) -> bool:
    """Lock an open file; whether that could be done."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:  # held by another, or a file system without locks
        return False
    return True


def _is_at(file: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(file), os.stat(path))
    except OSError:
        return False


def _remove_dead(target: str) -> None:
    """Remove the drafts of this target whose writers are no more."""
    folder, stem = _stem(target)
    pattern = re.compile(re.escape(stem) + r"\d+-[0-9a-f]{8}\.tmp")
    with suppress(
        OSError
    ):  # a folder that cannot be listed: what is wrong with it is said when it is written to
        for name in os.listdir(folder):
            if pattern.fullmatch(name):
                _remove_if_dead(os.path.join(folder, name))


def remove_dead_below(folder: str) -> None:
    """Remove every draft below a folder whose writer is no more."""
    pattern = re.compile(r"\..+\.kafeat-\d+-[0-9a-f]{8}\.tmp")
    for above, _, names in os.walk(local_path(folder)):
        for name in names:
            if pattern.fullmatch(name):
                _remove_if_dead(os.path.join(above, name))


def _remove_if_dead(draft: str) -> None:
    with suppress(OSError):
        file = os.open(draft, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
        try:
            if stat.S_ISREG(os.fstat(file).st_mode) and _locked(file, wait=False) and _is_at(file, draft):
                os.unlink(draft)
        finally:
            os.close(file)


def _publish(draft: str, target: str, path: str, clobber: bool) -> None:
    if clobber:
        os.replace(draft, target)
        return
    try:
        # Unlike a rename, a link fails if someone else was faster.
        os.link(draft, target)
    except FileExistsError:
        raise _taken(path) from None


def _sync_folder(target: str) -> None:
    folder = os.open(os.path.dirname(target), os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _taken(path: str) -> UsageError:
    return UsageError(
        f"{path}: expected no file of that name, got one; allow it to be replaced, or name another"
    )
