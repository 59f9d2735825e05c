"""NPY files and objects, read a chunk at a time.

They are read and not mapped: a file that is cut short or a disk that fails while it is mapped kills the process
without a word.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from kafeat.errors import DataError, KafeatError, first_line
from kafeat.io.array import ArraySource
from kafeat.io.files import digest_of, opened_regular, refused
from kafeat.io.npy_remote import RemoteNpy
from kafeat.io.uri import is_remote, local_path, shown
from kafeat.types import Array

_BLOCK = 256
"""Rows that are read at once where only some are wanted."""


class NpySource(ArraySource):
    """The array of an NPY file or object."""

    seekable = True

    def __init__(self, place: str) -> None:
        self._name = place
        if is_remote(place):
            with _no_array(shown(place)):
                there = RemoteNpy(place)
            self._offset, self._by_rows = there.offset, there.by_rows
            super().__init__(shown(place), there.shape, there.dtype, self._rows)
            self._file: RemoteNpy | io.FileIO = there
            return
        opened_regular(place).close()
        mapped = _mapped(place)
        self._offset, self._by_rows = int(mapped.offset), bool(mapped.flags.c_contiguous)  # type: ignore[attr-defined]
        super().__init__(place, mapped.shape, mapped.dtype, self._rows)
        self._file = opened_regular(place)

    def _rows(self, start: int, stop: int) -> Array:
        rows, width, size = stop - start, len(self.fields), self._dtype.itemsize
        if self._by_rows:
            block = np.empty((rows, width), self._dtype)
            self._fill(block, self._offset + start * width * size)
            return block
        columns = np.empty((width, rows), self._dtype)
        for j, column in enumerate(columns):
            self._fill(column, self._offset + (j * self._n_rows + start) * size)
        return columns.T

    def _fill(self, block: Array, at: int) -> None:
        rest = block.reshape(-1).view(np.uint8)
        if isinstance(self._file, RemoteNpy):
            self._file.fill(rest, at)
            return
        while len(rest):
            try:
                done = os.preadv(self._file.fileno(), [rest.data], at)
            except OSError as error:
                raise refused(self.place, error) from error
            if not done:
                raise DataError(
                    f"{self.place}: expected {len(rest):,} more bytes at byte {at:,}, got the end of the file: "
                    "it was cut short while it was read"
                )
            rest, at = rest[done:], at + done

    def blocks(self) -> Array:
        return np.append(np.arange(0, self._n_rows, _BLOCK), self._n_rows)

    def digest(self) -> str:
        return digest_of(self._name)

    def close(self) -> None:
        self._file.close()


def _mapped(place: str) -> Array:
    """The array behind the header."""
    with _no_array(place):
        array: np.memmap[Any, Any] = np.lib.format.open_memmap(local_path(place), mode="r")
    return array


@contextmanager
def _no_array(place: str) -> Iterator[None]:
    """A header may be a lie, and NumPy says so in many ways."""
    try:
        with np.errstate(all="ignore"):
            yield
    except KafeatError:
        raise
    except OSError as error:
        raise refused(place, error) from error
    except Exception as error:  # the header is a stranger's, and NumPy reads it with Python's own tools
        raise DataError(f"{place}: expected an NPY file of numbers, got {first_line(error)}") from error
