"""Transform a file to another file, chunk by chunk."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import IO

from kafeat._version import __version__
from kafeat.errors import InvalidValueError
from kafeat.io.columns.fields import as_spelled
from kafeat.io.columns.selection import match
from kafeat.io.data_set import Part
from kafeat.io.formats import Format, format_of
from kafeat.io.options import InputOptions, OutputOptions
from kafeat.io.readers.base import Chunk, Reader
from kafeat.io.storage.atomic import atomic, beside, require_space
from kafeat.io.storage.base import Location, StandardStream
from kafeat.io.writers.base import Layout, Writer
from kafeat.io.writers.open import checked, open_writer
from kafeat.jobs.transform.options import STRICT, RowOptions
from kafeat.jobs.transform.outputs import outputs_of
from kafeat.jobs.transform.result import Rejects, TransformResult
from kafeat.model.feature_map import FeatureMap
from kafeat.model.shared import SharedMap
from kafeat.runtime.run import RowPolicy

Progress = Callable[[int], None]
Announce = Callable[[int | None], Progress]

_DROP, _NULL = "; --on-bad-rows drop leaves such rows out", ", null marks them"


@dataclass(frozen=True)
class TransformJob:
    """A map, the options to read its input and write its output, and rules for bad rows and drift.

    It can be sent to other processes if its model can.
    """

    model: FeatureMap | SharedMap
    reading: InputOptions = InputOptions()
    writing: OutputOptions = OutputOptions()
    rules: RowOptions = STRICT
    jobs: int | None = None

    @property
    def fm(self) -> FeatureMap:
        """The map."""
        return self.model if isinstance(self.model, FeatureMap) else self.model.map

    @contextmanager
    def opened(self, source: Location | Part, seen: Sequence[str] | None = None) -> Iterator[Reader]:
        """Open an input, or the rows of a part. `InputOptions.open` explains `seen`, and how text is read."""
        with self.reading.open(source, seen=seen, fitted=self.fm.columns.file_dialect) as opened:
            only = source.only if isinstance(source, Part) else None
            yield opened if only is None else opened.select_rows(*only)


def transform_file(
    job: TransformJob,
    source: Location | Part,
    target: Location,
    *,
    announce: Announce | None = None,
    hashed: bool = False,
) -> TransformResult:
    """Write the features of every row of `source` to `target`, in order. The file is written completely or not at all.

    `announce(rows)` is called with the number of rows (None if unknown) and returns a callback for the rows of each
    finished chunk. With `hashed`, the result has the SHA-256 of the output and, if `source` is a whole file, of it.
    """
    format = format_of(target, job.writing.output_format)
    started = time.perf_counter()
    job.rules.check(job.fm)
    seen = _columns_to_see(job, source, target, format) if isinstance(source, Location) else None
    first = source.only[0] if isinstance(source, Part) and source.only is not None else None
    with job.opened(source, seen) as opened:
        stream = OpenTransform(job, opened, target)
        progress = announce(opened.rows) if announce else None
        done = stream.write_chunks(stream.chunks(), target, opened.rows, progress, first, hashed=hashed)
    done.seconds = time.perf_counter() - started
    return done


def _columns_to_see(
    job: TransformJob, source: Location, target: Location, format: Format
) -> Sequence[str] | None:
    """Return the columns of which a value must be read before rows of a pipe are passed on; None: read a whole block.

    A pipe must give the same output as a file, whose first block is read before types are guessed. The model knows how
    to read its columns, but types of passthrough columns, and whether columns fit the options, depend on values.
    """
    reading, writing = job.reading, job.writing
    flows = isinstance(target, StandardStream) and format.text and writing.compression in (None, "none")
    told = reading.decimal is not None or reading.date_format
    if not flows or told or job.fm.columns.positional != reading.no_header:
        return None
    if format_of(source, reading.input_format, "--input-format").delimited and not format.typed:
        return ()
    return writing.keep


class OpenTransform:
    """A transform of an open input to one output, or in turn to several outputs of one format."""

    def __init__(self, job: TransformJob, opened: Reader, target: Location) -> None:
        writing = job.writing
        format = format_of(target, writing.output_format)
        self._fm, self._opened, self._format = job.fm, opened, format
        self._writing, self._rules, self._jobs = writing, job.rules, job.jobs
        every = [field.name for field in opened.fields]
        keep = every if writing.keep is None else as_spelled(opened, writing.keep)
        self._columns = match(opened, job.fm.columns, () if writing.keep is None else keep, "--keep")
        self._keep = keep
        self._outputs = outputs_of(
            job.fm, writing, sparse=format.sparse, only_numbers=format.passthrough != "columns"
        )

    def chunks(self) -> Iterator[Chunk]:
        """Yield the rows of the input in chunks of the map's height."""
        return self._opened.chunks(
            self._columns,
            self._keep,
            self._fm.chunk_rows,
            typed_passthrough=self._format.typed,
            set_aside=self._rules.on_bad_rows != "error",
        )

    def write_chunks(
        self,
        chunks: Iterator[Chunk],
        target: Location,
        rows: int | None,
        progress: Progress | None = None,
        first: int | None = None,
        *,
        hashed: bool = False,
    ) -> TransformResult:
        """Write the features of these chunks, which hold `rows` rows (None: unknown) from row `first` on.

        `first` is None if the chunks are the whole input. An input that has changed meanwhile is refused. With
        `hashed`, the result has the SHA-256 of the output and, if `first` is None, of the input.
        """
        result = TransformResult(self._fm, self._columns, self._rules, self._outputs)
        column_ranges = self._fm.column_ranges if result.watches_drift else None
        advice = _DROP if self._format.sparse else _DROP + _NULL
        policy = RowPolicy(
            self._rules.on_bad_rows != "error", column_ranges, result.tests_mean, advice, result.categories
        )
        with self._open_writer(target, rows, first or 0, hashed) as writer:
            with self._open_rejects() as rejects_file:
                rejects = None if rejects_file is None else Rejects(rejects_file, self._columns, self._keep)
                for done in self._outputs.run(chunks, writer, self._jobs, policy):
                    try:
                        self._outputs.write(done, writer)
                    except InvalidValueError as refused:
                        raise done.chunk.located(refused) from refused
                    result.add(done)
                    if rejects is not None:
                        rejects.add(done)
                    if progress is not None:
                        progress(done.chunk.rows)
                result.input_sha256 = self._opened.digest() if hashed and first is None else None
                self._opened.check_unchanged()
            result.check(self._opened.location, first)  # raises an error only after all rejects are written
            writer.finish()
        result.written = writer.file
        return result

    def check(self, target: Location) -> None:
        """Refuse data that the format of an output cannot hold. The output is not opened for this check."""
        checked(target, self._format, self._layout(self._opened.rows, 0))

    def _open_rejects(self) -> AbstractContextManager[IO[str] | None]:
        """Return a file that appears when the block ends without an error. Return None if bad rows are not listed."""
        place, writing = self._rules.rejects, self._writing
        if place is None:
            return nullcontext()
        return beside(place, writing.fsync, sweep=writing.sweep, guard=writing.guard)

    def _open_writer(
        self, target: Location, rows: int | None, first: int, hashed: bool
    ) -> AbstractContextManager[Writer]:
        layout = self._layout(rows, first)
        varies = self._format.text or self._format.sparse or layout.compression not in (None, "none")
        if layout.rows is not None and not varies:
            require_space(target, layout.rows * self._outputs.width * self._outputs.dtype.itemsize)
        writing = self._writing
        file = partial(
            atomic, clobber=writing.overwrite, fsync=writing.fsync, hashed=hashed, sweep=writing.sweep,
            guard=writing.guard,
        )  # fmt: skip
        return open_writer(target, self._format, layout, file)

    def _layout(self, rows: int | None, first: int) -> Layout:
        outputs, dropping = self._outputs, self._rules.on_bad_rows == "drop"
        passthrough = self._opened.passthrough_schema(self._keep, self._format.typed) if self._keep else None
        if passthrough is not None:
            from kafeat.io.writers.passthrough import refuse_nested  # it imports pyarrow, which is slow

            refuse_nested(self._opened.location, passthrough)
        return Layout(
            outputs.names,
            outputs.dtype,
            None if dropping and rows else rows,
            first,
            self._fm.chunk_rows,
            passthrough if outputs.classes is None else outputs.classes.schema(passthrough),
            outputs.list_name if self._writing.layout == "list" else None,
            self._writing.compression,
            {"version": __version__, "layout": self._writing.layout, **outputs.notes},
            nullable=self._rules.on_bad_rows == "null",
            dropping=dropping,
        )
