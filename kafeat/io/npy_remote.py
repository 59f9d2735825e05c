"""NPY objects: the header as it comes, and ranges of bytes."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from kafeat.errors import DataError
from kafeat.types import Array

# More than any header of numbers; the length that an object claims is not believed.
_HEAD = 1 << 16


class RemoteNpy:
    """An NPY object that is read at random. Raises what NumPy says of a header that is none."""

    def __init__(self, place: str) -> None:
        from kafeat.io.remote import opened_at_random, unreachable

        self._place, self._refused = place, unreachable
        self._file = opened_at_random(place)
        size = int(self._file.size())
        head = io.BytesIO(self._at(0, min(_HEAD, size)))
        version = np.lib.format.read_magic(head)
        if version not in ((1, 0), (2, 0)):
            raise ValueError(f"format version {version}, expected 1.0 or 2.0")
        read = (
            np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        )
        self.shape, by_columns, self.dtype = read(head)
        if self.dtype.hasobject:
            raise ValueError("Python objects")
        self.offset, self.by_rows = head.tell(), not by_columns
        needed = self.offset + int(np.prod([int(n) for n in self.shape], dtype=object)) * self.dtype.itemsize
        if size < needed:
            raise ValueError(f"{size:,} bytes, and a header that claims {needed:,}")

    def fill(self, block: Array, at: int) -> None:
        """Fill a flat array of bytes from there on."""
        data = self._at(at, len(block))
        if len(data) < len(block):
            raise DataError(
                f"{self._place}: expected {len(block):,} bytes at byte {at:,}, got {len(data):,}: "
                "it was cut short while it was read"
            )
        block[:] = np.frombuffer(data, np.uint8)

    def _at(self, at: int, n: int) -> Any:
        try:
            return self._file.read_at(n, at)
        except OSError as error:
            raise self._refused(self._place, error) from error

    def close(self) -> None:
        """Let it go."""
        self._file.close()
