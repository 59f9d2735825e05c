"""A pool of memory for blocks of rows, which is reused after they are written.

Fresh memory costs as much as computing its content: the system has to clear every page first.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from kafeat.types import Floats, Mask


@dataclass(eq=False)
class Buffer:
    """Memory for many blocks. `take` has handed out its first `used` rows, of which `busy` rows are not yet freed."""

    memory: Floats
    used: int = 0
    busy: int = 0


@dataclass(frozen=True)
class BufferSlice:
    """Rows `first` to `stop` of a buffer."""

    buffer: Buffer
    first: int
    stop: int

    @property
    def block(self) -> Floats:
        return self.buffer.memory[self.first : self.stop]

    def joined(self, following: BufferSlice) -> BufferSlice | None:
        """Return both slices as one if `following` begins at the end of this one."""
        if following.buffer is self.buffer and following.first == self.stop:
            return BufferSlice(self.buffer, self.first, following.stop)
        return None


class BufferPool:
    """Memory for blocks of rows. `take` cuts blocks from buffers of `height` rows; `back` gets them in the same order.

    A block with fewer rows than `block_rows` is the last one, so no full buffer is allocated for it.
    """

    def __init__(
        self, height: int, block_rows: int, width: int, dtype: np.dtype[Any], order: Literal["C", "F"]
    ) -> None:
        self._height, self._block_rows = height, block_rows
        self._width, self._dtype, self._order = width, dtype, order
        self._open = self._new_buffer(0)
        self._idle: list[Buffer] = []
        self._taken: deque[BufferSlice] = deque()

    def _new_buffer(self, rows: int) -> Buffer:
        return Buffer(np.empty((rows, self._width), self._dtype, order=self._order))

    def take(self, rows: int) -> Floats:
        if self._open.used + rows > len(self._open.memory):
            alone = rows != self._block_rows
            self._open = self._idle.pop() if self._idle else self._new_buffer(rows if alone else self._height)
        buffer = self._open
        piece = BufferSlice(buffer, buffer.used, buffer.used + rows)
        buffer.used += rows
        buffer.busy += rows
        self._taken.append(piece)
        return piece.block

    def back(self, block: Floats, good: Mask | None = None) -> BufferSlice:
        """Return the slice of a block from `take`, to be freed after use. With `good`, return a copy of the good rows.

        A block from elsewhere becomes a slice of its own.
        """
        piece = BufferSlice(Buffer(block), 0, len(block))
        # The block is from this pool if address, shape, strides and type are equal.
        if self._taken and block.__array_interface__ == self._taken[0].block.__array_interface__:
            piece = self._taken.popleft()
        if good is None:
            return piece
        rest = np.array(piece.block[good], order=self._order)
        self.free(piece)
        return BufferSlice(Buffer(rest), 0, len(rest))

    def free(self, piece: BufferSlice) -> None:
        """Allow the pool to reuse the memory of a slice."""
        buffer = piece.buffer
        buffer.busy -= piece.stop - piece.first
        if buffer.busy == 0 and buffer.used:
            buffer.used = 0
            if buffer is not self._open:
                self._idle.append(buffer)

    def clear(self) -> None:
        """Release all memory. The pool must not be used afterwards."""
        self._open, self._idle = self._new_buffer(0), []
