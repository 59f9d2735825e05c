"""How work in a process is told to end, and waited for until it has cleaned up."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PATIENCE_SECONDS = 10.0
"""How long work that was told to end is waited for."""


class Stop:
    """Tells work to end. A copy that travels to another process is the one of that process."""

    def __init__(self) -> None:
        self._asked = threading.Event()
        self._changed = threading.Condition()
        self._at_work = 0

    def __reduce__(self) -> tuple[Callable[[], Stop], tuple[()]]:
        return of_this_process, ()

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Around the work."""
        with self._changed:
            self._at_work += 1
        try:
            yield
        finally:
            with self._changed:
                self._at_work -= 1
                self._changed.notify_all()

    def check(self) -> None:
        """Called by the work, now and then: raises `InterruptedError` when it is to end."""
        if self._asked.is_set():
            raise InterruptedError("the run has ended")

    def ask(self, patience: float = PATIENCE_SECONDS) -> None:
        """End all of it; returns when it has ended, or after so many seconds."""
        self._asked.set()
        with self._changed:
            self._changed.wait_for(lambda: not self._at_work, patience)


_of_this_process = Stop()


def of_this_process() -> Stop:
    """The one that work meets which came from another process."""
    return _of_this_process
