"""How each engine is started, looked after and ended: what joblib is told of it, and whether it is still there."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import joblib

from kafeat.errors import SystemRefusedError, UsageError

_CONNECT_SECONDS = 30


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
class Running:
    """An engine that is up: what hands out work, and a look at its health, which raises `Died` or a refusal."""

    options: dict[str, Any]
    look: Callable[[], None] = lambda: None


@contextmanager
def started(engine: Engine) -> Iterator[Running]:
    """The engine, up; it is ended with the block."""
    jobs = -1 if engine.jobs is None else engine.jobs
    if engine.here:
        yield Running({"backend": "threading", "n_jobs": jobs})
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
def _dask(engine: Engine, jobs: int) -> Iterator[Running]:
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
        yield Running({"backend": _on_workers(client), "n_jobs": jobs}, look)
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
def _ray(engine: Engine, jobs: int) -> Iterator[Running]:
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
        yield Running({"backend": "ray", "n_jobs": jobs})
    finally:
        if own:
            ray.shutdown()


@contextmanager
def _spark(_engine: Engine, jobs: int) -> Iterator[Running]:
    from joblibspark import register_spark

    register_spark()
    yield Running({"backend": "spark", "n_jobs": jobs})


@contextmanager
def _registered(engine: Engine, jobs: int) -> Iterator[Running]:
    options = {"backend": engine.name, "n_jobs": jobs}
    try:
        with joblib.parallel_config(**options):
            pass
    except ValueError as error:
        raise UsageError(
            f"--engine: expected threads, loky, dask, ray, spark or another backend of joblib, got {engine.name!r}"
        ) from error
    try:
        yield Running(options)
    finally:
        if engine.name == "loky":  # its workers would wait minutes for more
            from joblib.externals.loky import get_reusable_executor

            get_reusable_executor(reuse=True).shutdown(wait=False, kill_workers=True)


_ELSEWHERE = {"dask": _dask, "ray": _ray, "spark": _spark}
