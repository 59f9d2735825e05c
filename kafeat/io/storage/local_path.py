"""Local paths: inspect, list, make and remove files and folders."""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate, islice

from kafeat.errors import SystemRefusedError, UsageError
from kafeat.io.storage.base import Entry, Kind, Location, inode_of
from kafeat.io.storage.files import refused


@dataclass(frozen=True)
class LocalPath(Location):
    """A path of this machine. `uri` is the `file:` URI that was given for it, if any."""

    local: str
    uri: str = ""

    @staticmethod
    def of(text: str) -> LocalPath:
        """Return the location of a path or a `file:` URI."""
        scheme, mark, rest = text.partition("://")
        if not mark or scheme.lower() != "file":
            return LocalPath(text)
        from urllib.parse import unquote  # imported here, because few commands need it

        host, slash, path = rest.partition("/")
        if host not in ("", "localhost") or not slash:
            raise UsageError(
                f"file://...: expected file:///folder/name, got the host {host.rpartition('@')[2]!r:.60}"
            )
        return LocalPath(unquote(f"/{path}"), text)

    def __str__(self) -> str:
        return self.uri or self.path

    @property
    def path(self) -> str:
        return self.local

    @property
    def identity(self) -> str:
        return os.path.realpath(self.path)

    @property
    def inode(self) -> tuple[int, int] | None:
        return inode_of(self.path)

    @property
    def parent(self) -> LocalPath:
        return LocalPath(os.path.dirname(self.path))

    def join(self, name: str) -> LocalPath:
        return LocalPath(os.path.join(self.path, *name.split("/")))

    def above(self, pieces: int) -> LocalPath:
        return LocalPath(("/".join(self.path.split("/")[:pieces]) or "/") if pieces else ".")

    def absolute(self) -> LocalPath:
        return self if self.uri else LocalPath(os.path.abspath(self.path))

    def kind(self) -> Kind | None:
        if os.path.isdir(self.path):
            return "folder"
        if os.path.isfile(self.path):
            return "file"
        return "other" if os.path.lexists(self.path) else None

    def entry(self) -> Entry | None:
        try:
            status = os.stat(self.path)
        except (OSError, ValueError):
            return None
        if not stat.S_ISREG(status.st_mode):
            return None
        return Entry(self.name, status.st_size, stamp_of(status))

    def listed(self) -> Iterator[Entry]:
        return _below(self.path, "", ())

    def holds(self, name: str) -> bool:
        places = accumulate(name.split("/"), os.path.join, initial=self.path)
        return super().holds(name) and not any(map(os.path.islink, islice(places, 1, None)))

    def make_folder(self) -> list[str]:
        missing = os.path.abspath(self.path)
        made: list[str] = []
        while not os.path.lexists(missing):
            made.insert(0, missing)
            missing = os.path.dirname(missing)
        with self.naming():
            os.makedirs(self.path, exist_ok=True)
        return made

    def remove(self) -> None:
        with self.naming(), suppress(FileNotFoundError):
            os.unlink(self.path)

    def free_bytes(self) -> int | None:
        if os.path.exists(self.path) and not os.path.isfile(self.path):
            return None
        try:
            folder = os.statvfs(os.path.dirname(os.path.realpath(self.path)))
            return folder.f_bavail * folder.f_frsize
        except OSError:
            return None

    def open(self) -> io.FileIO:
        try:
            with self.naming():
                if stat.S_ISDIR(os.stat(self.path).st_mode):
                    raise SystemRefusedError(f"{self}: expected a file, got a directory")
                return open(self.path, "rb", buffering=0)
        except ValueError as error:
            raise SystemRefusedError(f"{str(self)!r}: {error}") from error

    def open_random(self) -> io.FileIO:
        file = self.open()
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            file.close()
            super().open_random()
        return file


def stamp_of(status: os.stat_result) -> str:
    """Return the stamp of a local file: its inode, and the times of modification and change."""
    # A writer can set back the modification time, but not the change time.
    return f"{status.st_ino:x}-{status.st_mtime_ns:x}-{status.st_ctime_ns:x}"


def _below(folder: str, prefix: str, above: tuple[tuple[int, int], ...]) -> Iterator[Entry]:
    try:
        info = os.stat(folder)
        key = (info.st_dev, info.st_ino)
        if key in above:
            raise refused(folder, OSError("a link to a folder that it lies in"))
        with os.scandir(folder) as entries:
            for entry in entries:
                name = prefix + entry.name
                if entry.is_symlink() and not os.path.exists(entry.path):
                    yield Entry(name, 0, "")  # opening the broken link raises the error
                elif entry.is_dir():
                    yield from _below(entry.path, name + "/", (*above, key))
                elif entry.is_file():
                    status = entry.stat()
                    yield Entry(name, status.st_size, stamp_of(status))
                else:
                    raise refused(entry.path, OSError("expected a file or a folder, got a pipe or a device"))
    except OSError as error:
        raise refused(folder, error) from error
