"""One stopwatch for reading, making, learning and predicting."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def timed(work: Callable[[], T], apart: Callable[[], float] = lambda: 0.0) -> tuple[T, float]:
    """Do the work once; return its result and its seconds, without those that `apart` counts meanwhile."""
    before, started = apart(), time.perf_counter()
    result = work()
    return result, time.perf_counter() - started - (apart() - before)
