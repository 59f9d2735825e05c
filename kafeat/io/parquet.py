"""Parquet files, read a batch at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.parquet as pq

from kafeat.errors import DataError, KafeatError
from kafeat.io.arrow import PEEK, ArrowSource, fields_from
from kafeat.io.files import digest_of, opened_regular

READ_BUFFER = 1 << 16
"""Column chunks are read through a buffer: a row group is never held whole."""


class ParquetSource(ArrowSource):
    """A Parquet file."""

    def __init__(self, place: str) -> None:
        self.place = place
        opened_regular(place).close()
        with _damage(place):
            self._file = pq.ParquetFile(place, pre_buffer=False, buffer_size=READ_BUFFER)
            self.schema = self._file.schema_arrow
            self.rows = self._file.metadata.num_rows
            self.fields = fields_from(self.schema, self._peek)

    def _peek(self, index: int) -> pa.Array:
        batch = next(self.pieces([index], PEEK), None)
        return pa.array([], self.schema.field(index).type) if batch is None else batch.column(0)

    def pieces(self, indices: list[int], height: int) -> Iterator[pa.RecordBatch]:
        names = [self.schema.field(i).name for i in indices]
        with _damage(self.place):
            # The reader takes names as prefixes of paths, and may hand over more than was asked for.
            for batch in self._file.iter_batches(height, columns=names):
                yield batch.select(names)

    def digest(self) -> str:
        return digest_of(self.place)

    def close(self) -> None:
        self._file.close()


@contextmanager
def _damage(place: str) -> Iterator[None]:
    """Whatever the decoder stumbles over is the file's fault: it is a regular file that could be opened."""
    try:
        yield
    except KafeatError:
        raise
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        what = (str(error).splitlines() or [type(error).__name__])[0]
        raise DataError(f"{place}: expected a sound Parquet file, got: {what}") from error
