"""Work on items in memory, by the calling thread and helpers: nothing is read ahead, and nothing is returned."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")
_END = object()


def share_work(make_worker: Callable[[], Callable[[T], object]], items: Iterator[T], jobs: int) -> None:
    """Call `worker(item)` for every item, by `jobs` threads that each make their own worker.

    The calling thread is one of them, so a single job starts no thread. The first error in the order of the items is
    raised, be it a worker's or that of the items. No item is started after an error is seen.
    """
    work = _Work(items)
    helpers = [
        threading.Thread(target=work.do, args=(make_worker,), name=f"kafeat-worker-{i}", daemon=True)
        for i in range(1, jobs)
    ]
    for helper in helpers:
        helper.start()
    try:
        work.do(make_worker)
    finally:
        work.stop()  # the user may have interrupted this thread
        for helper in helpers:
            helper.join()
    if work.error is not None:
        raise work.error


class _Work(Generic[T]):
    """Items that threads take in turn, and the first error."""

    def __init__(self, items: Iterator[T]) -> None:
        self._items = items
        self._taken = 0
        self._lock = threading.Lock()
        self._stopped = False
        self._failed_at = 0
        self.error: Exception | None = None

    def stop(self) -> None:
        """Give out no more items."""
        self._stopped = True

    def do(self, make_worker: Callable[[], Callable[[T], object]]) -> None:
        """Take items until there are no more."""
        place = 0
        try:
            worker = make_worker()
            while True:
                with self._lock:
                    if self._stopped:
                        return
                    place = self._taken
                    item = next(self._items, _END)
                    self._taken += 1
                if item is _END:
                    return
                worker(item)  # type: ignore[arg-type]  # anything but the end is a T
        except Exception as error:
            self._fail(place, error)

    def _fail(self, place: int, error: Exception) -> None:
        with self._lock:
            self._stopped = True
            if self.error is None or place < self._failed_at:
                self.error, self._failed_at = error, place
