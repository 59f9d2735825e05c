"""Where files are: which there are in a folder, and what marks each of them as unchanged."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from kafeat.io.files import refused


@dataclass(frozen=True)
class Entry:
    """A file: its name below the folder that was listed, with `/`, its bytes, and its stamp.

    Equal stamps mean that nobody has written to the file in between: they hold what a writer cannot set back.
    """

    name: str
    bytes: int
    stamp: str


def join(folder: str, name: str) -> str:
    """The place of that name below a folder."""
    return os.path.join(folder, *name.split("/"))


def absolute(place: str) -> str:
    """The same place for processes that stand in other folders."""
    return place if "://" in place else os.path.abspath(place)


def kind_of(place: str) -> Literal["file", "folder", "other"] | None:
    """What is there; None for nothing. `other` is a pipe or a device."""
    if os.path.isdir(place):
        return "folder"
    if os.path.isfile(place):
        return "file"
    return "other" if os.path.lexists(place) else None


def entry_of(place: str) -> Entry | None:
    """The entry of one file, by its last name; None if there is no such file."""
    try:
        found = os.stat(place)
    except OSError:
        return None
    return Entry(os.path.basename(place), found.st_size, _stamp(found))


def listed(folder: str) -> Iterator[Entry]:
    """Every file below a folder, in no order that counts; links are followed, circles of them refused."""
    yield from _below(folder, "", ())


def make_folder(place: str) -> None:
    """Make a folder and those above it, where there are none yet."""
    try:
        os.makedirs(place, exist_ok=True)
    except OSError as error:
        raise refused(place, error) from error


def remove(place: str) -> None:
    """Remove a file; that it is gone already is no error."""
    try:
        os.unlink(place)
    except FileNotFoundError:
        return
    except OSError as error:
        raise refused(place, error) from error


def remove_if_nothing(folder: str, besides: str) -> None:
    """Remove a folder that holds nothing but one file and empty folders; others stay as they are."""
    if any(entry.name != besides for entry in listed(folder)):
        return
    remove(join(folder, besides))
    with suppress(OSError):
        for above, _, _ in os.walk(folder, topdown=False):
            os.rmdir(above)


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
                    yield Entry(name, found.st_size, _stamp(found))
                else:
                    raise refused(
                        entry.path, OSError("expected a file or a folder, got a broken link or a pipe")
                    )
    except OSError as error:
        raise refused(folder, error) from error


def _stamp(found: os.stat_result) -> str:
    # The change time cannot be set back by who writes, as the time of modification can.
    return f"{found.st_ino:x}-{found.st_mtime_ns:x}-{found.st_ctime_ns:x}"
