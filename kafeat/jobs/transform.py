"""Stream a file through a map to another file."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Literal

import numpy as np

from kafeat._version import __version__
from kafeat.errors import GateError, UsageError, quoted
from kafeat.feature_map import FeatureMap, load
from kafeat.io.formats import format_of, open_source
from kafeat.io.selection import match
from kafeat.io.sink import Sink, open_sink
from kafeat.io.source import Source
from kafeat.io.space import require_space
from kafeat.jobs.rejects import open_rejects
from kafeat.running import Watch
from kafeat.types import Array

Progress = Callable[[int], None]
Announce = Callable[[int | None], Progress]


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
    """How a file is written. `keep` names the columns to copy; None keeps all of them. `dtype` None is the map's."""

    format: str | None = None
    keep: Sequence[str] | None = ()
    layout: Literal["columns", "list", "tensor"] = "columns"
    prefix: str | None = None
    compression: str | None = None
    overwrite: bool = True
    fsync: bool = True
    dtype: Literal["float16", "float32", "float64"] | None = None


@dataclass(frozen=True)
class Rules:
    """What becomes of rows that cannot be transformed, and of inputs that have drifted away.

    `on_bad_rows`: an error; dropped; or null features (NaN in NPY). `rejects` names the CSV that tells the rows.
    `drift` counts the values outside of the range that the fit has seen; more than the share `max_drift` of a column
    is an error.
    """

    on_bad_rows: Literal["error", "drop", "null"] = "error"
    rejects: str | None = None
    drift: bool = False
    max_drift: float | None = None


@dataclass(frozen=True)
class Done:
    """What a transform did.

    `clipped` values lay beyond what a step had seen, and were taken for the last it had. `bad_rows` of the `rows_read`
    were dropped or have null features. `drift` has the share of values outside of the fit's range for each feature of
    the input, if it was asked for. `rows_in_all` is what is known of the input, or estimated after `first_chunks`.
    """

    rows: int
    rows_read: int
    columns: int
    seconds: float
    clipped: int
    bad_rows: int
    drift: dict[str, float] | None
    rows_in_all: int | None
    input_sha256: str | None = None


STRICT = Rules()

_ADVICE = "; --on-bad-rows drop leaves such rows out, null marks them"


def transform_file(
    model: str | FeatureMap,
    source: str,
    target: str,
    *,
    reading: Input | None = None,
    writing: Output | None = None,
    rules: Rules = STRICT,
    jobs: int | None = None,
    announce: Announce | None = None,
    first_chunks: int | None = None,
    hashed: bool = False,
) -> Done:
    """Write the features of every row of `source` to `target`, in order; complete, or nothing at all.

    `announce(rows)` is called when the number of rows is known (None if it cannot be) and returns what is told
    the rows of each chunk that is done. `first_chunks` ends after so many chunks. With `hashed` the SHA-256 of the
    input is told.
    """
    reading, writing = reading or Input(), writing or Output()
    format_of(target, writing.format)
    refuse_same({"input": source, "model": model}, {"--rejects": rules.rejects, "OUT": target})
    started = time.perf_counter()
    fm = load(model) if isinstance(model, str) else model
    _check_rules(rules, fm)
    with reading.open(source) as opened:
        if rules.on_bad_rows != "error":
            opened.set_aside()
        keep = [field.name for field in opened.fields] if writing.keep is None else list(writing.keep)
        columns = match(opened, fm.columns, () if writing.keep is None else keep)
        typed = format_of(target, writing.format) != "csv"  # text stays the text it was
        with ExitStack() as stack:
            sink = stack.enter_context(_open_sink(fm, opened, target, writing, rules, keep, first_chunks))
            rejects = (
                None
                if rules.rejects is None
                else stack.enter_context(open_rejects(rules.rejects, columns, keep, writing.fsync))
            )
            told = announce(opened.rows) if announce else None
            chunks = islice(opened.chunks(columns, keep, fm.chunk_rows, typed_keep=typed), first_chunks)
            tally = _Tally(fm, columns.names, rules)
            seen = fm.seen if tally.watches_drift else None
            for done in fm.run(chunks, sink, jobs, Watch(rules.on_bad_rows != "error", seen, _ADVICE)):
                good = done.good if rules.on_bad_rows == "drop" else None
                sink.write(done.features, done.chunk.kept, good)
                tally.add(done.chunk.rows, done.clipped, len(done.aside), done.outside)
                if rejects is not None:
                    rejects.add(done)
                if told is not None:
                    told(done.chunk.rows)
            tally.check(target)
            sink.finish()
            rows = opened.rows if first_chunks is None else opened.estimated_rows()
            digest = opened.digest() if hashed else None
    return tally.done(time.perf_counter() - started, rows, digest)


@contextmanager
def _open_sink(
    fm: FeatureMap,
    opened: Source,
    target: str,
    writing: Output,
    rules: Rules,
    keep: list[str],
    first_chunks: int | None,
) -> Iterator[Sink]:
    format, dropping = format_of(target, writing.format), rules.on_bad_rows == "drop"
    typed = format != "csv"
    prefix = "f" if writing.prefix is None else writing.prefix
    dtype = np.dtype(writing.dtype or fm.dtype)
    rows = None if dropping or first_chunks is not None else opened.rows
    if rows is not None and format not in ("csv", "jsonl") and writing.compression in (None, "none"):
        require_space(target, rows * fm.n_components * dtype.itemsize)
    with open_sink(
        target,
        format,
        names=[f"{prefix}{i}" for i in range(fm.n_components)],
        dtype=dtype,
        rows=rows,
        block_rows=fm.chunk_rows,
        kept_schema=opened.kept_fields(keep, typed) if keep else None,
        layout=writing.layout,
        list_name="features" if writing.prefix is None else writing.prefix,
        compression=writing.compression,
        metadata={"version": __version__, "layout": writing.layout}
        | ({} if fm.digest is None else {"map": fm.digest}),
        clobber=writing.overwrite,
        fsync=writing.fsync,
        nullable=rules.on_bad_rows == "null",
        dropping=dropping,
    ) as sink:
        yield sink


class _Tally:
    """Sums over chunks."""

    def __init__(self, fm: FeatureMap, names: Sequence[str], rules: Rules) -> None:
        self._fm, self._names, self._rules = fm, names, rules
        self._read = self._clipped = self._bad = 0
        self.watches_drift = fm.seen is not None and (rules.drift or rules.max_drift is not None)
        self._outside = np.zeros(len(names), dtype=np.int64)

    def add(self, rows: int, clipped: int, bad: int, outside: Array | None) -> None:
        self._read += rows
        self._clipped += clipped
        self._bad += bad
        if outside is not None:
            self._outside += outside

    def drift(self) -> dict[str, float] | None:
        if not self.watches_drift:
            return None
        good = max(1, self._read - self._bad)
        return {name: int(n) / good for name, n in zip(self._names, self._outside, strict=True)}

    def check(self, target: str) -> None:
        """Refuse too much drift."""
        most, drift = self._rules.max_drift, self.drift()
        if most is None or drift is None:
            return
        beyond = sorted(((share, name) for name, share in drift.items() if share > most), reverse=True)
        if beyond:
            worst = ", ".join(f"{quoted(name)} {share:.2%}" for share, name in beyond[:3])
            more = f" and {len(beyond) - 3} more" if len(beyond) > 3 else ""
            raise GateError(
                f"{target}: expected at most {most:.2%} of a column outside of the range of the fit "
                f"(--max-drift), got {worst}{more}"
            )

    def done(self, seconds: float, rows_in_all: int | None, digest: str | None) -> Done:
        rows = self._read - (self._bad if self._rules.on_bad_rows == "drop" else 0)
        width, drift = self._fm.n_components, self.drift()
        return Done(rows, self._read, width, seconds, self._clipped, self._bad, drift, rows_in_all, digest)


def _check_rules(rules: Rules, fm: FeatureMap) -> None:
    if rules.max_drift is not None and not 0.0 <= rules.max_drift <= 1.0:
        raise UsageError(f"--max-drift: expected a share from 0 to 1, got {rules.max_drift}")
    if rules.rejects is not None and rules.on_bad_rows == "error":
        raise UsageError("--rejects: expected --on-bad-rows drop or null with it, got error")
    if rules.max_drift is not None and fm.seen is None:
        raise UsageError(
            "--max-drift: expected a map that knows the range of its columns, got one of an older kafeat; fit it again"
        )


def refuse_same(read: Mapping[str, object], written: Mapping[str, str | None]) -> None:
    """An output in the place of something that is still read would destroy it, or another output."""
    for out in written.values():
        for what, name in read.items():
            if (
                isinstance(name, str)
                and "-" not in (name, out)
                and out is not None
                and is_same_file(name, out)
            ):
                raise UsageError(f"{out}: expected an output apart from the {what}, got the same file")
    places: dict[str, str] = {}
    for what, out in written.items():
        if out is None or out == "-" or (os.path.exists(out) and not os.path.isfile(out)):
            continue
        other = places.setdefault(os.path.realpath(out), what)
        if other != what:
            raise UsageError(f"{out}: expected different files for {other} and {what}, got the same")


def is_same_file(one: str, other: str) -> bool:
    """Whether both names stand for one existing regular file."""
    try:
        return os.path.isfile(one) and os.path.samefile(one, other)
    except OSError:
        return False
