"""Parquet files and objects, read a batch at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.parquet as pq

from kafeat.errors import DataError, KafeatError
from kafeat.io.arrow import PEEK, ArrowSource, fields_from
from kafeat.io.files import digest_of, opened_regular
from kafeat.io.uri import is_remote, local_path, shown

READ_BUFFER = 1 << 16
"""Column chunks are read through a buffer: a row group is never held whole."""


class ParquetSource(ArrowSource):
    """A Parquet file or object."""

    def __init__(self, place: str) -> None:
        self._name, self.place, self._remote = place, shown(place), is_remote(place)
        if not self._remote:
            opened_regular(place).close()
        with _damage(self.place):
            self._file = _opened(place)
            self.schema = self._file.schema_arrow
            self.rows = self._file.metadata.num_rows
            self.fields = fields_from(self.schema, self._peek)

    def _peek(self, index: int) -> pa.Array:
        batch = next(self.pieces([index], PEEK), None)
        return pa.array([], self.schema.field(index).type) if batch is None else batch.column(0)

    def pieces(self, indices: list[int], height: int) -> Iterator[pa.RecordBatch]:
        names = [self.schema.field(i).name for i in indices]
        # What is fetched before it is asked for is kept to the end of the call: a row group at a time bounds it.
        parts = [[group] for group in range(self._file.num_row_groups)] if self._remote else [None]
        with _damage(self.place):
            for part in parts:
                # The reader takes names as prefixes of paths, and may hand over more than was asked for.
                for batch in self._file.iter_batches(height, part, names):
                    yield batch.select(names)

    @property
    def notes(self) -> Mapping[str, str]:
        try:
            found = json.loads((self.schema.metadata or {}).get(b"kafeat", b"{}"))
        except ValueError:
            return {}
        return {str(key): str(value) for key, value in found.items()} if isinstance(found, dict) else {}

    def digest(self) -> str:
        return digest_of(self._name)

    def close(self) -> None:
        self._file.close(force=True)


def _opened(place: str) -> pq.ParquetFile:
    if not is_remote(place):
        return pq.ParquetFile(local_path(place), pre_buffer=False, buffer_size=READ_BUFFER)
    from kafeat.io.remote import opened_at_random

    # Over a network the ranges of all columns of a row group are fetched at once, near ones as one.
    return pq.ParquetFile(opened_at_random(place), pre_buffer=True)


@contextmanager
def _damage(place: str) -> Iterator[None]:
    """Whatever the decoder stumbles over is the file's fault, as it could be opened; unless its store fails."""
    try:
        yield
    except KafeatError:
        raise
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        if isinstance(error, OSError) and "://" in place:
            from kafeat.io.remote import is_of_transport, unreachable

            if is_of_transport(error):
                raise unreachable(place, error) from error
        what = (str(error).splitlines() or [type(error).__name__])[0]
        raise DataError(f"{place}: expected a sound Parquet file, got: {what}") from error
