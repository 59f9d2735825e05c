"""Find the location of a path or URI (a local path, an object or a standard stream), and read and write small files.

JSON files may be damaged or changed by other programs, so their size and depth (some 200 levels) are limited.
"""

from __future__ import annotations

import os
from typing import Any

from kafeat.errors import DataError, UsageError
from kafeat.io.storage.atomic import write_bytes
from kafeat.io.storage.base import Location, StandardStream
from kafeat.io.storage.local_path import LocalPath
from kafeat.io.storage.object_store import ObjectUri, is_remote

# This limit suffices for the manifest of two million parts, at about 500 bytes each.
MOST_BYTES = 1 << 30


def parse_location(text: str | os.PathLike[str] | Location) -> Location:
    """Return the location for a local path, a URI, or `-`. A location is returned unchanged."""
    if isinstance(text, Location):
        return text
    text = os.fspath(text)
    if text == "-":
        return StandardStream()
    return ObjectUri.of(text) if is_remote(text) else LocalPath.of(text)


def location_of(data: object) -> Location | None:
    """Return the location of data that are given by a path or a URI, and None for data in memory."""
    return parse_location(data) if isinstance(data, str | os.PathLike | Location) else None


def place_of(name: str, value: object, remedy: str = "") -> Location:
    """Return the location for the argument `name`. Raise UsageError if `value` is not a path or URI."""
    place = location_of(value)
    if place is None:
        raise UsageError(f"{name}: expected a path or URI, got {type(value).__name__}{remedy}")
    return place


def write_file(
    name: str | os.PathLike[str], data: bytes, overwrite: bool = True, *, fsync: bool = True
) -> None:
    """Write a small file or object by its name, completely or not at all."""
    write_bytes(parse_location(name), data, overwrite, fsync=fsync)


def read_json(place: Location, expected: str) -> Any:
    """Return the content of a JSON file. `expected` describes the file."""
    content = place.read(MOST_BYTES)
    if len(content) > MOST_BYTES:
        raise DataError(f"{place}: expected {expected}, got: more than {MOST_BYTES:,} bytes")
    return parse_json(content, place, expected)


def parse_json(content: bytes, place: object, expected: str) -> Any:
    """Return the value of JSON text; of repeated keys, the last counts. Raise DataError if it is invalid or has NaN."""
    from pydantic_core import from_json  # it limits the depth, without recursion in Python

    try:
        return from_json(content, allow_inf_nan=False)
    except ValueError as error:
        raise DataError(f"{place}: expected {expected}, got: {error}") from None
