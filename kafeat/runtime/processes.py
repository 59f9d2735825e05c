"""A pool of worker processes on this machine. Each does one item at a time, and one that dies harms no other."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from queue import SimpleQueue
from typing import IO, NoReturn, TypeVar

from kafeat.errors import SystemRefusedError, first_line
from kafeat.io.storage.temporary_files import remove_ours
from kafeat.runtime.pool import PATIENCE_SECONDS, of_this_process

T = TypeVar("T")
R = TypeVar("R")

# The processes share the cores, so that each of them gets one BLAS thread.
_ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1"
)  # fmt: skip


class WorkerDiedError(Exception):
    """A worker process has died, and its work is lost."""


class Processes:
    """A pool with a thread for each process, which hands it work and waits for the result."""

    def __init__(self, jobs: int) -> None:
        self._threads = ThreadPoolExecutor(jobs, "kafeat-engine")
        self._of_thread = threading.local()
        self._lock, self._workers, self._closed = threading.Lock(), set[_Worker](), False

    def submit(self, work: Callable[[T], R], item: T) -> Future[R]:
        """Return a future of the result; its error is `WorkerDiedError` if the process died."""
        return self._threads.submit(self._do, work, item)

    def close(self) -> None:
        """End the processes, even in the middle of their work, and return when they have cleaned up."""
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
                    raise WorkerDiedError("the engine is closed")
                worker = self._of_thread.worker = _Worker()
                self._workers.add(worker)
        try:
            return worker.do(work, item)
        except WorkerDiedError:
            self._of_thread.worker = None
            with self._lock:
                self._workers.discard(worker)
            raise


class _Worker:
    """A process that runs `work_on_input`."""

    def __init__(self) -> None:
        path = os.pathsep.join(place or os.getcwd() for place in sys.path)
        self._process = subprocess.Popen(
            # -P: files of the current folder must not be imported as modules
            [sys.executable, "-P", "-c", "from kafeat.runtime.processes import work_on_input; work_on_input()"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, **_ONE_THREAD, "PYTHONPATH": path},
            start_new_session=True,  # an interrupt from the terminal must reach only the parent
        )  # fmt: skip
        assert self._process.stdin is not None  # noqa: S101  # for mypy: they are pipes
        assert self._process.stdout is not None  # noqa: S101
        self._calls, self._results = self._process.stdin, self._process.stdout

    def do(self, work: Callable[[T], R], item: T) -> R:
        """Send the work to the process and return its result."""
        call = pickle.dumps((work, item))
        try:
            pickle.dump(call, self._calls)
            self._calls.flush()
            result, wrong = pickle.load(self._results)  # noqa: S301  # from our own process
        except (OSError, EOFError, ValueError, pickle.UnpicklingError) as error:
            self.dismiss()
            self.end()
            raise WorkerDiedError(f"a process ended with {self._process.returncode}") from error
        if wrong is not None:
            raise SystemRefusedError(f"a worker: expected the same modules as in this process, got {wrong}")
        typed: R = result
        return typed

    def dismiss(self) -> None:
        """Close its input, upon which the process ends."""
        with suppress(OSError):
            self._calls.close()

    def end(self) -> None:
        """Wait until it has ended; kill it if it takes too long."""
        try:
            self._process.wait(PATIENCE_SECONDS + 2.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._results.close()


def work_on_input() -> None:
    """Do one item of work after the other."""
    inbox, outbox = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    # Nothing else may read from standard input, and text that a library prints is no result.
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    calls: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_receive, args=(inbox, calls), name="kafeat-inbox", daemon=True).start()
    while True:
        result = _done(calls.get())
        try:
            pickle.dump(result, outbox)
            outbox.flush()
        except BrokenPipeError:
            _leave()


def _done(call: bytes) -> tuple[object, str | None]:
    """Return the result, or an error of unpickling the call, such as a missing module."""
    try:
        work, item = pickle.loads(call)  # noqa: S301  # from the process that started this one
    except Exception as error:
        return None, f"{type(error).__name__}: {first_line(error)}"
    return work(item), None


def _receive(inbox: IO[bytes], calls: SimpleQueue[bytes]) -> None:
    try:
        while True:
            calls.put(pickle.load(inbox))  # noqa: S301
    except (EOFError, OSError, pickle.UnpicklingError):
        _leave()


def _leave() -> NoReturn:
    of_this_process().ask()
    remove_ours()
    sys.stderr.flush()
    os._exit(0)
