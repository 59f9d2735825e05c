"""Writer of Arrow IPC: files, and streams to pipes and standard output."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from kafeat.io.storage.atomic import AtomicFile
from kafeat.io.writers.arrow_columns import features_of, schema_of, shared
from kafeat.io.writers.base import Layout, Writer
from kafeat.io.writers.buffer_pool import BufferPool
from kafeat.io.writers.text import ByteOutput
from kafeat.types import Floats, Mask


class ArrowWriter(Writer):
    """A writer of one record batch for each block of rows."""

    def __init__(self, location: str, file: AtomicFile, layout: Layout) -> None:
        super().__init__(location, file, layout)
        compression = layout.compression or "none"
        self.wants = "F" if layout.list_name is None else "C"
        self._schema = schema_of(layout)
        most = layout.block_rows
        self._pool = BufferPool(most, most, len(layout.names), layout.dtype, self.wants)
        self._output = ByteOutput(file.path)
        # Without a buffer, every number in the header of a batch would be a separate write.
        self._file = pa.BufferedOutputStream(pa.PythonFile(self._output, mode="w"), 1 << 16)
        options = pa.ipc.IpcWriteOptions(compression=None if compression == "none" else compression)
        new = (
            pa.ipc.new_file
            if file.regular and not location.lower().endswith(".arrows")
            else pa.ipc.new_stream
        )
        self._writer = new(self._file, self._schema, options=options)

    def buffer(self, start: int, rows: int) -> Floats:
        return self._pool.take(rows)

    def _write(self, block: Floats, passthrough: pa.Table | None, good: Mask | None) -> None:
        piece = self._pool.back(block, good)
        block = piece.block
        if len(block):
            columns = [] if passthrough is None else [_values(column) for column in passthrough.columns]
            columns += features_of(block, self._schema, self.layout, apart=True)
            self._writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=self._schema))
            # The reader of a pipe can then use this batch at once.
            self._file.flush()
        self._pool.free(piece)

    def _end(self) -> None:
        self._writer.close()
        self._file.close()

    def close(self) -> None:
        self._output.discarding = True
        self._output.close()


def _values(column: pa.ChunkedArray) -> pa.Array:
    # Copy slices: Arrow IPC would write the memory behind a slice as padding, and equal runs would differ.
    whole = column.take(shared(np.arange(len(column)))).combine_chunks()
    return whole if isinstance(whole, pa.Array) else pa.concat_arrays(whole.chunks)
