"""Inputs of learners whose costs are counted: the raw columns and the features of a map."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from kafeat.io.readers.base import Chunk
from kafeat.jobs.fit.map_on_data import MapOnData
from kafeat.study.costs import timed
from kafeat.study.learners import Inputs
from kafeat.types import Array, Floats, Mask


class TimedInputs(Inputs):
    """Inputs that count the seconds of reading and of making features, which are no part of learning.

    Attributes:
        reading: All seconds of reading so far.
        making: All seconds of making so far.
        last_making: Those of the last pass over rows.
    """

    def __init__(
        self,
        width: int,
        read: Callable[[Mask], Iterator[tuple[Array, Chunk]]],
        make: Callable[[Chunk], Floats],
        standardize: bool = False,
    ) -> None:
        super().__init__(width, self._timed, standardize)
        self._read, self._make = read, make
        self.reading = self.making = self.last_making = 0.0

    @property
    def seconds(self) -> float:
        """All seconds of reading and making so far."""
        return self.reading + self.making

    def _timed(self, rows: Mask) -> Iterator[tuple[Array, Floats]]:
        pieces, before = self._read(rows), self.making
        while True:
            piece, seconds = timed(partial(next, pieces, None))
            self.reading += seconds
            if piece is None:
                self.last_making = self.making - before
                return
            numbers, chunk = piece
            Z, seconds = timed(partial(self._make, chunk))
            self.making += seconds
            yield numbers, Z


def raw_of(subject: MapOnData) -> TimedInputs:
    """Return the columns that a map reads."""
    return TimedInputs(subject.raw_width, subject.chunks, subject.raw, standardize=True)


def features_of(subject: MapOnData) -> TimedInputs:
    """Return the features of a map."""
    return TimedInputs(subject.map.n_components, subject.chunks, subject.transform)
