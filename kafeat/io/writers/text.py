"""Write bytes to a file or standard output, and text, compressed or not."""

from __future__ import annotations

import io
from abc import abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kafeat.io.formats import PACKINGS
from kafeat.io.storage.atomic import AtomicFile
from kafeat.io.storage.files import standard_stream, write_full
from kafeat.io.writers.arrow_columns import columns_of, nulls_of
from kafeat.io.writers.base import Layout, Writer
from kafeat.types import Floats, Mask

ROWS = 1024
"""Rows that are formatted at a time."""


class ByteOutput(io.RawIOBase):
    """A file that writes all bytes or fails.

    Once `discarding` is set, it ignores further bytes: a compressor writes its end even after a failure, and prints an
    error if that fails, too.
    """

    def __init__(self, path: str) -> None:
        self._file, self.discarding = standard_stream(1) if path == "-" else io.FileIO(path, "wb"), False

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        if not self.discarding:
            write_full(self._file, data)
        return len(data)

    def close(self) -> None:
        # A compressor closes its file too early. Really close it only when it is discarding.
        if self.discarding:
            self._file.close()
            super().close()


class TextWriter(Writer):
    """A writer of text, compressed according to the suffix or the option. Subclasses `put` the text of rows."""

    def __init__(self, location: str, file: AtomicFile, layout: Layout) -> None:
        super().__init__(location, file, layout)
        suffix = f".{location.lower().rpartition('.')[2]}"
        packing = layout.options.compression or PACKINGS.get(suffix, "none")
        self._file = ByteOutput(file.path)
        self._packed = (
            None
            if packing == "none"
            else pa.CompressedOutputStream(pa.PythonFile(self._file, mode="w"), packing)
        )

    def put(self, text: pa.Buffer) -> None:
        """Write the next piece of text."""
        (self._file if self._packed is None else self._packed).write(text)

    def _end(self) -> None:
        if self._packed is not None:
            self._packed.close()

    def close(self) -> None:
        self._file.discarding = True
        if self._packed is not None:
            with suppress(pa.ArrowException, OSError):
                self._packed.close()
        self._file.close()


class LineWriter(TextWriter):
    """A writer of one line for each row, which is made of the columns of some rows at a time."""

    wants = "F"

    @abstractmethod
    def _lines(self, passthrough: Sequence[pa.Array], features: Sequence[pa.Array]) -> pa.Array:
        """Return the lines of some rows, each with its end."""

    def _write(self, block: Floats, passthrough: pa.Table | None, good: Mask | None) -> None:
        block = block if good is None else block[good]
        features = columns_of(block, nulls_of(block, self.layout))
        kept = [] if passthrough is None else passthrough.columns
        for start in range(0, len(block), ROWS):
            lines = self._lines(
                [_one_array(column.slice(start, ROWS)) for column in kept],
                [column.slice(start, ROWS) for column in features],
            )
            self.put(memory_of(lines))


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)


def memory_of(lines: pa.Array) -> pa.Buffer:
    """Return the memory of an array of lines, which is their text."""
    return lines.buffers()[2].slice(0, pc.sum(pc.binary_length(lines)).as_py())
