"""The location of a table, a model or a folder: a local path, an object, or a standard stream."""

from __future__ import annotations

import os

from kafeat.io.storage.atomic import write_bytes
from kafeat.io.storage.base import Location, StandardStream
from kafeat.io.storage.local_path import LocalPath
from kafeat.io.storage.object_store import ObjectUri, is_remote


def parse_location(text: str | os.PathLike[str] | Location) -> Location:
    """Return the location with that spelling: a local path, a URI, or `-`. A location stays as it is."""
    if isinstance(text, Location):
        return text
    text = os.fspath(text)
    if text == "-":
        return StandardStream()
    return ObjectUri.of(text) if is_remote(text) else LocalPath.of(text)


def location_of(data: object) -> Location | None:
    """Return the location of data that are given by a path or a URI, and None for data in memory."""
    return parse_location(data) if isinstance(data, str | os.PathLike | Location) else None


def write_file(
    name: str | os.PathLike[str], data: bytes, overwrite: bool = True, *, fsync: bool = True
) -> None:
    """Write a small file or object by its name, completely or not at all."""
    write_bytes(parse_location(name), data, overwrite, fsync=fsync)
