"""Where parts of work run: threads of this process, or any backend of joblib, Dask, Ray and Spark among them."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import joblib

from kafeat.errors import KafeatError, SystemRefusedError, UsageError

T = TypeVar("T")
R = TypeVar("R")

ATTEMPTS = 2
"""Times that work is handed out before what has died with its workers is done item by item."""

_CONNECT_SECONDS = 30
_LOOK_SECONDS = 0.5


@dataclass(frozen=True)
class Engine:
    """`threads`, or the name of a backend of joblib. `address` is that of a Dask scheduler or a Ray cluster.

    `jobs` are the items that run at once; None leaves it to the engine: all cores, or all workers.
    """

    name: str = "threads"
    address: str | None = None
    jobs: int | None = None

    @property
    def here(self) -> bool:
        """Whether it is this process."""
        return self.name == "threads"

    def check(self) -> None:
        """Refuse what makes no sense."""
        if self.address is not None and self.name not in ("dask", "ray"):
            raise UsageError(
                f"--scheduler: expected --engine dask or ray with an address, got --engine {self.name}"
            )
        if self.name == "dask" and self.address is None:
            raise UsageError(
                "--engine dask: expected --scheduler with its address, such as tcp://host:8786, got none"
            )


class Died(Exception):
    """Workers have died, and their work with them; the engine goes on."""


@dataclass
class _Running:
    """An engine that is up: what hands out work, and a look at its health, which raises `Died` or a refusal."""

    options: dict[str, Any]
    look: Callable[[], None] = lambda: None


def completed(
    engine: Engine, work: Callable[[T], R], items: Sequence[T], attempts: int = ATTEMPTS
) -> Iterator[tuple[T, R | None]]:
    """Every item and what `work` made of it, as they are done, in any order; None where its workers always died.

    What is not done when a worker dies is handed out again, up to `attempts` times in all, and then item by item, so
    that one that kills its worker harms no other. `work` must be a function of a module, may run twice, and must not
    raise.
    Raises `SystemRefusedError` if the engine cannot be reached, or is lost.
    """
    engine.check()
    left = dict(enumerate(items))
    for _ in range(attempts):
        with suppress(Died), _started(engine) as running:
            for number, result in _handed_out(running, work, left):
                yield left.pop(number), result
        if not left:
            return
    for number, item in left.items():
        result_of_one = None
        with suppress(Died), _started(engine) as running:
            ((_, result_of_one),) = _handed_out(running, work, {number: item})
        yield item, result_of_one


def _handed_out(running: _Running, work: Callable[[T], R], items: dict[int, T]) -> Iterator[tuple[int, R]]:
    """Through joblib, in a thread of its own: it waits for ever for what some engines have lost."""
    found: queue.Queue[tuple[int, R] | BaseException | None] = queue.Queue()

    def hand_out() -> None:
        try:
            for batch in _batches(list(items.items()), running):
                with joblib.parallel_config(**running.options):
                    results = joblib.Parallel(batch_size=1, return_as=_returning())(
                        joblib.delayed(kafeat_part)(work, number, item) for number, item in batch
                    )
                    for result in results:
                        found.put(result)
        except BaseException as error:
            found.put(error)
        else:
            found.put(None)

    threading.Thread(target=hand_out, name="kafeat-engine", daemon=True).start()
    while True:
        try:
            result = found.get(timeout=_LOOK_SECONDS)
        except queue.Empty:
            running.look()
            continue
        if result is None:
            return
        if isinstance(result, KafeatError | KeyboardInterrupt):
            raise result
        if isinstance(result, BaseException):
            running.look()  # if all is lost, that is what is to be told
            raise Died(str(result)) from result
        yield result


def kafeat_part(work: Callable[[T], R], number: int, item: T) -> tuple[int, R]:
    """What the boards of an engine show: they name tasks by their functions."""
    return number, work(item)


def _returning() -> str:
    backend, _ = joblib.parallel.get_active_backend()
    return "generator_unordered" if backend.supports_return_generator else "list"


def _batches(items: list[T], running: _Running) -> Iterator[list[T]]:
    """All at once; where an engine tells nothing before everything is done, some at a time."""
    with joblib.parallel_config(**running.options):
        backend, jobs = joblib.parallel.get_active_backend()
        size = len(items) if backend.supports_return_generator else 4 * max(1, backend.effective_n_jobs(jobs))
    for start in range(0, len(items), size):
        yield items[start : start + size]


@contextmanager
def _started(engine: Engine) -> Iterator[_Running]:
    jobs = -1 if engine.jobs is None else engine.jobs
    if engine.here:
        yield _Running({"backend": "threading", "n_jobs": jobs})
        return
    with ExitStack() as stack:
        try:
            running = stack.enter_context(_ELSEWHERE.get(engine.name, _registered)(engine, jobs))
        except ImportError as error:
            if engine.name not in _ELSEWHERE:
                raise
            raise UsageError(
                f"--engine {engine.name}: expected its packages, got: {error}; pip install 'kafeat[{engine.name}]'"
            ) from error
        yield running


@contextmanager
def _dask(engine: Engine, jobs: int) -> Iterator[_Running]:
    import distributed

    address = engine.address
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # what it warns of is dealt with here

    try:
        client = distributed.Client(address, timeout=_CONNECT_SECONDS, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise SystemRefusedError(
            f"{address}: expected a Dask scheduler, got: {error or 'no answer'}"
        ) from error

    def look() -> None:
        if client.status != "running":
            raise SystemRefusedError(
                f"{address}: expected the Dask scheduler to stay, got a lost connection; what is done stays done: "
                "run again with --resume"
            )
        # joblib is not told of work that was given up, and would wait for it.
        if any(state.status in ("error", "lost", "cancelled") for state in list(client.futures.values())):
            raise Died("a worker")

    try:
        try:
            client.wait_for_workers(1, timeout=_CONNECT_SECONDS)
        except TimeoutError as error:
            raise SystemRefusedError(
                f"{address}: expected a Dask worker, got none in {_CONNECT_SECONDS} s; start one: dask worker {address}"
            ) from error
        yield _Running({"backend": _on_workers(client), "n_jobs": jobs}, look)
    finally:
        with suppress(Exception):
            client.close(timeout=5)


def _on_workers(client: Any) -> Any:
    """joblib's backend, but for one thing: with a single worker it would do the work here, and die of it, too."""
    with joblib.parallel_config(backend="dask", client=client):
        backend, _ = joblib.parallel.get_active_backend()

    class OnWorkers(type(backend)):  # type: ignore[misc]
        def configure(self, *args: Any, **options: Any) -> int:
            return max(2, int(super().configure(*args, **options)))

    return OnWorkers(client=client)


@contextmanager
def _ray(engine: Engine, jobs: int) -> Iterator[_Running]:
    import ray
    from ray.util.joblib import register_ray

    own = not ray.is_initialized()
    if own:
        try:
            ray.init(address=engine.address, log_to_driver=False, logging_level=logging.ERROR)
        except ConnectionError as error:
            raise SystemRefusedError(f"{engine.address}: expected a Ray cluster, got: {error}") from error
    register_ray()
    try:
        yield _Running({"backend": "ray", "n_jobs": jobs})
    finally:
        if own:
            ray.shutdown()


@contextmanager
def _spark(_engine: Engine, jobs: int) -> Iterator[_Running]:
    from joblibspark import register_spark

    register_spark()
    yield _Running({"backend": "spark", "n_jobs": jobs})


@contextmanager
def _registered(engine: Engine, jobs: int) -> Iterator[_Running]:
    options = {"backend": engine.name, "n_jobs": jobs}
    try:
        with joblib.parallel_config(**options):
            pass
    except ValueError as error:
        raise UsageError(
            f"--engine: expected threads, loky, dask, ray, spark or another backend of joblib, got {engine.name!r}"
        ) from error
    try:
        yield _Running(options)
    finally:
        if engine.name == "loky":  # its workers would wait minutes for more
            from joblib.externals.loky import get_reusable_executor

            get_reusable_executor(reuse=True).shutdown(wait=False, kill_workers=True)


_ELSEWHERE = {"dask": _dask, "ray": _ray, "spark": _spark}
