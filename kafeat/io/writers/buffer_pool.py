"""Memory for blocks of rows that is used again once they are written.

Fresh memory costs as much as computing what goes into it: the system has to clear every page first.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from kafeat.types import Floats, Mask


@dataclass(eq=False)
class Buffer:
    """Memory for many blocks: `used` rows are handed out, `busy` of them are not free yet."""

    memory: Floats
    used: int = 0
    busy: int = 0


@dataclass(frozen=True)
class BufferSlice:
    """Rows `first` to `stop` of an arena."""

    arena: Buffer
    first: int
    stop: int

    @property
    def block(self) -> Floats:
        """The memory of these rows."""
        return self.arena.memory[self.first : self.stop]

    def joined(self, behind: BufferSlice) -> BufferSlice | None:
        """Both as one, if `behind` goes on where this one ends."""
        if behind.arena is self.arena and behind.first == self.stop:
            return BufferSlice(self.arena, self.first, behind.stop)
        return None


class BufferPool:
    """Blocks of rows, cut one behind the other from arenas of `height` rows; they come back in the order taken.

    A block lower than `block_rows` is the last one: there is no arena for it alone.
    """

    def __init__(
        self, height: int, block_rows: int, width: int, dtype: np.dtype[Any], order: Literal["C", "F"]
    ) -> None:
        self._height, self._block_rows = height, block_rows
        self._width, self._dtype, self._order = width, dtype, order
        self._open = self._arena(0)
        self._idle: list[Buffer] = []
        self._taken: deque[BufferSlice] = deque()

    def _arena(self, rows: int) -> Buffer:
        return Buffer(np.empty((rows, self._width), self._dtype, order=self._order))

    def take(self, rows: int) -> Floats:
        """Memory for so many rows."""
        if self._open.used + rows > len(self._open.memory):
            alone = rows != self._block_rows
            self._open = self._idle.pop() if self._idle else self._arena(rows if alone else self._height)
        arena = self._open
        piece = BufferSlice(arena, arena.used, arena.used + rows)
        arena.used += rows
        arena.busy += rows
        self._taken.append(piece)
        return piece.block

    def back(self, block: Floats, good: Mask | None = None) -> BufferSlice:
        """The piece of a block, or a copy of its good rows. It may be memory that was never taken here."""
        piece = BufferSlice(Buffer(block), 0, len(block))
        if self._taken and _same(block, self._taken[0].block):
            piece = self._taken.popleft()
        if good is None:
            return piece
        rest = np.array(piece.block[good], order=self._order)
        self.free(piece)
        return BufferSlice(Buffer(rest), 0, len(rest))

    def free(self, piece: BufferSlice) -> None:
        """Nobody reads the piece any more."""
        arena = piece.arena
        arena.busy -= piece.stop - piece.first
        if arena.busy == 0 and arena.used:
            arena.used = 0
            if arena is not self._open:
                self._idle.append(arena)

    def clear(self) -> None:
        """Give all memory back, as nothing more is taken."""
        self._open, self._idle = self._arena(0), []


def _same(block: Floats, taken: Floats) -> bool:
    return (
        block.shape == taken.shape
        and block.strides == taken.strides
        and block.dtype == taken.dtype
        and bool(block.ctypes.data == taken.ctypes.data)
    )
