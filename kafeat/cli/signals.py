"""SIGINT and SIGTERM as exceptions, so that handlers remove half-written files."""

from __future__ import annotations

import signal
from types import FrameType
from typing import NoReturn


class Terminated(BaseException):
    """SIGTERM."""


class Interrupted(BaseException):
    """SIGINT. Not a `KeyboardInterrupt`, for which click writes an empty line first."""


_received: int | None = None


def listen() -> None:
    """Make signals raise `Interrupted` or `Terminated` in the main thread."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _raise)


def check() -> None:
    """Raise for an earlier signal: Python drops exceptions that a signal raises inside a destructor."""
    if _received is not None:
        _raise(_received, None)


def forget() -> None:
    """Let the command go on after a signal that it has handled."""
    global _received
    _received = None


def _raise(number: int, _: FrameType | None) -> NoReturn:
    global _received
    _received = number
    raise Interrupted if number == signal.SIGINT else Terminated
