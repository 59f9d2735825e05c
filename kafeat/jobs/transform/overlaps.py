"""Refuse outputs that would replace what is read, be read by the next run, or replace each other."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import permutations

from kafeat.config import load_config
from kafeat.errors import KafeatError, UsageError
from kafeat.io.storage.data_set import Parts, find_parts, is_data_set, locations_in
from kafeat.io.storage.formats import SUFFIXES
from kafeat.io.storage.locations import kind_of
from kafeat.io.storage.uri import identity, is_remote, lies_in, local_path, path_of, shown


@dataclass(frozen=True)
class InputPlace:
    """An input: `what` is its name in messages, `files` are all of its files.

    `data` is the data set that the files belong to, if they do.
    """

    what: str
    files: tuple[str, ...]
    data: Parts | None = None

    @classmethod
    def of_data(cls, what: str, place: str, remote: bool = True) -> InputPlace:
        """List the files of a data set, or take one file. A remote data set is listed only if `remote`."""
        files, data = [place], None
        # The command itself reports inputs that cannot be read.
        with suppress(KafeatError):
            if (remote or not is_remote(place)) and is_data_set(place):
                if kind_of(place) == "file":
                    files += locations_in(place)
                else:
                    data = find_parts(place)
                    files += [part.location for part in data.parts]
        return cls(what, tuple(files), data)

    @classmethod
    def of_config(cls, what: str, place: str) -> list[InputPlace]:
        """Return a config, and the files that it names."""
        named: list[str] = []
        with suppress(KafeatError):
            rows = [rows for step in load_config(place).steps for rows in step.given_rows.values()]
            named = [one for one in rows if isinstance(one, str)]
        return [cls(what, (place,)), cls(f"the rows that {place} names", tuple(named))]


@dataclass(frozen=True)
class OutputPlace:
    """An output, a file or a folder of files; `what` is its name in messages."""

    what: str
    place: str
    folder: bool = False

    @property
    def known(self) -> str:
        """The name with a definite article, for the second mention in a message."""
        return re.sub("^an? ", "the ", self.what)


def refuse_overlaps(read: Sequence[InputPlace], written: Sequence[OutputPlace]) -> None:
    """Refuse an output that would replace an input or another output, before anything is lost."""
    pipes = [one.what for one in read if "-" in one.files]
    if len(pipes) > 1:
        raise UsageError(f"-: expected one of {' and '.join(pipes)} on standard input, got both")
    outputs = [one for one in written if one.place != "-" and not _is_device(one.place)]
    for out in outputs:
        for one in read:
            got = _overlap(out, one)
            if got is not None:
                raise _refusal(out, one.what, got)
    for out, other in permutations(outputs, 2):
        own, beside = identity(out.place), identity(other.place)
        if own == beside:
            raise _refusal(out, other.known, "the same" if out.folder else "the same file")
        if other.folder and lies_in(own, beside):
            raise _refusal(out, other.known, _INSIDE)


def refuse_files(read: Mapping[str, object], written: Mapping[str, str | None]) -> None:
    """Call `refuse_overlaps` for single files by their names in messages; values that are no strings are ignored."""
    refuse_overlaps(
        [InputPlace(what, (place,)) for what, place in read.items() if isinstance(place, str)],
        [OutputPlace(what, place) for what, place in written.items() if place is not None],
    )


def refuse_table_name(model: str) -> None:
    """Refuse a model with the suffix of a table: the user named two tables, and the second would be lost."""
    ending = next((suffix for suffix in SUFFIXES if path_of(model).lower().endswith(suffix)), None)
    if ending is not None:
        raise UsageError(
            f"{model}: expected the name of a model, as map.joblib, got that of a table ({ending})"
        )


_INSIDE = "one inside of the other"


def _overlap(out: OutputPlace, one: InputPlace) -> str | None:
    """Describe how an output overlaps with an input, in words; None if it does not."""
    own, inode = identity(out.place), _inode_of(out.place)
    if is_remote(out.place):
        if any(is_remote(file) and identity(file) == own for file in one.files):
            return "the same file"
    elif inode is not None and any(_inode_of(file) == inode for file in one.files):
        return "the same file"
    if out.folder:
        inputs = [identity(file) for file in one.files if file != "-"]
        if own in inputs:
            return "the same"
        if any(lies_in(place, own) for place in inputs):
            return _INSIDE
    if one.data is not None and one.data.would_hold(out.place, out.folder):
        return _INSIDE
    return None


def _inode_of(place: str) -> tuple[int, int] | None:
    """Return device and inode of a local file, equal for all of its names; None if it is no regular file."""
    if is_remote(place):
        return None
    try:
        status = os.fstat(0) if place == "-" else os.stat(local_path(place))
    except (OSError, ValueError):
        return None
    return (status.st_dev, status.st_ino) if stat.S_ISREG(status.st_mode) else None


def _is_device(place: str) -> bool:
    path = local_path(place)
    return (
        not is_remote(place) and os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)
    )


def _refusal(out: OutputPlace, other: str, got: str) -> UsageError:
    return UsageError(f"{shown(out.place)}: expected {out.what} apart from {other}, got {got}")
