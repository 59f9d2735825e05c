"""Stream a file through a map to another file."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import islice

import numpy as np

from kafeat._version import __version__
from kafeat.errors import InvalidValueError
from kafeat.io.columns.fields import as_spelled
from kafeat.io.columns.selection import match
from kafeat.io.readers.base import Chunk, Reader
from kafeat.io.storage.atomic import WrittenFile
from kafeat.io.storage.disk_space import require_space
from kafeat.io.storage.formats import OUTPUTS, format_of
from kafeat.io.writers.base import Writer
from kafeat.io.writers.open import open_writer
from kafeat.jobs.transform.counts import Counts, TransformResult
from kafeat.jobs.transform.options import STRICT, InputOptions, OutputOptions, RowOptions
from kafeat.jobs.transform.overlaps import refuse_files
from kafeat.jobs.transform.rejects import open_rejects
from kafeat.model.feature_map import FeatureMap, load
from kafeat.runtime.threads import RowPolicy

Progress = Callable[[int], None]
Announce = Callable[[int | None], Progress]

_ADVICE = "; --on-bad-rows drop leaves such rows out, null marks them"


def transform_file(
    model: str | FeatureMap,
    source: str,
    target: str,
    *,
    reading: InputOptions | None = None,
    writing: OutputOptions | None = None,
    rules: RowOptions = STRICT,
    jobs: int | None = None,
    announce: Announce | None = None,
    first_chunks: int | None = None,
    hashed: bool = False,
    only: tuple[int, int] | None = None,
    stamp: str | None = None,
) -> TransformResult:
    """Write the features of every row of `source` to `target`, in order; complete, or nothing at all.

    `announce(rows)` is called when the number of rows is known (None if it cannot be) and returns what is told
    the rows of each chunk that is done. `first_chunks` ends after so many chunks; `only` are the first row and the
    one behind the last. With `hashed` the SHA-256 of the output, and of an
    input that is read whole, is told. `stamp` is that of an input which was listed.
    """
    reading, writing = reading or InputOptions(), writing or OutputOptions()
    format = format_of(target, writing.format, OUTPUTS)
    refuse_files({"the input": source, "the model": model}, {"an output": target, "--rejects": rules.rejects})
    started = time.perf_counter()
    fm = load(model) if isinstance(model, str) else model
    rules.check(fm)
    with reading.open(source, stamp) as opened:
        if only is not None:
            opened = opened.select_rows(*only)
        stream = OpenTransform(fm, opened, format, writing, rules, jobs)
        told = announce(opened.rows) if announce else None
        rows = None if first_chunks is not None else opened.rows
        chunks = islice(stream.chunks(), first_chunks)
        written = WrittenFile() if hashed else None
        first = None if only is None else only[0]
        tally = stream.pour(chunks, target, rows, told, first, written, hashed=hashed and only is None)
        rows_in_all = opened.rows if first_chunks is None else opened.estimated_rows()
    return tally.done(time.perf_counter() - started, rows_in_all, written or WrittenFile())


class OpenTransform:
    """An input that is open, and what is made of its rows: one output, or one after the other."""

    def __init__(
        self,
        fm: FeatureMap,
        opened: Reader,
        format: str,
        writing: OutputOptions,
        rules: RowOptions,
        jobs: int | None,
    ) -> None:
        self._fm, self._opened, self._format = fm, opened, format
        self._writing, self._rules, self._jobs = writing, rules, jobs
        every = [field.name for field in opened.fields]
        keep = every if writing.keep is None else as_spelled(opened, writing.keep)
        self._columns = match(opened, fm.columns, () if writing.keep is None else keep, "--keep")
        self._keep = keep

    @property
    def _typed(self) -> bool:
        return self._format != "csv"  # text stays the text it was

    def chunks(self) -> Iterator[Chunk]:
        """The rows of the input, in chunks of the map's height."""
        return self._opened.chunks(
            self._columns,
            self._keep,
            self._fm.chunk_rows,
            typed_passthrough=self._typed,
            set_aside=self._rules.on_bad_rows != "error",
        )

    def pour(
        self,
        chunks: Iterator[Chunk],
        target: str,
        rows: int | None,
        told: Progress | None = None,
        first: int | None = None,
        written: WrittenFile | None = None,
        *,
        hashed: bool = False,
    ) -> Counts:
        """Write the features of these chunks, which have `rows` rows (None: nobody knows) from row `first` on.

        They are all of the input where `first` is None. An input that has changed meanwhile is refused. With `hashed`
        its SHA-256 is told.
        """
        rules = self._rules
        tally = Counts(self._fm, self._columns.names, rules)
        seen = self._fm.seen if tally.watches_drift else None
        watch = RowPolicy(rules.on_bad_rows != "error", seen, _ADVICE)
        with ExitStack() as stack:
            sink = stack.enter_context(self._sink(target, rows, first or 0, written))
            rejects = (
                None
                if rules.rejects is None
                else stack.enter_context(
                    open_rejects(rules.rejects, self._columns, self._keep, self._writing)
                )
            )
            for done in self._fm.run(chunks, sink, self._jobs, watch):
                try:
                    sink.write(
                        done.features,
                        done.chunk.passthrough,
                        done.good if rules.on_bad_rows == "drop" else None,
                    )
                except InvalidValueError as refused:
                    raise done.chunk.located(refused) from refused
                tally.add(done.chunk.rows, done.clipped, len(done.aside), done.outside)
                if rejects is not None:
                    rejects.add(done)
                if told is not None:
                    told(done.chunk.rows)
            tally.check(self._opened.location, first)
            tally.input_sha256 = self._opened.digest() if hashed else None
            self._opened.check_unchanged()
            sink.finish()
        return tally

    @contextmanager
    def _sink(
        self, target: str, rows: int | None, first: int, written: WrittenFile | None
    ) -> Iterator[Writer]:
        fm, writing, dropping = self._fm, self._writing, self._rules.on_bad_rows == "drop"
        prefix = "f" if writing.prefix is None else writing.prefix
        dtype = np.dtype(writing.dtype or fm.dtype)
        rows = None if dropping else rows
        if (
            rows is not None
            and self._format not in ("csv", "jsonl")
            and writing.compression in (None, "none")
        ):
            require_space(target, rows * fm.n_components * dtype.itemsize)
        with open_writer(
            target,
            self._format,
            names=[f"{prefix}{i}" for i in range(fm.n_components)],
            dtype=dtype,
            rows=rows,
            first=first,
            block_rows=fm.chunk_rows,
            passthrough_schema=self._opened.passthrough_schema(self._keep, self._typed)
            if self._keep
            else None,
            layout=writing.layout,
            list_name="features" if writing.prefix is None else writing.prefix,
            compression=writing.compression,
            metadata={"version": __version__, "layout": writing.layout}
            | ({} if fm.digest is None else {"map": fm.digest}),
            clobber=writing.overwrite,
            fsync=writing.fsync,
            nullable=self._rules.on_bad_rows == "null",
            dropping=dropping,
            written=written,
            sweep=writing.sweep,
            guard=writing.guard,
        ) as sink:
            yield sink
