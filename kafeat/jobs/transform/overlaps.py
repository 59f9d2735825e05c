"""Refuse outputs that would replace an input or each other, or that the next run would read."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import combinations, permutations

from kafeat.errors import KafeatError, UsageError
from kafeat.io.data_set import Parts, find_parts, is_data_set, locations_in
from kafeat.io.formats import suffix_of
from kafeat.io.storage.base import Location, StandardStream, lies_in
from kafeat.io.storage.local_path import LocalPath
from kafeat.io.storage.object_store import ObjectUri


@dataclass(frozen=True)
class InputPlace:
    """An input: `what` is its name in messages, and `files` are all its files.

    `data` is the data set, or None if the input is not a data set.
    """

    what: str
    files: tuple[Location, ...]
    data: Parts | None = None

    @classmethod
    def of_data(cls, what: str, place: Location, remote: bool = True) -> InputPlace:
        """Return an input with all files of a data set, or with one file. List remote data sets only if `remote`."""
        files, data = [place], None
        # The command itself reports inputs that cannot be read.
        with suppress(KafeatError):
            if (remote or not isinstance(place, ObjectUri)) and is_data_set(place):
                if place.kind() == "file":
                    files += [at for _, at in locations_in(place)]
                else:
                    data = find_parts(place)
                    files += [part.location for part in data.parts]
        return cls(what, tuple(files), data)


@dataclass(frozen=True)
class OutputPlace:
    """An output, which is a file or a folder of files. `what` is its name in messages."""

    what: str
    place: Location
    folder: bool = False

    @property
    def known(self) -> str:
        """The name with a definite article, such as `the model`, for its second mention in a message."""
        return re.sub("^an? ", "the ", self.what)


def refuse_overlaps(read: Sequence[InputPlace], written: Sequence[OutputPlace]) -> None:
    """Refuse an output that would replace an input or another output, before anything is lost."""
    pipes = [one.what for one in read if StandardStream() in one.files]
    if len(pipes) > 1:
        raise UsageError(f"-: expected one of {' and '.join(pipes)} on standard input, got both")
    for other, out in combinations(written, 2):
        streams = _is_stream(out.place) or _is_stream(other.place)
        if streams and (opened := _status(out.place)) is not None and opened == _status(other.place):
            raise _refusal(out, other.known, "the same stream")
    outputs = [one for one in written if not _is_stream(one.place)]
    for out in outputs:
        for one in read:
            got = _overlap(out, one)
            if got is not None:
                raise _refusal(out, one.what, got)
    for out, other in permutations(outputs, 2):
        own, beside = out.place.identity, other.place.identity
        if own == beside:
            raise _refusal(out, other.known, "the same" if out.folder else "the same file")
        if other.folder and lies_in(own, beside):
            raise _refusal(out, other.known, _INSIDE)


def refuse_table_name(model: Location) -> None:
    """Refuse a model file with the suffix of a table, because saving it could overwrite a table of the user."""
    ending = suffix_of(model)
    if ending:
        raise UsageError(
            f"{model}: expected the name of a model, such as map.joblib, got that of a table ({ending})"
        )


_INSIDE = "one inside of the other"


def _overlap(out: OutputPlace, one: InputPlace) -> str | None:
    """Describe in words how an output overlaps with an input, or return None if it does not."""
    own, inode = out.place.identity, out.place.inode
    if isinstance(out.place, ObjectUri):
        if any(isinstance(file, ObjectUri) and file.identity == own for file in one.files):
            return "the same file"
    elif inode is not None and any(file.inode == inode for file in one.files):
        return "the same file"
    if out.folder:
        inputs = [file.identity for file in one.files if not isinstance(file, StandardStream)]
        if own in inputs:
            return "the same"
        if any(lies_in(place, own) for place in inputs):
            return _INSIDE
    if one.data is not None and one.data.would_hold(out.place, out.folder):
        return _INSIDE
    return None


def _is_stream(place: Location) -> bool:
    """Return true for standard output, a device or a pipe. Writing to them replaces no file."""
    if isinstance(place, LocalPath):
        return place.kind() == "other" and os.path.exists(place.path)
    return isinstance(place, StandardStream)


def _status(place: Location) -> tuple[int, int] | None:
    """Return the device and inode, which all names of a file share. Return None for a missing file or /dev/null."""
    with suppress(OSError, ValueError):
        found = os.stat(1 if isinstance(place, StandardStream) else place.path)
        if not os.path.samestat(found, os.stat(os.devnull)):
            return found.st_dev, found.st_ino
    return None


def _refusal(out: OutputPlace, other: str, got: str) -> UsageError:
    return UsageError(f"{out.place}: expected {out.what} apart from {other}, got {got}")
