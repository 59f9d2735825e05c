"""Inspect, list, make and remove files and folders.

A location is a local path or a URI. In an object store, a folder exists while it holds at least one object.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import accumulate, islice
from typing import Any, Literal

from kafeat.errors import SystemRefusedError
from kafeat.io.storage.files import refused
from kafeat.io.storage.uri import is_remote, joined, local_path, name_of, shown


@dataclass(frozen=True)
class Entry:
    """A file: its name relative to the listed folder, with `/`, its size in bytes, and its stamp.

    Equal stamps mean that the file has not been written to in between: they include times that a writer cannot set
    back. Stamps of an object store hold whole seconds and the size only.
    """

    name: str
    bytes: int
    stamp: str


def join(folder: str, name: str) -> str:
    """Return the location of a name below a folder."""
    if is_remote(folder):
        return joined(folder, name)
    return os.path.join(local_path(folder), *name.split("/"))


def absolute(location: str) -> str:
    """Return the location in a form that is valid in processes with other working folders."""
    return location if "://" in location else os.path.abspath(location)


def kind_of(location: str) -> Literal["file", "folder", "other"] | None:
    """Return the kind of a location, or None if nothing exists there. `other` is a pipe or a device."""
    if is_remote(location):
        return _KINDS[_info(location).type.name]
    location = local_path(location)
    if os.path.isdir(location):
        return "folder"
    if os.path.isfile(location):
        return "file"
    return "other" if os.path.lexists(location) else None


_KINDS: dict[str, Literal["file", "folder", "other"] | None] = {
    "File": "file", "Directory": "folder", "NotFound": None, "Unknown": "other",
}  # fmt: skip


def size_of(location: str) -> int | None:
    """Return the size of a file in bytes, or None if the location is not a file."""
    if is_remote(location):
        status = _info(location)
        return int(status.size) if status.type.name == "File" else None
    location = local_path(location)
    return os.path.getsize(location) if os.path.isfile(location) else None


def entry_of(location: str) -> Entry | None:
    """Return the entry of one file, or None if there is no regular file."""
    if is_remote(location):
        info = _info(location)
        return _entry(name_of(location), info) if info.type.name == "File" else None
    location = local_path(location)
    try:
        status = os.stat(location)
    except OSError:
        return None
    if not stat.S_ISREG(status.st_mode):
        return None
    return Entry(os.path.basename(location), status.st_size, stamp_of(status))


def listed(folder: str) -> Iterator[Entry]:
    """Yield every file below a folder, in no defined order. Links are followed, and cycles refused."""
    if is_remote(folder):
        yield from _list_remote(folder)
    else:
        yield from _below(local_path(folder), "", ())


def make_folder(location: str) -> list[str]:
    """Make a folder and its missing parents, and return the new ones, the uppermost first.

    Object stores have no folders to make.
    """
    if is_remote(location):
        _make_remote(location)
        return []
    location = missing = os.path.abspath(local_path(location))
    made: list[str] = []
    while not os.path.lexists(missing):
        made.insert(0, missing)
        missing = os.path.dirname(missing)
    try:
        os.makedirs(location, exist_ok=True)
    except OSError as error:
        raise refused(location, error) from error
    return made


@contextmanager
def making(*folders: str) -> Iterator[Callable[[str], None]]:
    """Make folders, and yield a function that makes more. Remove new folders that are empty at the end."""
    made: list[str] = []

    def make(folder: str) -> None:
        made.extend(make_folder(folder))

    try:
        for folder in folders:
            make(folder)
        yield make
    finally:
        for folder in reversed(made):
            with suppress(OSError):
                os.rmdir(folder)


def lies_below(folder: str, name: str) -> bool:
    """Return true if a name lies below the folder itself, not through `..` or a link."""
    pieces = name.split("/")
    if not all(pieces) or {".", ".."} & {*pieces}:
        return False
    if is_remote(folder):
        return True
    places = accumulate(pieces, os.path.join, initial=local_path(folder))
    return not any(map(os.path.islink, islice(places, 1, None)))


def remove(location: str) -> None:
    """Remove a file if it exists."""
    if is_remote(location):
        _remove_remote(location)
        return
    try:
        os.unlink(local_path(location))
    except FileNotFoundError:
        return
    except OSError as error:
        raise refused(location, error) from error


def _below(folder: str, prefix: str, above: tuple[tuple[int, int], ...]) -> Iterator[Entry]:
    try:
        info = os.stat(folder)
        key = (info.st_dev, info.st_ino)
        if key in above:
            raise refused(folder, OSError("a link to a folder that it lies in"))
        with os.scandir(folder) as entries:
            for entry in entries:
                name = prefix + entry.name
                if entry.is_dir():
                    yield from _below(entry.path, name + "/", (*above, key))
                elif entry.is_file():
                    status = entry.stat()
                    yield Entry(name, status.st_size, stamp_of(status))
                else:
                    raise refused(
                        entry.path, OSError("expected a file or a folder, got a broken link or a pipe")
                    )
    except OSError as error:
        raise refused(folder, error) from error


def stamp_of(status: os.stat_result) -> str:
    """Return the stamp of a local file."""
    # Unlike the modification time, the change time cannot be set back by a writer.
    return f"{status.st_ino:x}-{status.st_mtime_ns:x}-{status.st_ctime_ns:x}"


def _info(location: str) -> Any:
    from kafeat.io.storage.object_store import info_of

    return info_of(location)


def _entry(name: str, info: Any) -> Entry:
    # A listing has fractions of a second, the object itself does not.
    return Entry(name, int(info.size), f"{info.size:x}-{(info.mtime_ns or 0) // 10**9:x}")


def _list_remote(folder: str) -> Iterator[Entry]:
    from pyarrow.fs import FileSelector, FileType

    from kafeat.io.storage.object_store import file_system, unreachable

    fs, path = file_system(folder)
    base = path.rstrip("/")
    try:
        infos = fs.get_file_info(FileSelector(base, recursive=True))
    except FileNotFoundError:
        raise SystemRefusedError(
            f"{shown(folder)}: expected a folder with something in it, got none"
        ) from None
    except OSError as error:
        raise unreachable(folder, error) from error
    for info in infos:
        if info.type == FileType.File:
            yield _entry(info.path[len(base) + 1 :], info)


def _make_remote(location: str) -> None:
    from kafeat.io.storage.object_store import bucket_is_missing, file_system, unreachable

    fs, path = file_system(location)
    if fs.type_name in ("s3", "gcs"):
        if bucket_is_missing(location):
            raise SystemRefusedError(f"{shown(location)}: expected a bucket of that name, got none; make it")
        return
    try:
        fs.create_dir(path, recursive=True)
    except OSError as error:
        raise unreachable(location, error) from error


def _remove_remote(location: str) -> None:
    from kafeat.io.storage.object_store import file_system, unreachable

    fs, path = file_system(location)
    try:
        fs.delete_file(path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise unreachable(location, error) from error
