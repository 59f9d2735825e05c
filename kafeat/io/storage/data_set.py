"""Data sets of many files: the parts of a folder, a glob or a list, each with its name in an output."""

from __future__ import annotations

import fnmatch
import json
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from kafeat.errors import DataError, SystemRefusedError, UsageError, quoted
from kafeat.io.storage.files import opened
from kafeat.io.storage.formats import OUTPUTS, SUFFIXES, format_of
from kafeat.io.storage.locations import Entry, entry_of, join, kind_of, listed
from kafeat.io.storage.uri import identity, is_remote, lies_in, parent, parsed, path_of, shown

MANIFEST = "_kafeat.json"
_MAGIC = re.compile(r"[*?\[]")
_REMOTE_MAGIC = re.compile(r"[*\[]")


@dataclass(frozen=True)
class Part:
    """A file of a data set, or a range of its rows.

    `name` is its name in an output, relative to the folder, with `/`. `only` is the half-open range of its rows.
    """

    name: str
    location: str
    bytes: int
    stamp: str
    only: tuple[int, int] | None = None


@dataclass(frozen=True)
class Parts:
    """The parts of a data set, sorted by name. `folder` holds all of them; it is None for a list of locations.

    `pattern` is the pattern of their names below the folder. If it is empty, all files there are parts.
    """

    location: str
    folder: str | None
    parts: tuple[Part, ...]
    pattern: str = ""

    def would_hold(self, location: str, folder: bool = False) -> bool:
        """Return true if a file at a location would be a part, too. With `folder`, if any file below it would be."""
        if self.folder is None:
            return False
        inner, base = identity(location), identity(self.folder)
        if not lies_in(inner, base):
            return False
        if folder:
            return not self.pattern or "**" in self.pattern
        name = inner[len(base) :].strip("/")
        return is_hidden(name) <= is_hidden(self.pattern) and (
            not self.pattern or _matches(name, self.pattern)
        )


def is_data_set(location: str) -> bool:
    """Return true if a location names many files: a folder, a glob, or a list of names."""
    kind = None if location == "-" else kind_of(location)
    if kind is not None:
        return kind == "folder" or (kind == "file" and _is_list(location))
    return is_pattern(location) or path_of(location).endswith("/")


def list_parts(location: str, format: str | None = None) -> Parts:
    """List the parts of a data set, sorted by name.

    Files and folders whose names begin with `_` or `.` are left out, as other readers of such data do. Files of unknown
    formats are refused unless `format` names the format.
    """
    data_set = find_parts(location)
    if not data_set.parts:
        raise DataError(f"{location}: expected at least one file, got none")
    for part in data_set.parts:
        _check(location, part, format)
    return data_set


def find_parts(location: str) -> Parts:
    """List the parts without a check of their formats."""
    pattern = ""
    if kind_of(location) == "file":
        folder, parts = None, [_part(entry, at, name) for name, at, entry in named_in(location)]
    elif kind_of(location) == "folder":
        folder, parts = location, list(_in_folder(location, ""))
    elif not is_pattern(location):
        raise SystemRefusedError(f"{location}: expected a folder, got nothing of that name")
    else:
        folder, pattern = _fixed(location)
        if kind_of(folder) != "folder":
            raise DataError(f"{location}: expected files of that pattern, got no folder {shown(folder)}")
        parts = [part for part in _in_folder(folder, pattern) if _matches(part.name, pattern)]
    return Parts(location, folder, tuple(sorted(parts, key=lambda part: part.name)), pattern)


def renamed(parts: Iterable[Part], format: str | None, input_format: str | None) -> list[Part]:
    """Return the parts with their names in an output of that format.

    Without `format`, a part keeps its own format, or becomes Parquet if its own cannot be written. Two parts with the
    same name are refused.
    """
    out: dict[str, Part] = {}
    for part in parts:
        own_format = format_of(part.name, input_format)
        target_format = format or (own_format if own_format in OUTPUTS else "parquet")
        name = part.name if _is_of(part.name, target_format) else f"{stem(part.name)}.{target_format}"
        if name in out:
            raise UsageError(
                f"{part.location}: expected parts with different names in the output, got {quoted(name)} for "
                f"{out[name].location}, too"
            )
        out[name] = replace(part, name=name)
    return list(out.values())


def _is_of(name: str, format: str) -> bool:
    try:
        return format_of(name) == format
    except UsageError:
        return False


def stem(name: str) -> str:
    """Return a name without the suffix of its format."""
    known = next(
        (suffix for suffix in sorted(SUFFIXES, key=len, reverse=True) if name.lower().endswith(suffix)), ""
    )
    return name[: len(name) - len(known)] if known else name


def is_hidden(name: str) -> bool:
    """Return true if a name, or a folder in it, begins with `_` or `.`: readers skip such files."""
    return any(piece.startswith(("_", ".")) for piece in name.split("/"))


def is_pattern(location: str) -> bool:
    """Return true if a location has wildcards. In a URI, `?` begins the options and is no wildcard."""
    return bool((_REMOTE_MAGIC if is_remote(location) else _MAGIC).search(path_of(location)))


def _is_list(location: str) -> bool:
    return path_of(location).lower().endswith(LIST_SUFFIXES)


def _in_folder(folder: str, pattern: str) -> Iterator[Part]:
    hidden = is_hidden(pattern)  # a pattern that names a hidden file asks for it
    for entry in listed(folder):
        if hidden or not is_hidden(entry.name):
            yield _part(entry, join(folder, entry.name), entry.name)


def _part(entry: Entry, location: str, name: str) -> Part:
    return Part(name, location, entry.bytes, entry.stamp)


def _fixed(pattern: str) -> tuple[str, str]:
    """Split a location at its first wildcard into a folder and a pattern."""
    pieces = path_of(pattern).split("/")
    first = next(i for i, piece in enumerate(pieces) if _MAGIC.search(piece))
    folder = "/".join(pieces[:first]) if first else "."
    if is_remote(pattern):
        folder = replace(parsed(pattern), path="/".join(parsed(pattern).path.split("/")[:first])).spelled()
    return folder or "/", "/".join(pieces[first:])


def _matches(name: str, pattern: str) -> bool:
    """Return true if a name matches a pattern. `**` stands for any number of folders; `*` does not match `/`."""
    return _pieces_match(name.split("/"), pattern.split("/"))


def _pieces_match(names: list[str], patterns: list[str]) -> bool:
    if not patterns:
        return not names
    if patterns[0] == "**":
        return any(_pieces_match(names[i:], patterns[1:]) for i in range(len(names) + 1))
    return (
        bool(names) and fnmatch.fnmatchcase(names[0], patterns[0]) and _pieces_match(names[1:], patterns[1:])
    )


def _check(location: str, part: Part, format: str | None) -> None:
    if not part.name.isprintable():
        raise DataError(f"{location}: expected names of printable UTF-8, got {quoted(part.name)}; rename it")
    if format is not None:
        return
    try:
        format_of(part.name)
    except UsageError:
        raise DataError(
            f"{location}: expected data files, got {quoted(part.name)}; choose with a glob, or name the format with "
            "--input-format"
        ) from None


LIST_SUFFIXES = (".json", ".txt", ".list")


def named_in(location: str) -> Iterator[tuple[str, str, Entry]]:
    """Yield the name in an output, the location and the entry of each file in a list."""
    for name, at in _locations_in(location):
        entry = entry_of(at)
        if entry is None:
            raise DataError(f"{location}: expected a file, got none of the name {quoted(shown(name))}")
        inside = not _is_whole(name) and ".." not in name.split("/")
        yield os.path.normpath(name) if inside else entry.name, at, entry


def locations_in(location: str) -> Iterator[str]:
    """Return the locations of the files in a list, without a check that they exist."""
    return (at for _, at in _locations_in(location))


def _locations_in(location: str) -> Iterator[tuple[str, str]]:
    with opened(location) as file:
        text = file.readall().decode("utf-8", errors="surrogateescape")
    folder = parent(location)
    for name in _names(location, text):
        if not _can_be(name):
            raise DataError(f"{location}: expected names that a file can have, got {quoted(shown(name))}")
        yield name, name if _is_whole(name) else join(folder, name)


def _is_whole(name: str) -> bool:
    return os.path.isabs(name) or "://" in name or is_remote(name)


def _can_be(name: str) -> bool:
    try:
        return b"\0" not in os.fsencode(name)
    except UnicodeEncodeError:  # a lone surrogate
        return False


def _names(location: str, text: str) -> list[str]:
    if not path_of(location).lower().endswith(".json"):
        return [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    try:
        content = json.loads(text)
    except ValueError as error:
        raise DataError(f"{location}: expected JSON, got {error}") from None
    except RecursionError:
        raise DataError(
            f"{location}: expected a list of names, got lists in lists, too deep to be read"
        ) from None
    if isinstance(content, dict) and isinstance(content.get("parts"), list):
        if content.get("state") != "complete":
            raise DataError(
                f"{location}: expected the manifest of a finished run, got {content.get('state')!r}; --resume it"
            )
        content = [part.get("name") if isinstance(part, dict) else None for part in content["parts"]]
    if not isinstance(content, list) or not all(isinstance(name, str) for name in content):
        raise DataError(f"{location}: expected a list of names, or the manifest of a run, got other JSON")
    return content
