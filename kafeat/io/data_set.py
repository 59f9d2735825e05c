"""Data sets of many files: the parts of a folder, a glob or a list, each with its name in an output."""

from __future__ import annotations

import fnmatch
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias
from urllib.parse import unquote

from kafeat.errors import DataError, SystemRefusedError, UsageError, first_of, quoted
from kafeat.io.formats import format_of_part, suffix_of
from kafeat.io.storage.base import Entry, Location, lies_in
from kafeat.io.storage.local_path import LocalPath
from kafeat.io.storage.location import parse_location, read_json
from kafeat.io.storage.object_store import is_remote, scheme_only

MANIFEST = "_kafeat.json"


Keys: TypeAlias = tuple[tuple[str, str, int | float | str | None], ...]
"""Columns from the names of folders: ("year", "int64", 2024) for year=2024. The value is None for Hive's null."""


@dataclass(frozen=True)
class Part:
    """A file of a data set, or a range of its rows.

    `name` is its name in an output, relative to the folder, with `/`. `only` is the half-open range of its rows. When
    the file is read, it must still have this `stamp`. `keys` are columns that have one value in the whole part.
    """

    name: str
    location: Location
    bytes: int
    stamp: str
    only: tuple[int, int] | None = None
    keys: Keys = ()

    @classmethod
    def of(cls, source: Location | Part, stamp: str | None = None) -> Part:
        """Return a location as a part without a name. Its stamp is `stamp` or, by default, that of the file now.

        Anything but a file, such as a pipe, has an empty stamp. A part is returned unchanged.
        """
        if isinstance(source, Part):
            return source
        entry = source.entry()
        size, now = (0, "") if entry is None else (entry.bytes, entry.stamp)
        return cls("", source, size, now if stamp is None else stamp)


@dataclass(frozen=True)
class Parts:
    """The parts of a data set, sorted by name. `folder` holds all of them; it is None for a list of locations.

    `pattern` is the pattern of their names below the folder. If it is empty, all files there are parts.
    """

    location: Location
    folder: Location | None
    parts: tuple[Part, ...]
    pattern: str = ""

    def would_hold(self, location: Location, folder: bool) -> bool:
        """Return true if a new file would be a part. With `folder`, return true if a new folder could hold parts."""
        if self.folder is None:
            return False
        inner, base = location.identity, self.folder.identity
        if not lies_in(inner, base):
            return False
        if folder:
            return not self.pattern or "**" in self.pattern
        name = inner[len(base) :].strip("/")
        return is_hidden(name) <= is_hidden(self.pattern) and (
            not self.pattern or _matches(name, self.pattern)
        )


def is_data_set(location: Location) -> bool:
    """Return true if a location names many files: a folder, a glob, or a list of names."""
    kind = location.kind()
    if kind is not None:
        listed = kind == "file" and location.path.lower().endswith(LIST_SUFFIXES)
        return kind == "folder" or (listed and not _is_table(location))
    return is_pattern(location) or location.path.endswith("/")


def _is_table(location: Location) -> bool:
    """Return true for a .txt file that is a table: its first line has several fields and does not name a file.

    Fields may be separated by blanks if the next line has as many fields, and no line ends like names of data files.
    """
    if not location.path.lower().endswith(".txt"):
        return False
    with location.open() as file:
        text = (file.read(1 << 16) or b"").decode(errors="replace")
    line, *more = re.split("[\r\n]+", text)[:2]
    named = (
        _is_whole(line)
        or line.startswith("#")
        or (_can_be(line) and location.parent.join(line).entry() is not None)
    )
    widths = {len(one.split()) * (not suffix_of(LocalPath(one))) for one in (line, *more)}
    return not named and (re.search("[,;\t|]", line) is not None or (len(widths) == 1 and max(widths) > 1))


def must_exist(location: Location) -> None:
    """Raise an error if nothing exists at a location. Call this for a pattern only if no file matches it."""
    if location.kind() is None:
        expected = "a folder" if location.path.endswith("/") else "a file or a folder"
        if is_pattern(location):
            expected = "a file, or files of that pattern"
        raise SystemRefusedError(f"{location}: expected {expected}, got nothing of that name", retry=True)


def list_parts(location: Location, format: str | None = None) -> Parts:
    """List the parts of a data set, sorted by name.

    Files and folders whose names begin with `_` or `.` are left out, as other readers of such data do. Files of unknown
    formats are an error unless `format` names the format.
    """
    data_set = find_parts(location)
    if not data_set.parts:
        must_exist(location)
        raise DataError(f"{location}: expected at least one file, got none")
    for part in data_set.parts:
        if not part.name.isprintable():
            raise DataError(
                f"{location}: expected names of printable UTF-8, got {quoted(part.name)}; rename it"
            )
    if format is None:
        _refuse_unknown_formats(data_set)
    return data_set


def find_parts(location: Location) -> Parts:
    """List the parts of a data set without checking their formats."""
    kind, folder, pattern = location.kind(), None, ""
    parts: list[Part] = []
    if kind == "file":
        parts = [Part(name, at, entry.bytes, entry.stamp) for name, at, entry in named_in(location)]
    elif kind == "folder":
        folder, parts = location, list(_in_folder(location, ""))
    elif is_pattern(location):
        folder, pattern = _fixed(location)
        if folder.kind() == "folder":
            parts = [part for part in _in_folder(folder, pattern) if _matches(part.name, pattern)]
    return Parts(location, folder, tuple(_with_keys(sorted(parts, key=lambda part: part.name))), pattern)


_WHOLE, _NUMBER, _HIVE_NULL = (
    r"-?(?:0|[1-9][0-9]{0,17})",
    r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?",
    "__HIVE_DEFAULT_PARTITION__",
)


def _with_keys(parts: list[Part]) -> Iterator[Part]:
    """Yield the parts, with a column for each key of folder names (year=2024) that all parts have.

    The column holds integers or doubles if all values are numbers, and text otherwise.
    """
    pairs = [[folder.partition("=") for folder in part.name.split("/")[:-1]] for part in parts]
    every = [{unquote(key): unquote(value) for key, sign, value in one if key and sign} for one in pairs]
    kinds = dict[str, str]()
    for key in every[0] if every else ():
        words = [keys[key] for keys in every if keys.get(key, _HIVE_NULL) != _HIVE_NULL]
        if words and all(key in keys for keys in every):
            whole, numbers = (all(re.fullmatch(form, word) for word in words) for form in (_WHOLE, _NUMBER))
            kinds[key] = "int64" if whole else "double" if numbers else "string"
    read = {"int64": int, "double": float, "string": str}
    for part, keys in zip(parts, every, strict=True):
        typed = [
            (key, kind, None if keys[key] == _HIVE_NULL else read[kind](keys[key]))
            for key, kind in kinds.items()
        ]
        yield replace(part, keys=tuple(typed))


def renamed(parts: Iterable[Part], format: str | None, input_format: str | None) -> list[Part]:
    """Return the parts with their names in an output of `format`: a.csv becomes a.parquet.

    Without `format`, a part keeps its own format, but a part of a sparse format becomes Parquet. Two parts with
    the same name are an error.
    """
    out: dict[str, Part] = {}
    for part in parts:
        written = format_of_part(LocalPath(part.name), input_format, format)
        keeps = suffix_of(LocalPath(part.name)) in written.suffixes
        name = part.name if keeps else f"{stem(part.name)}.{written.name}"
        if name in out:
            raise UsageError(
                f"{part.location}: expected parts with different names in the output, got {quoted(name)} also for "
                f"{out[name].location}"
            )
        out[name] = replace(part, name=name)
    return list(out.values())


def stem(name: str) -> str:
    """Return a name without the suffix of its format."""
    return name[: len(name) - len(suffix_of(LocalPath(name)))]


def is_hidden(name: str) -> bool:
    """Return true if a name, or a folder in it, begins with `_` or `.`. Readers skip such files."""
    return any(piece.startswith(("_", ".")) for piece in name.split("/"))


def is_pattern(location: Location) -> bool:
    """Return true if a location has wildcards."""
    return location.wildcards.search(location.path) is not None


def _in_folder(folder: Location, pattern: str) -> Iterator[Part]:
    hidden = is_hidden(pattern)  # a pattern that names a hidden file explicitly finds it
    for entry in folder.listed():
        if hidden or not is_hidden(entry.name):
            yield Part(entry.name, folder.join(entry.name), entry.bytes, entry.stamp)


def _fixed(pattern: Location) -> tuple[Location, str]:
    """Split a location at its first wildcard into a folder and a pattern."""
    pieces = pattern.path.split("/")
    first = next(i for i, piece in enumerate(pieces) if pattern.wildcards.search(piece))
    return pattern.above(first), "/".join(pieces[first:])


def _matches(name: str, pattern: str) -> bool:
    """Return true if a name matches a pattern as a whole. `**` is any number of folders; `*` does not match `/`."""
    names = name.split("/")
    places = {0}  # the possible numbers of `names` that the pieces so far have matched
    for piece in pattern.split("/"):
        if piece == "**":
            places = set(range(min(places), len(names) + 1)) if places else places
        else:
            places = {i + 1 for i in places if i < len(names) and fnmatch.fnmatchcase(names[i], piece)}
    return len(names) in places


def _refuse_unknown_formats(data_set: Parts) -> None:
    """Raise an error if files have unknown suffixes, and suggest a pattern that selects the other files."""
    suffixes = Counter(suffix_of(LocalPath(part.name)) for part in data_set.parts)
    if "" not in suffixes:
        return
    unknown = [part.name for part in data_set.parts if not suffix_of(LocalPath(part.name))]
    known = [suffix for suffix, _ in suffixes.most_common() if suffix]
    remedy = "name the format of all with --input-format"
    if known and data_set.folder is not None:
        below = "**/" if any("/" in part.name for part in data_set.parts) else ""
        pattern = f"{below}*{known[0]}"
        choose = f"choose the others with the pattern '{data_set.folder.join(pattern)}' in quotes"
        # With --resume, a pattern that leaves a part out would remove the output of that part.
        if not all(_matches(part.name, pattern) for part in data_set.parts if part.name not in unknown):
            choose = "move it elsewhere, or begin its name with _, as such files are left out"
        remedy = f"{choose}, or {remedy}"
    elif known:
        remedy = f"leave it out of the list, or {remedy}"
    got = first_of([*map(quoted, unknown)])
    raise DataError(f"{data_set.location}: expected data files, got {got}; {remedy}")


LIST_SUFFIXES = (".json", ".txt", ".list")


def named_in(location: Location) -> Iterator[tuple[str, Location, Entry]]:
    """Yield the name in an output, the location and the entry of each file in a list."""
    for name, at in locations_in(location):
        entry = at.entry()
        if entry is None:
            raise DataError(
                f"{location}: expected a file, got none of the name {quoted(str(at) if _is_whole(name) else name)}"
            )
        inside = not _is_whole(name) and ".." not in name.split("/")
        yield os.path.normpath(name) if inside else entry.name, at, entry


def locations_in(location: Location) -> Iterator[tuple[str, Location]]:
    """Yield the names and locations of the files in a list, without a check that they exist."""
    folder = location.parent
    for name in _names(location):
        if not _can_be(name):
            shown = scheme_only(name) if is_remote(name) else name
            raise DataError(f"{location}: expected names that a file can have, got {quoted(shown)}")
        yield name, parse_location(name) if _is_whole(name) else folder.join(name)


def _is_whole(name: str) -> bool:
    return os.path.isabs(name) or "://" in name or is_remote(name)


def _can_be(name: str) -> bool:
    try:
        return b"\0" not in os.fsencode(name)
    except UnicodeEncodeError:  # the name has a lone surrogate
        return False


def _names(location: Location) -> list[str]:
    if not location.path.lower().endswith(".json"):
        lines = location.read().decode("utf-8", errors="surrogateescape").splitlines()
        return [line for line in lines if line.strip() and not line.startswith("#")]
    expected = "a list of names, or the manifest of a run"
    content = read_json(location, expected)
    if isinstance(content, dict) and isinstance(content.get("parts"), list):
        if content.get("state") != "complete":
            raise DataError(
                f"{location}: expected the manifest of a finished run, got {content.get('state')!r}; --resume it"
            )
        content = [part.get("name") if isinstance(part, dict) else None for part in content["parts"]]
    if not isinstance(content, list) or not all(isinstance(name, str) for name in content):
        raise DataError(f"{location}: expected {expected}, got other JSON")
    return content
