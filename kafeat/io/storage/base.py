"""The base class of locations of tables, models and folders, and the standard streams."""

from __future__ import annotations

import io
import os
import re
import stat
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from kafeat.errors import SystemRefusedError
from kafeat.io.storage.files import read_full, refused, standard_stream

Kind = Literal["file", "folder", "other"]
"""`other` is a pipe or a device."""


@dataclass(frozen=True)
class Entry:
    """A file: its name relative to the listed folder, with `/`, its size in bytes, and its stamp.

    The stamp is a text that changes when the file is written: it includes times that a writer cannot set back. For an
    object, it has only the size and the time in whole seconds.
    """

    name: str
    bytes: int
    stamp: str


class Location(ABC):
    """The place of a file or folder, or a standard stream. Its text, for messages and manifests, has no secrets.

    In an object store, a folder exists while it holds at least one object.
    """

    wildcards: ClassVar[re.Pattern[str]] = re.compile(r"[*?\[]")

    @property
    @abstractmethod
    def path(self) -> str:
        """The path of a file, or the key of an object, decoded and without options. It ends in the file's suffix."""

    @property
    def name(self) -> str:
        return os.path.basename(self.path)

    @property
    def source(self) -> str:
        """The name of the location in messages if it is an input: `<stdin>` for standard input."""
        return str(self)

    @property
    def identity(self) -> str:
        """A text that is equal for all spellings of one location, such as its real path. It needs no network."""
        return self.path

    @property
    def inode(self) -> tuple[int, int] | None:
        """The device and inode of a local file, equal for all its names, or None if it is not a regular file."""
        return None

    @property
    def parent(self) -> Location:
        raise self._refusal("the name of a file")

    def join(self, name: str) -> Location:
        """Return the location of a name below this folder."""
        raise self._refusal("a folder")

    def above(self, pieces: int) -> Location:
        """Return the folder given by the first `pieces` parts of the path: a/b for 2 and a/b/*.csv."""
        raise self._refusal("a folder")

    def absolute(self) -> Location:
        """Return the location in a form that is valid in processes with other working folders."""
        return self

    def kind(self) -> Kind | None:
        """Return the kind of the location, or None if nothing exists there."""
        return "other"

    def entry(self) -> Entry | None:
        """Return the name, size and stamp of the file at this location, or None if there is no regular file."""
        return None

    def size(self) -> int | None:
        """Return the size of a file in bytes, or None if the location is not a file."""
        entry = self.entry()
        return None if entry is None else entry.bytes

    def listed(self) -> Iterator[Entry]:
        """Yield every file below this folder, in no defined order. Links are followed, and cycles are an error."""
        raise self._refusal("a folder")

    def holds(self, name: str) -> bool:
        """Return true if the path `name` stays inside this folder: it has no `..` and passes no link."""
        pieces = name.split("/")
        return all(pieces) and not {".", ".."} & {*pieces}

    def make_folder(self) -> list[str]:
        """Make a folder and its missing parents. Return the paths of the new ones, the uppermost first."""
        raise self._refusal("a folder")

    def remove(self) -> None:
        raise self._refusal("the name of a file")

    def free_bytes(self) -> int | None:
        """Return the free bytes on the disk to which this file would be written, or None if that is not known."""
        return None

    @property
    def spool(self) -> str | None:
        """The local folder in which an object is written before its upload, or None for a local file."""
        return None

    @abstractmethod
    def open(self) -> io.RawIOBase:
        """Open the file for reading from its beginning, without a buffer of Python."""

    def open_random(self) -> Any:
        """Open a file for random access."""
        raise SystemRefusedError(
            f"{self}: expected a regular file, got a pipe or a device; only text and Arrow can be piped"
        )

    def read(self, most: int | None = None) -> bytes:
        """Return all bytes or, if there are more than `most`, the first `most + 1`."""
        with self.open() as file, self.naming():
            return file.readall() if most is None else read_full(file, most + 1)

    def digest(self) -> str:
        """Return the SHA-256 of the bytes, in hex."""
        import hashlib  # imported here: loading OpenSSL costs a tenth of the time of --help

        with self.open() as file, self.naming():
            return hashlib.file_digest(file, "sha256").hexdigest()

    def ends(self, size: int, edge: int) -> bytes:
        """Return the first and the last `edge` bytes of a file of `size` bytes, or all bytes if they would overlap."""
        with self.open_random() as file, self.naming():
            head: bytes = file.read(edge)
            file.seek(max(len(head), size - edge))
            tail: bytes = file.read(edge)
            return head + tail

    def refusal(self, error: OSError) -> SystemRefusedError:
        """Return a SystemRefusedError with the location for an error of the system or of the object store."""
        return refused(self, error)

    @contextmanager
    def naming(self) -> Iterator[None]:
        """Convert errors of the system in the block to SystemRefusedErrors with the location."""
        try:
            yield
        except OSError as error:
            raise self.refusal(error) from error

    def _refusal(self, expected: str) -> SystemRefusedError:
        return SystemRefusedError(f"{self}: expected {expected}, got standard input or output")


@dataclass(frozen=True)
class StandardStream(Location):
    """Standard input or standard output, spelled `-`."""

    def __str__(self) -> str:
        return "-"

    @property
    def path(self) -> str:
        return "-"

    @property
    def source(self) -> str:
        return "<stdin>"

    @property
    def inode(self) -> tuple[int, int] | None:
        return inode_of(0)

    def open(self) -> io.RawIOBase:
        return standard_stream(0)

    def read(self, most: int | None = None) -> bytes:
        raise self._refusal("the name of a file")


def inode_of(file: int | str) -> tuple[int, int] | None:
    """Return device and inode of a regular file, by its descriptor or path. Return None for anything else."""
    try:
        status = os.stat(file)
    except (OSError, ValueError):
        return None
    return (status.st_dev, status.st_ino) if stat.S_ISREG(status.st_mode) else None


def lies_in(identity: str, folder: str) -> bool:
    """Return true if a location is a folder or lies below it. Both are given by their `identity`."""
    return f"{identity}/".startswith(f"{folder.rstrip('/')}/")


@contextmanager
def making(*folders: Location) -> Iterator[Callable[[Location], None]]:
    """Make folders, and yield a function that makes more. At the end, remove the new folders that are empty."""
    made: list[str] = []

    def make(folder: Location) -> None:
        made.extend(folder.make_folder())

    try:
        for folder in folders:
            make(folder)
        yield make
    finally:
        for name in reversed(made):
            with suppress(OSError):
                os.rmdir(name)
