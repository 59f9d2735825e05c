"""Write bytes to a file or standard output, compressed or not."""

from __future__ import annotations

import io
from contextlib import suppress
from typing import Any

import pyarrow as pa

from kafeat.errors import UsageError
from kafeat.io.storage.files import standard_output, write_full


class ByteOutput(io.RawIOBase):
    """A file that writes all bytes or fails.

    Once `discarding` is set, it ignores further bytes: a compressor writes its end even after a failure, and prints an
    error if that fails, too.
    """

    def __init__(self, location: str, path: str) -> None:
        self._file, self.discarding = standard_output() if location == "-" else io.FileIO(path, "wb"), False

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


class TextOutput:
    """The output of a text format, compressed according to the suffix or `compression`."""

    def __init__(self, location: str, path: str, compression: str | None, format: str) -> None:
        packing = _packing(location, compression, format)
        self._file = ByteOutput(location, path)
        self._packed = (
            pa.CompressedOutputStream(pa.PythonFile(self._file, mode="w"), packing) if packing else None
        )

    def write(self, text: pa.Buffer) -> None:
        """Write the next piece."""
        (self._file if self._packed is None else self._packed).write(text)

    def end(self) -> None:
        """Write the rest of the compressor."""
        if self._packed is not None:
            self._packed.close()

    def close(self) -> None:
        """Close the file, finished or not."""
        self._file.discarding = True
        if self._packed is not None:
            with suppress(pa.ArrowException, OSError):
                self._packed.close()
        self._file.close()


def _packing(location: str, compression: str | None, format: str) -> str | None:
    if compression in (None, "none"):
        lower = location.lower()
        if compression is None and lower.endswith(".gz"):
            return "gzip"
        return "zstd" if compression is None and lower.endswith(".zst") else None
    if compression not in ("gzip", "zstd"):
        raise UsageError(
            f"{location}: expected a compression of none, gzip or zstd for {format}, got {compression!r}"
        )
    return compression
