"""One BLAS thread while kafeat computes: its own workers share the cores, and a product's last bit may depend on the
number of threads that split it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from threadpoolctl import OpenBLASController, threadpool_limits

_lock = threading.Lock()
_inside = 0
_limits: threadpool_limits | None = None


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS, which is one for the whole process: the first to come sets the limit, the last to leave lifts it."""
    global _inside, _limits
    with _lock:
        if _inside == 0:
            _take_control()
            _limits = threadpool_limits(limits=1, user_api="blas")
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0 and _limits is not None:
                _take_control()
                _limits.restore_original_limits()
                _limits = None


def _take_control() -> None:
    """From 3.8 on, threadpoolctl lets the thread that set a limit first set others, and silently ignores the rest.

    Here the first to come and the last to leave may be any threads: the lock makes them take turns.
    """
    clear = getattr(OpenBLASController, "clear_controlling_thread", None)
    if clear is not None:
        clear(force=True)
