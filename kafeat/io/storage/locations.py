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


def absolute(place: str) -> str:
    """Return the location in a form that is valid in processes with other working folders."""
    return place if "://" in place else os.path.abspath(place)


def kind_of(place: str) -> Literal["file", "folder", "other"] | None:
    """Return the kind of a location, or None if nothing exists there. `other` is a pipe or a device."""
    if is_remote(place):
        return _KINDS[_info(place).type.name]
    place = local_path(place)
    if os.path.isdir(place):
        return "folder"
    if os.path.isfile(place):
        return "file"
    return "other" if os.path.lexists(place) else None


_KINDS: dict[str, Literal["file", "folder", "other"] | None] = {
    "File": "file", "Directory": "folder", "NotFound": None, "Unknown": "other",
}  # fmt: skip


def size_of(place: str) -> int | None:
    """Return the size of a file in bytes, or None if the location is not a file."""
    if is_remote(place):
        found = _info(place)
        return int(found.size) if found.type.name == "File" else None
    place = local_path(place)
    return os.path.getsize(place) if os.path.isfile(place) else None


def entry_of(place: str) -> Entry | None:
    """Return the entry of one file, or None if there is no regular file."""
    if is_remote(place):
        info = _info(place)
        return _entry(name_of(place), info) if info.type.name == "File" else None
    place = local_path(place)
    try:
        found = os.stat(place)
    except OSError:
        return None
    if not stat.S_ISREG(found.st_mode):
        return None
    return Entry(os.path.basename(place), found.st_size, stamp_of(found))


def listed(folder: str) -> Iterator[Entry]:
    """Yield every file below a folder, in no defined order. Links are followed, and cycles refused."""
    if is_remote(folder):
        yield from _listed_there(folder)
    else:
        yield from _below(local_path(folder), "", ())


def make_folder(place: str) -> list[str]:
    """Make a folder and its missing parents, and return the new ones, the uppermost first.

    Object stores have no folders to make.
    """
    if is_remote(place):
        _make_there(place)
        return []
    place = missing = os.path.abspath(local_path(place))
    made: list[str] = []
    while not os.path.lexists(missing):
        made.insert(0, missing)
        missing = os.path.dirname(missing)
    try:
        os.makedirs(place, exist_ok=True)
    except OSError as error:
        raise refused(place, error) from error
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


def remove(place: str) -> None:
    """Remove a file if it exists."""
    if is_remote(place):
        _remove_there(place)
        return
    try:
        os.unlink(local_path(place))
    except FileNotFoundError:
        return
    except OSError as error:
        raise refused(place, error) from error


def _below(folder: str, prefix: str, above: tuple[tuple[int, int], ...]) -> Iterator[Entry]:
    try:
        here = os.stat(folder)
        own = (here.st_dev, here.st_ino)
        if own in above:
            raise refused(folder, OSError("a link to a folder that it lies in"))
        with os.scandir(folder) as entries:
            for entry in entries:
                name = prefix + entry.name
                if entry.is_dir():
                    yield from _below(entry.path, name + "/", (*above, own))
                elif entry.is_file():
                    found = entry.stat()
                    yield Entry(name, found.st_size, stamp_of(found))
                else:
                    raise refused(
                        entry.path, OSError("expected a file or a folder, got a broken link or a pipe")
                    )
    except OSError as error:
        raise refused(folder, error) from error


def stamp_of(found: os.stat_result) -> str:
    """Return the stamp of a local file."""
    # Unlike the modification time, the change time cannot be set back by a writer.
    return f"{found.st_ino:x}-{found.st_mtime_ns:x}-{found.st_ctime_ns:x}"


def _info(place: str) -> Any:
    from kafeat.io.storage.object_store import info_of

    return info_of(place)


def _entry(name: str, info: Any) -> Entry:
    # A listing has fractions of a second, the object itself does not.
    return Entry(name, int(info.size), f"{info.size:x}-{(info.mtime_ns or 0) // 10**9:x}")


def _listed_there(folder: str) -> Iterator[Entry]:
    from pyarrow.fs import FileSelector, FileType

    from kafeat.io.storage.object_store import file_system, unreachable

    fs, path = file_system(folder)
    base = path.rstrip("/")
    try:
        found = fs.get_file_info(FileSelector(base, recursive=True))
    except FileNotFoundError:
        raise SystemRefusedError(
            f"{shown(folder)}: expected a folder with something in it, got none"
        ) from None
    except OSError as error:
        raise unreachable(folder, error) from error
    for info in found:
        if info.type == FileType.File:
            yield _entry(info.path[len(base) + 1 :], info)


def _make_there(place: str) -> None:
    from kafeat.io.storage.object_store import bucket_is_missing, file_system, unreachable

    fs, path = file_system(place)
    if fs.type_name in ("s3", "gcs"):
        if bucket_is_missing(place):
            raise SystemRefusedError(f"{shown(place)}: expected a bucket of that name, got none; make it")
        return
    try:
        fs.create_dir(path, recursive=True)
    except OSError as error:
        raise unreachable(place, error) from error


def _remove_there(place: str) -> None:
    from kafeat.io.storage.object_store import file_system, unreachable

    fs, path = file_system(place)
    try:
        fs.delete_file(path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise unreachable(place, error) from error
