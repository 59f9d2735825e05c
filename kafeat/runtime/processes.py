"""Worker processes on this machine, each with its own executor, so that a process that dies harms no other."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection
from types import ModuleType
from typing import Any, TypeVar

from kafeat.errors import SystemRefusedError, first_line
from kafeat.io.storage.temporary_files import remove_ours
from kafeat.runtime.engine import of_this_process

T = TypeVar("T")
R = TypeVar("R")

# The processes share the cores, so each has one BLAS thread. They do not import files of the current folder.
_ENVIRONMENT = {"PYTHONSAFEPATH": "1"} | dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1"
)  # fmt: skip
_launch = threading.Lock()


class Processes:
    """Executors with one process each. Threads start the processes, because signals interrupt only the main thread."""

    def __init__(self, jobs: int) -> None:
        self._threads = ThreadPoolExecutor(jobs, "kafeat-engine")
        self._all, self._free = list[ProcessPoolExecutor](), list[ProcessPoolExecutor]()
        # A worker ends when this pipe closes: in `close`, or because this process has ended.
        self._theirs, self._ours = get_context("spawn").Pipe(duplex=False)

    def submit(self, work: Callable[[T], R], item: T) -> Future[R]:
        """Return a future of the result; its error is `BrokenProcessPool` if the process died."""
        return self._threads.submit(self._run, pickle.dumps((work, item)))

    def _run(self, call: bytes) -> Any:
        try:
            with _launching():
                executor = self._free.pop() if self._free else self._add()
                future = executor.submit(_do, call)
        except BrokenProcessPool:  # the process died while idle, or with an earlier item
            return self._run(call)
        try:
            return future.result()
        finally:
            self._free.append(executor)

    def _add(self) -> ProcessPoolExecutor:
        self._all.append(ProcessPoolExecutor(1, get_context("spawn"), _begin, (self._theirs,)))
        return self._all[-1]

    def close(self) -> None:
        """End the processes, even in the middle of their work, and return when they have cleaned up."""
        self._ours.close()
        self._threads.shutdown(cancel_futures=True)
        for executor in self._all:
            executor.shutdown()


@contextmanager
def _launching() -> Iterator[None]:
    """In the block, new processes do not run the main module again, and Ctrl-C does not reach them."""
    with _launch:
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        main, before = sys.modules["__main__"], {name: os.environ.get(name) for name in _ENVIRONMENT}
        try:
            os.environ.update(_ENVIRONMENT)
            resource_tracker.ensure_running()  # before SIGINT is blocked, because it unblocks SIGINT
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            sys.modules["__main__"] = ModuleType("__main__")
            yield
        finally:
            sys.modules["__main__"] = main
            for name, value in before.items():
                os.environ.pop(name) if value is None else os.environ.update({name: value})
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _begin(driver: Connection) -> None:
    os.setsid()  # signals to the process group of the parent must not reach this process
    os.dup2(2, 1)  # keep what libraries print out of stdout
    threading.Thread(target=_watch, args=(driver,), name="kafeat-watch", daemon=True).start()


def _watch(driver: Connection) -> None:
    driver.poll(None)
    of_this_process().ask()
    remove_ours()
    sys.stderr.flush()
    os._exit(0)


def _do(call: bytes) -> Any:
    try:
        work, item = pickle.loads(call)  # noqa: S301  # from the process that started this one
    except Exception as error:  # unpickling imports modules, which may raise anything
        raise SystemRefusedError(
            "a worker: expected the same modules as in this process, got "
            f"{type(error).__name__}: {first_line(error)}"
        ) from None
    return work(item)
