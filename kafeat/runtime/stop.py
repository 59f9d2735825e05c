"""Stop the work of a process, and wait until it has cleaned up."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PATIENCE_SECONDS = 10.0
"""Seconds to wait for stopped work."""


class Stop:
    """A flag that stops work. Unpickled in another process, it is the flag of that process."""

    def __init__(self) -> None:
        self._asked = threading.Event()
        self._changed = threading.Condition()
        self._at_work = 0

    def __reduce__(self) -> tuple[Callable[[], Stop], tuple[()]]:
        return of_this_process, ()

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Count the work in the block, so that `ask` waits for its end."""
        with self._changed:
            self._at_work += 1
        try:
            yield
        finally:
            with self._changed:
                self._at_work -= 1
                self._changed.notify_all()

    def check(self) -> None:
        """Raise `InterruptedError` if the work has to end; the work calls this now and then."""
        if self._asked.is_set():
            raise InterruptedError("the run has ended")

    def ask(self, patience: float = PATIENCE_SECONDS) -> None:
        """Stop all work, and return when it has ended, or after `patience` seconds."""
        self._asked.set()
        with self._changed:
            self._changed.wait_for(lambda: not self._at_work, patience)


_of_this_process = Stop()


def of_this_process() -> Stop:
    """Return the flag of this process, for work that was sent by another one."""
    return _of_this_process
