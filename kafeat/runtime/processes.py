"""Processes of this machine that work for this one: each does one thing at a time, and one that dies harms no other."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import TypeVar

from kafeat.errors import SystemRefusedError
from kafeat.runtime.stop import PATIENCE_SECONDS

T = TypeVar("T")
R = TypeVar("R")

# The cores are shared by the processes, and not by threads in each of them.
_ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1"
)  # fmt: skip


class Died(Exception):
    """A worker has died, and what it was doing with it."""


class Processes:
    """A thread for each process, which hands it work and waits for the result."""

    def __init__(self, jobs: int) -> None:
        self._threads = ThreadPoolExecutor(jobs, "kafeat-engine")
        self._of_thread = threading.local()
        self._lock, self._workers, self._closed = threading.Lock(), set[_Worker](), False

    def submit(self, work: Callable[[T], R], item: T) -> Future[R]:
        """The result to come; its error is `Died` where the process has died of it."""
        return self._threads.submit(self._do, work, item)

    def close(self) -> None:
        """End the processes, in the middle of their work if need be; returns when they have cleaned up."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        with self._lock:
            self._closed, workers = True, list(self._workers)
        for worker in workers:
            worker.dismiss()
        for worker in workers:
            worker.end()

    def _do(self, work: Callable[[T], R], item: T) -> R:
        worker: _Worker | None = getattr(self._of_thread, "worker", None)
        if worker is None:
            with self._lock:
                if self._closed:
                    raise Died("the engine is closed")
                worker = self._of_thread.worker = _Worker()
                self._workers.add(worker)
        try:
            return worker.do(work, item)
        except Died:
            self._of_thread.worker = None
            with self._lock:
                self._workers.discard(worker)
            raise


class _Worker:
    """A process that runs `kafeat.runtime.worker`."""

    def __init__(self) -> None:
        path = os.pathsep.join(place or os.getcwd() for place in sys.path)
        self._process = subprocess.Popen(
            # -P: a file of the folder where we stand is no module
            [sys.executable, "-P", "-c", "from kafeat.runtime.worker import main; main()"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, **_ONE_THREAD, "PYTHONPATH": path},
            start_new_session=True,  # an interrupt from the terminal is for the one who started it
        )  # fmt: skip
        assert self._process.stdin is not None  # noqa: S101  # for mypy: they are pipes
        assert self._process.stdout is not None  # noqa: S101
        self._calls, self._results = self._process.stdin, self._process.stdout

    def do(self, work: Callable[[T], R], item: T) -> R:
        call = pickle.dumps((work, item))
        try:
            pickle.dump(call, self._calls)
            self._calls.flush()
            result, wrong = pickle.load(self._results)  # noqa: S301  # from our own process
        except (OSError, EOFError, ValueError, pickle.UnpicklingError) as error:
            self.dismiss()
            self.end()
            raise Died(f"a process ended with {self._process.returncode}") from error
        if wrong is not None:
            raise SystemRefusedError(f"a worker: expected the same modules as here, got {wrong}")
        found: R = result
        return found

    def dismiss(self) -> None:
        """Tell it to end."""
        with suppress(OSError):
            self._calls.close()

    def end(self) -> None:
        """Wait until it has ended, but not for ever."""
        try:
            self._process.wait(PATIENCE_SECONDS + 2.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._results.close()
