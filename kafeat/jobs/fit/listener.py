"""Callbacks for the progress of a fit: the command line shows them, and Python turns some into warnings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

Say = Callable[[str], None]


def _ignore(_: object) -> None:
    """Do nothing."""


@dataclass(frozen=True)
class Listener:
    """Callbacks for the progress of a fit.

    Attributes:
        rows: Called with the number of rows that were read since the last call.
        phase: Called with the name of the current phase.
        inform: Called with a line about the columns.
        warn: Called with a sentence about input that is valid but may be a mistake.
    """

    rows: Callable[[int], None] = _ignore
    phase: Say = _ignore
    inform: Say = _ignore
    warn: Say = _ignore

    def once(self) -> Listener:
        """Return a listener for several fits that passes each line and each warning on only once."""
        return replace(self, inform=_only_new(self.inform), warn=_only_new(self.warn))


SILENT = Listener()


def _only_new(say: Say) -> Say:
    said: set[str] = set()

    def say_new(text: str) -> None:
        if text not in said:
            said.add(text)
            say(text)

    return say_new
