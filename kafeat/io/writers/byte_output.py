"""Bytes poured into a file or standard output, packed or not."""

from __future__ import annotations

import io
from contextlib import suppress
from typing import Any

import pyarrow as pa

from kafeat.errors import UsageError
from kafeat.io.storage.files import standard_output, write_full


class ByteOutput(io.RawIOBase):
    """A file that takes all bytes or fails. Once it is deaf it drops them: a packer writes its end even after a
    failure, and complains on stderr if that fails too.
    """

    def __init__(self, place: str, path: str) -> None:
        self._file, self.deaf = standard_output() if place == "-" else io.FileIO(path, "wb"), False

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        if not self.deaf:
            write_full(self._file, data)
        return len(data)

    def close(self) -> None:
        # A packer closes what it writes to: only what is deaf is at its end.
        if self.deaf:
            self._file.close()
            super().close()


class TextOutput:
    """Where the text of a format goes, packed as the suffix or `compression` tells."""

    def __init__(self, place: str, path: str, compression: str | None, format: str) -> None:
        packing = _packing(place, compression, format)
        self._file = ByteOutput(place, path)
        self._packed = (
            pa.CompressedOutputStream(pa.PythonFile(self._file, mode="w"), packing) if packing else None
        )

    def write(self, text: pa.Buffer) -> None:
        """The next piece."""
        (self._file if self._packed is None else self._packed).write(text)

    def end(self) -> None:
        """Write what the packer still holds."""
        if self._packed is not None:
            self._packed.close()

    def close(self) -> None:
        """Let go of the file, at its end or not."""
        self._file.deaf = True
        if self._packed is not None:
            with suppress(pa.ArrowException, OSError):
                self._packed.close()
        self._file.close()


def _packing(place: str, compression: str | None, format: str) -> str | None:
    if compression in (None, "none"):
        lower = place.lower()
        if compression is None and lower.endswith(".gz"):
            return "gzip"
        return "zstd" if compression is None and lower.endswith(".zst") else None
    if compression not in ("gzip", "zstd"):
        raise UsageError(
            f"{place}: expected a compression of none, gzip or zstd for {format}, got {compression!r}"
        )
    return compression
