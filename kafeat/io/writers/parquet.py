"""Writer of Parquet files: a column for each feature, or one column of lists."""

from __future__ import annotations

import os

import pyarrow as pa
import pyarrow.parquet as pq

from kafeat.errors import UsageError
from kafeat.io.storage.atomic import AtomicFile
from kafeat.io.writers.arrow_columns import features_of, schema_of
from kafeat.io.writers.base import Layout, Writer
from kafeat.io.writers.buffer_pool import BufferPool, BufferSlice
from kafeat.types import Floats, Mask

# Each column costs a fixed time per row group. 64 MiB are 1.3 times as fast as 32, and little slower than 128.
GROUP_BYTES = 64 << 20
# Groups of lists are smaller: one column costs little time, and the writer needs twice the memory of the lists.
LIST_GROUP_BYTES = 32 << 20
# Bytes of a page: large enough that a column of a row group is usually a single page.
PAGE_BYTES = 8 << 20
NULL_LISTS = 25  # the first version of pyarrow that writes null lists of fixed length; 26 also reads them


class ParquetWriter(Writer):
    """A writer of row groups of about 64 MiB (lists: 32). A group consists of whole blocks."""

    def __init__(self, location: str, file: AtomicFile, layout: Layout) -> None:
        super().__init__(location, file, layout)
        lists = layout.list_name is not None
        self.wants = "C" if lists else "F"
        self._schema = schema_of(layout)
        # A group holds the smallest number of whole blocks that reaches its size.
        width, most = len(layout.names), layout.block_rows
        self._full = LIST_GROUP_BYTES if lists else GROUP_BYTES
        height = -(-self._full // max(1, most * width * layout.dtype.itemsize)) * most
        self._pool = BufferPool(height, most, width, layout.dtype, self.wants)
        self._waiting: list[BufferSlice] = []
        self._passthrough: list[pa.Table] = []
        self._rows = self._bytes = 0
        # Dictionaries and statistics of features are useless, and both cost more than writing.
        self._file = pa.OSFile(os.fsencode(file.path), "wb")  # the name may not be UTF-8
        self._writer = pq.ParquetWriter(
            self._file,
            self._schema,
            compression=layout.compression or "none",
            use_dictionary=layout.passthrough_names,
            write_statistics=layout.passthrough_names,
            data_page_size=PAGE_BYTES,
        )

    @classmethod
    def check(cls, location: str, layout: Layout) -> None:
        lists = layout.nullable and layout.list_name is not None
        if lists and int(pa.__version__.partition(".")[0]) < NULL_LISTS:
            raise UsageError(
                f"{location}: --on-bad-rows null: --layout list: expected pyarrow >= {NULL_LISTS}, which can write a "
                f"null list, got {pa.__version__}: pip install --upgrade pyarrow, or use --layout columns"
            )

    def buffer(self, start: int, rows: int) -> Floats:
        return self._pool.take(rows)

    def _write(self, block: Floats, passthrough: pa.Table | None, good: Mask | None) -> None:
        piece = self._pool.back(block, good)
        block = piece.block
        longer = self._waiting[-1].joined(piece) if self._waiting else None
        if longer is None:
            self._waiting.append(piece)
        else:
            self._waiting[-1] = longer
        if passthrough is not None:
            self._passthrough.append(passthrough)
        self._rows += len(block)
        self._bytes += block.nbytes + (0 if passthrough is None else passthrough.nbytes)
        if self._bytes >= self._full:
            self._flush()

    def _flush(self) -> None:
        if self._rows:
            self._writer.write_table(self._group(), row_group_size=self._rows)
        for piece in self._waiting:
            self._pool.free(piece)
        self._waiting, self._passthrough, self._rows, self._bytes = [], [], 0, 0

    def _group(self) -> pa.Table:
        passthrough = pa.concat_tables(self._passthrough).columns if self._passthrough else []
        parts = [features_of(piece.block, self._schema, self.layout) for piece in self._waiting]
        return pa.Table.from_arrays(
            [*passthrough, *map(pa.chunked_array, zip(*parts, strict=True))], schema=self._schema
        )

    def _end(self) -> None:
        self._flush()
        # Release memory for the footer, which has about 2 KB for each column of each group.
        self._pool.clear()
        self._writer.close()
        self._file.close()

    def close(self) -> None:
        # An unfinished writer would write its footer to a closed file when it is garbage collected.
        self._waiting, self._passthrough = [], []
        self._writer.is_open = False
        if not self._file.closed:
            self._file.close()
