"""Cut text into parts while it is read, from its first row to its last, with the threads of this process."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace
from itertools import chain, count, islice

from kafeat.errors import KafeatError
from kafeat.io.readers.base import Chunk
from kafeat.io.storage.atomic import WrittenFile, check_place
from kafeat.io.storage.data_set import Part
from kafeat.io.storage.formats import format_of
from kafeat.io.storage.locations import entry_of, join
from kafeat.jobs.dataset.part import Outcome, failure_outcome, record_of, this_environment
from kafeat.jobs.dataset.request import DatasetPlan, DatasetRequest
from kafeat.jobs.dataset.split import name_of_part
from kafeat.jobs.transform.transform import OpenTransform
from kafeat.model.feature_map import FeatureMap
from kafeat.runtime.pool import Pool


@dataclass(frozen=True)
class TextParts:
    """The parts of one text file, whose number is not known before its end."""

    request: DatasetRequest
    fm: FeatureMap
    plan: DatasetPlan

    def outcomes(self, pool: Pool) -> Generator[Outcome]:
        """Write part after part, unless all of them are up to date. The pool has nothing to do."""
        del pool
        if self.plan.up_to_date:
            return
        request = self.request
        entry = None if request.source == "-" else entry_of(request.source)
        part = Part("", request.source, entry.bytes if entry else 0, entry.stamp if entry else "")
        with request.reading.open(request.source, None if entry is None else entry.stamp) as opened:
            format = format_of(self._name(0))
            writing = replace(request.writing, format=format, overwrite=True, sweep=False)
            stream = OpenTransform(self.fm, opened, format, writing, request.rules, request.engine.jobs)
            for name, start, chunks in self._cut(stream.chunks()):
                yield self._write(replace(part, name=name), stream, chunks, start)

    def _name(self, number: int) -> str:
        return name_of_part(self.request.source, self.request.reading, self.request.writing, number, 0)

    def _cut(self, chunks: Iterator[Chunk]) -> Iterator[tuple[str, int, Iterator[Chunk]]]:
        """Yield name, first row and chunks of each part. A text without rows has one part without rows."""
        height = (self.request.rows_per_file or 0) // self.fm.chunk_rows
        yield self._name(0), 0, islice(chunks, height)
        for number in count(1):
            first = next(chunks, None)
            if first is None:
                return
            yield self._name(number), first.start, chain([first], islice(chunks, height - 1))

    def _write(self, part: Part, stream: OpenTransform, chunks: Iterator[Chunk], start: int) -> Outcome:
        started, written = time.perf_counter(), WrittenFile()
        try:
            place = join(self.request.target, part.name)
            check_place(place, self.plan.previous.may_replace(part.name))
            counts = stream.write_chunks(chunks, place, None, None, start, written)
        except KafeatError as error:
            deque(chunks, maxlen=0)  # skip the other rows of the part; broken text ends here
            return failure_outcome(part.name, str(error), error.exit_code)
        done = counts.result(time.perf_counter() - started, None, written)
        part = replace(part, only=(start, start + done.rows_read))
        return Outcome(record_of(part, done), None, this_environment())
