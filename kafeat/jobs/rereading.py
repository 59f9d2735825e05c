"""Data that are read several times: a file by its name, standard input by a copy, what is in memory as it is."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kafeat.errors import DataError
from kafeat.io.columns import Columns
from kafeat.io.formats import is_arrow
from kafeat.io.locations import entry_of
from kafeat.io.memory import source_of
from kafeat.io.names import require
from kafeat.io.source import Source
from kafeat.io.uri import name_of
from kafeat.jobs.labels import Labels
from kafeat.jobs.options import Input
from kafeat.types import Array


@dataclass(frozen=True)
class Data:
    """Where rows come from, as often as they are asked for; made by `rereadable`."""

    what: Any
    reading: Input
    place: str | None = None
    """What messages call it, where that is not its own name."""
    stamp: str | None = None
    """That of a file when it was first looked at: all that read it later must see the same."""

    @property
    def name(self) -> str:
        """For people: the name of the file without its folders."""
        if self.place is not None:
            return self.place
        return name_of(self.what) if isinstance(self.what, str) else "data in memory"

    @contextmanager
    def open(self) -> Iterator[Source]:
        """The source, from its first row on."""
        named = isinstance(self.what, str)
        try:
            opened = self.reading.open(self.what, self.stamp) if named else nullcontext(source_of(self.what))
        except DataError as error:
            if self.place is None:
                raise
            raise DataError(str(error).replace(self.what, self.place)) from None
        with opened as source:
            if self.place is not None:
                source.place = self.place
            yield source
            source.check_unchanged()

    def whole(self, asked: Mapping[str, str | None]) -> tuple[int, dict[str, Array]]:
        """The number of rows, and these columns of labels, whole; keys say who asked for them."""
        names = [name for name in asked.values() if name is not None]
        parts: dict[str, list[Array]] = {name: [] for name in names}
        read = {name: Labels(name) for name in names}
        rows = 0
        with self.open() as source:
            for option, name in asked.items():
                require(source, [] if name is None else [name], option)
            if not names and source.rows is not None:
                return source.rows, {}
            for chunk in source.chunks(Columns((), source.positional, None), list(names), _ROWS):
                rows += chunk.rows
                for name, labels in read.items():
                    parts[name].append(labels.read(chunk))
        return rows, {name: np.concatenate(found) if found else np.empty(0) for name, found in parts.items()}


_ROWS = 1 << 16


@contextmanager
def rereadable(data: Any, reading: Input | None) -> Iterator[Data]:
    """A path, an array or a table; standard input is copied to a file first, as it can be read but once."""
    reading = reading or Input()
    if not isinstance(data, str | os.PathLike):
        yield Data(data, reading)
    elif os.fspath(data) != "-":
        entry = entry_of(os.fspath(data))
        yield Data(os.fspath(data), reading, stamp=None if entry is None else entry.stamp)
    else:
        with tempfile.NamedTemporaryFile(prefix="kafeat-", suffix=".csv") as copy:
            shutil.copyfileobj(sys.stdin.buffer, copy)
            copy.flush()
            copy.seek(0)
            found = "arrow" if is_arrow(copy.read(4)) else "csv"
            yield Data(copy.name, replace(reading, format=reading.format or found), "-")
