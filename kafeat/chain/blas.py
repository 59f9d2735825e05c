"""Limit BLAS to one thread while kafeat computes.

kafeat's workers share the cores, and the last bit of a matrix product may depend on the number of BLAS threads.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from threadpoolctl import OpenBLASController, ThreadpoolController

_lock = threading.Lock()
_inside = 0
_restore_limits: list[Callable[[], None]] = []


@contextmanager
def one_blas_thread(linalg: bool = False) -> Iterator[None]:
    """Limit BLAS for the whole process. The first thread to enter sets the limit, and the last to leave lifts it.

    A library that is loaded inside the block is not limited. `scipy.linalg` brings its own BLAS. Set `linalg` if code
    in the block may import `scipy.linalg`. Then this BLAS is loaded before the limit is set.
    """
    global _inside
    loads = linalg and "scipy.linalg" not in sys.modules
    if loads:
        import scipy.linalg  # noqa: F401
    with _lock:
        if _inside == 0 or loads:
            _take_control()
            limits = _controller(len(sys.modules)).limit(limits=1, user_api="blas")
            _restore_limits.append(limits.restore_original_limits)
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                _take_control()
                while _restore_limits:
                    _restore_limits.pop()()


@lru_cache(maxsize=1)
def _controller(modules: int) -> Any:
    """Find the BLAS libraries. The search takes milliseconds, so the result is cached until `modules` changes."""
    del modules
    return ThreadpoolController()


def _take_control() -> None:
    """Let this thread set limits: threadpoolctl 3.8 obeys only the first thread that set one. Callers hold `_lock`."""
    clear = getattr(OpenBLASController, "clear_controlling_thread", None)
    if clear is not None:
        clear(force=True)
