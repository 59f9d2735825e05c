"""Parquet files, read a batch at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from kafeat.errors import DataError, KafeatError
from kafeat.io.arrow import PEEK, ArrowSource, fields_from
from kafeat.io.files import digest_of, opened_regular
from kafeat.types import Array

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
        groups, skip = self._groups()
        left = self.rows or 0
        with _damage(self.place):
            # The reader takes names as prefixes of paths, and may hand over more than was asked for.
            for batch in self._file.iter_batches(height, row_groups=groups, columns=names):
                wanted = batch.select(names).slice(skip, left)
                skip = max(0, skip - batch.num_rows)
                left -= wanted.num_rows
                yield wanted

    def only(self, first: int, behind: int) -> None:
        self.first, self.rows = first, behind - first

    def blocks(self) -> Array:
        groups = self._file.metadata
        heights = [groups.row_group(i).num_rows for i in range(groups.num_row_groups)]
        return np.cumsum([0, *heights])

    def _groups(self) -> tuple[list[int], int]:
        """The row groups that hold the rows that are asked for, and how many rows come before these."""
        groups: list[int] = []
        skip = start = 0
        for group in range(self._file.metadata.num_row_groups):
            stop = start + self._file.metadata.row_group(group).num_rows
            if start < self.first + (self.rows or 0) and stop > self.first:
                if not groups:
                    skip = self.first - start
                groups.append(group)
            start = stop
        return groups, skip

    @property
    def notes(self) -> Mapping[str, str]:
        try:
            found = json.loads((self.schema.metadata or {}).get(b"kafeat", b"{}"))
        except ValueError:
            return {}
        return {str(key): str(value) for key, value in found.items()} if isinstance(found, dict) else {}

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
