"""Stream a file through a map to another file."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from kafeat._version import __version__
from kafeat.errors import UsageError
from kafeat.feature_map import FeatureMap, load
from kafeat.io.formats import format_of, open_source
from kafeat.io.selection import match
from kafeat.io.sink import open_sink
from kafeat.io.source import Source

Progress = Callable[[int], None]


@dataclass(frozen=True)
class Input:
    """How a file is read."""

    format: str | None = None
    delimiter: str = ","
    header: bool = True

    def open(self, place: str) -> Source:
        """The source of that name."""
        return open_source(place, self.format, delimiter=self.delimiter, header=self.header)


@dataclass(frozen=True)
class Output:
    """How a file is written. `keep` names the columns to copy; None keeps all of them."""

    format: str | None = None
    keep: Sequence[str] | None = ()
    layout: Literal["columns", "list"] = "columns"
    prefix: str | None = None
    compression: str | None = None
    overwrite: bool = True
    fsync: bool = True


@dataclass(frozen=True)
class Done:
    """What a transform did. `clipped` values lay beyond what a step had seen, and were taken for the last it had."""

    rows: int
    columns: int
    seconds: float
    clipped: int


def transform_file(
    model: str | FeatureMap,
    source: str,
    target: str,
    *,
    reading: Input | None = None,
    writing: Output | None = None,
    jobs: int | None = None,
    announce: Callable[[int | None], Progress] | None = None,
) -> Done:
    """Write the features of every row of `source` to `target`, in order; complete, or nothing at all.

    `announce(rows)` is called when the number of rows is known (None if it cannot be) and returns what is told
    the rows of each chunk that is done.
    """
    reading, writing = reading or Input(), writing or Output()
    format = format_of(target, writing.format)
    _refuse_same(source, target, model)
    started = time.perf_counter()
    fm = load(model) if isinstance(model, str) else model
    with reading.open(source) as opened:
        keep = [field.name for field in opened.fields] if writing.keep is None else list(writing.keep)
        columns = match(opened, fm.columns, () if writing.keep is None else keep)
        typed = format != "csv"  # text stays the text it was
        prefix = "f" if writing.prefix is None else writing.prefix
        with open_sink(
            target,
            format,
            names=[f"{prefix}{i}" for i in range(fm.n_components)],
            dtype=np.dtype(fm.dtype),
            rows=opened.rows,
            block_rows=fm.chunk_rows,
            kept_schema=opened.kept_fields(keep, typed) if keep else None,
            layout=writing.layout,
            list_name="features" if writing.prefix is None else writing.prefix,
            compression=writing.compression,
            metadata={"version": __version__, "layout": writing.layout}
            | ({} if fm.digest is None else {"map": fm.digest}),
            clobber=writing.overwrite,
            fsync=writing.fsync,
        ) as sink:
            told = announce(opened.rows) if announce else None
            chunks = opened.chunks(columns, keep, fm.chunk_rows, typed_keep=typed)
            rows = clipped = 0
            for done in fm.run(chunks, sink, jobs):
                sink.write(done.features, done.chunk.kept)
                rows += done.chunk.rows
                clipped += done.clipped
                if told is not None:
                    told(done.chunk.rows)
    return Done(rows, fm.n_components, time.perf_counter() - started, clipped)


def _refuse_same(source: str, target: str, model: str | FeatureMap) -> None:
    """An output in the place of something that is still read would destroy it."""
    for what, name in (("input", source), ("model", model)):
        if isinstance(name, str) and is_same_file(name, target):
            raise UsageError(f"{target}: expected an output apart from the {what}, got the same file")


def is_same_file(one: str, other: str) -> bool:
    """Whether both names stand for one existing regular file."""
    try:
        return os.path.isfile(one) and os.path.samefile(one, other)
    except OSError:
        return False
