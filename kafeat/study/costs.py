"""One stopwatch for reading, making, learning and predicting."""

from __future__ import annotations

import time
from collections.abc import Callable


def seconds_of(work: Callable[[], object]) -> float:
    """Do the work once, and return its seconds."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started
