"""Lists of files: the parts of a finished run by its manifest, a JSON list of names, or one name a line."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator

from kafeat.errors import DataError, quoted
from kafeat.io.files import opened
from kafeat.io.locations import Entry, entry_of, join
from kafeat.io.uri import is_remote, parent, path_of, shown

LIST_SUFFIXES = (".json", ".txt", ".list")


def named_in(place: str) -> Iterator[tuple[str, str, Entry]]:
    """The files that a list names, each with what it is called below a folder, and its place."""
    for name, at in _places_in(place):
        entry = entry_of(at)
        if entry is None:
            raise DataError(f"{place}: expected a file, got none of the name {quoted(shown(name))}")
        inside = not _is_whole(name) and ".." not in name.split("/")
        yield os.path.normpath(name) if inside else entry.name, at, entry


def places_in(place: str) -> Iterator[str]:
    """The places of the files that a list names, without a look at them."""
    return (at for _, at in _places_in(place))


def _places_in(place: str) -> Iterator[tuple[str, str]]:
    with opened(place) as file:
        text = file.readall().decode("utf-8", errors="surrogateescape")
    folder = parent(place)
    for name in _names(place, text):
        if not _can_be(name):
            raise DataError(f"{place}: expected names that a file can have, got {quoted(shown(name))}")
        yield name, name if _is_whole(name) else join(folder, name)


def _is_whole(name: str) -> bool:
    return os.path.isabs(name) or "://" in name or is_remote(name)


def _can_be(name: str) -> bool:
    try:
        return b"\0" not in os.fsencode(name)
    except UnicodeEncodeError:  # half of a character that UTF-16 makes of two
        return False


def _names(place: str, text: str) -> list[str]:
    if not path_of(place).lower().endswith(".json"):
        return [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    try:
        content = json.loads(text)
    except ValueError as error:
        raise DataError(f"{place}: expected JSON, got {error}") from None
    except RecursionError:
        raise DataError(
            f"{place}: expected a list of names, got lists in lists, too deep to be read"
        ) from None
    if isinstance(content, dict) and isinstance(content.get("parts"), list):
        if content.get("state") != "complete":
            raise DataError(
                f"{place}: expected the manifest of a finished run, got {content.get('state')!r}; --resume it"
            )
        content = [part.get("name") if isinstance(part, dict) else None for part in content["parts"]]
    if not isinstance(content, list) or not all(isinstance(name, str) for name in content):
        raise DataError(f"{place}: expected a list of names, or the manifest of a run, got another JSON")
    return content
