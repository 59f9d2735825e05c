"""NPY files, mapped into memory a chunk at a time."""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np

from kafeat.errors import DataError
from kafeat.io.array import ArraySource
from kafeat.io.files import digest_of, opened_regular
from kafeat.types import Array


class NpySource(ArraySource):
    """The array of an NPY file."""

    def __init__(self, place: str) -> None:
        opened_regular(place).close()
        whole = _mapped(place)
        self._whole = whole
        self._offset, self._by_rows = int(whole.offset), bool(whole.flags.c_contiguous)  # type: ignore[attr-defined]
        super().__init__(place, whole.shape, whole.dtype, self._rows)
        self._file = opened_regular(place)

    def _rows(self, start: int, stop: int) -> Array:
        """A map of its own for every chunk: pages of one large map would count as memory in use."""
        width = len(self.fields)
        size = (stop - start) * width * self._dtype.itemsize
        if not (self._by_rows and size):
            return self._whole[start:stop]
        first = self._offset + start * width * self._dtype.itemsize
        page = first - first % mmap.ALLOCATIONGRANULARITY
        window = mmap.mmap(self._file.fileno(), first - page + size, access=mmap.ACCESS_READ, offset=page)
        flat: Array = np.frombuffer(window, self._dtype, (stop - start) * width, first - page)
        return flat.reshape(stop - start, width)

    def digest(self) -> str:
        return digest_of(self.place)

    def close(self) -> None:
        self._file.close()


def _mapped(place: str) -> Array:
    """The array behind the header, which may be a lie: NumPy says so in many ways."""
    try:
        with np.errstate(all="ignore"):
            array: np.memmap[Any, Any] = np.lib.format.open_memmap(place, mode="r")
    except (ValueError, TypeError, KeyError, EOFError, SyntaxError, OverflowError, MemoryError) as error:
        raise DataError(f"{place}: expected an NPY file of numbers, got {_first_line(error)}") from error
    return array


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
