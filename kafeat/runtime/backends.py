"""Start, supervise and end each engine."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from kafeat.contract.threads import settle
from kafeat.errors import SystemRefusedError, UsageError
from kafeat.runtime.engine import Engine, Pool, Stop
from kafeat.runtime.environment import count_jobs

if TYPE_CHECKING:
    import distributed

_CONNECT_SECONDS = 30
# Items submitted per thread, so that a thread that finishes an item has the next item at once.
_AHEAD = 2
# Number of threads that fetch results over the network.
_GATHERED_AT_ONCE = 8


def start_engine(engine: Engine) -> AbstractContextManager[Pool]:
    """Start an engine. At the end of the block, end it and cancel its work as far as possible."""
    engine.check()
    return _ENGINES[engine.name](engine)


@contextmanager
def _threads(engine: Engine) -> Iterator[Pool]:
    jobs, stop = count_jobs(engine.jobs), Stop()
    threads = ThreadPoolExecutor(jobs, "kafeat-engine")
    try:
        yield Pool(threads.submit, _AHEAD * jobs, stop=stop)
    finally:
        threads.shutdown(wait=False, cancel_futures=True)
        stop.ask()


@contextmanager
def _processes(engine: Engine) -> Iterator[Pool]:
    from kafeat.runtime.processes import Processes

    jobs = count_jobs(engine.jobs)
    processes = Processes(jobs)
    try:
        yield Pool(processes.submit, _AHEAD * jobs)
    finally:
        processes.close()


@contextmanager
def _dask(engine: Engine) -> Iterator[Pool]:
    client = _dask_client(engine.address)
    gathering = ThreadPoolExecutor(_GATHERED_AT_ONCE, "kafeat-engine")
    sent, lost = dict[Any, Any](), SimpleQueue[tuple[Any, str]]()

    def hear(event: tuple[float, Any]) -> None:
        # Dask gives the work of a lost worker to other workers, and does not notify the client.
        told = event[1] if isinstance(event[1], dict) and event[1].get("action") == "remove-worker" else {}
        for key in told.get("processing-tasks", ()):
            if key in sent:
                lost.put((sent[key], told["worker"]))

    def submit(work: Callable[[Any], Any], item: Any) -> Future[Any]:
        # Dask's own executor loses results if a worker dies after the work but before they arrive.
        remote, local = client.submit(work, item, pure=False), Future[Any]()
        sent[remote.key] = item
        remote.add_done_callback(lambda _: gathering.submit(settle, local, remote.result))
        return local

    def check() -> None:
        if client.status != "running":
            raise SystemRefusedError(
                f"{engine.address}: expected the Dask scheduler to stay, got a lost connection; the finished parts are "
                "kept: run again with --resume",
                retry=True,
            )

    try:
        _wait_for_workers(client, engine.address)
        client.subscribe_topic("all", hear)
        # Without --jobs, submit more items than there are threads, for workers that join the cluster later.
        at_once = engine.jobs or max(1000, 4 * sum(client.nthreads().values()))
        yield Pool(submit, at_once, check, lost=lost)
    finally:
        with suppress(Exception):  # the work has ended, so errors of the cluster do not matter
            client.close(timeout=5)
        gathering.shutdown(wait=False, cancel_futures=True)


def _dask_client(address: str | None) -> distributed.Client:
    try:
        import distributed
    except ImportError as error:
        raise UsageError(
            f"--engine dask: expected its packages, got: {error}; pip install 'kafeat[dask]'"
        ) from error
    for name in ("distributed", "distributed.client", "tornado", "tornado.application"):
        # Remove Dask's handlers, which write to stderr. The command's log receives the records instead.
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = True
        logger.setLevel(logging.CRITICAL)  # lower levels are about faults that are handled here
    try:
        return distributed.Client(address, timeout=_CONNECT_SECONDS, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise SystemRefusedError(
            f"{address}: expected a Dask scheduler, got: {error or 'no answer'}",
            retry=not isinstance(error, ValueError),
        ) from error


def _wait_for_workers(client: distributed.Client, address: str | None) -> None:
    try:
        client.wait_for_workers(1, timeout=_CONNECT_SECONDS)
    except TimeoutError as error:
        raise SystemRefusedError(
            f"{address}: expected a Dask worker, got none in {_CONNECT_SECONDS} s; start one: dask worker {address}",
            retry=True,
        ) from error


_ENGINES: dict[str, Callable[[Engine], AbstractContextManager[Pool]]] = {
    "threads": _threads,
    "processes": _processes,
    "dask": _dask,
}
