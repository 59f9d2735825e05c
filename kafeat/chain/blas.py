"""One BLAS thread while kafeat computes: its own workers share the cores, and a product's last bit may depend on the
number of threads that split it.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from threadpoolctl import OpenBLASController, get_cached_controller

_lock = threading.Lock()
_inside = 0
_restore_limits: list[Callable[[], None]] = []


@contextmanager
def one_blas_thread(linalg: bool = False) -> Iterator[None]:
    """Limit BLAS, which is one for the whole process: the first to come sets the limit, the last to leave lifts it.

    A library that is loaded inside is not limited. SciPy brings one of its own, which comes with `scipy.linalg`: say
    `linalg` where the block may import that, in any module, and it is loaded before.
    """
    global _inside
    loads = linalg and "scipy.linalg" not in sys.modules
    if loads:
        import scipy.linalg  # noqa: F401
    with _lock:
        if _inside == 0 or loads:
            _take_control()
            # The libraries are looked for again only after an import: a search of its own takes a millisecond or more.
            limits = get_cached_controller().limit(limits=1, user_api="blas")
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


def _take_control() -> None:
    """Let this thread set the limits: threadpoolctl ignores all threads but the one that set a limit first.

    Here the first to come and the last to leave may be any threads: the lock makes them take turns.
    """
    OpenBLASController.clear_controlling_thread(force=True)
