"""Who follows a fit while it goes on: the command line shows what it hears, Python makes warnings of some of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

Say = Callable[[str], None]


def _ignore(_: object) -> None:
    """Nobody listens."""


@dataclass(frozen=True)
class Listener:
    """What is told of a fit, each of it to a function of its own.

    `rows`: how many more rows have been read. `phase`: what is done now. `inform`: a line about the columns. `warn`:
    what may not be meant, though nothing is wrong with it.
    """

    rows: Callable[[int], None] = _ignore
    phase: Say = _ignore
    inform: Say = _ignore
    warn: Say = _ignore

    def once(self) -> Listener:
        """The same for several fits, of which each line and each warning is told once."""
        return replace(self, inform=_new(self.inform), warn=_new(self.warn))


SILENT = Listener()


def _new(say: Say) -> Say:
    told: set[str] = set()

    def say_new(text: str) -> None:
        if text not in told:
            told.add(text)
            say(text)

    return say_new
