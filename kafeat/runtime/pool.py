"""Where work is done: an engine by its name, and one that is up."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from kafeat.errors import UsageError
from kafeat.runtime.stop import Stop

ENGINES = ("threads", "processes", "loky", "multiprocessing", "dask", "ray", "spark")


@dataclass(frozen=True)
class Engine:
    """Where work is done, by its name. `address` is that of a Dask scheduler or a Ray cluster.

    `jobs` are the items that run at once; None leaves it to the engine: all cores, or all workers.
    """

    name: str = "threads"
    address: str | None = None
    jobs: int | None = None

    @property
    def here(self) -> bool:
        """Whether it is this process."""
        return self.name == "threads"

    @property
    def ends(self) -> bool:
        """Whether its workers have ended when it has: those of a cluster may still be at work."""
        return self.name not in ("dask", "ray", "spark")

    def check(self) -> None:
        """Refuse what makes no sense."""
        if self.name not in ENGINES:
            raise UsageError(
                f"--engine: expected threads, processes, dask, ray or spark, got {self.name!r}; loky and "
                "multiprocessing are other names for processes"
            )
        if self.address is not None and self.name not in ("dask", "ray"):
            raise UsageError(
                f"--scheduler: expected --engine dask or ray with an address, got --engine {self.name}"
            )
        if self.name == "dask" and self.address is None:
            raise UsageError(
                "--engine dask: expected --scheduler with its address, such as tcp://host:8786, got none"
            )


@dataclass(frozen=True)
class Pool:
    """An engine that is up.

    `submit(work, item)` returns the result to come; its error is what has become of the worker, as the work raises
    nothing. `at_once` are the items that are worth being submitted together. `look` raises if the engine is lost.
    `stop` is asked to end work in this process when the engine is ended before it.
    """

    submit: Callable[[Callable[[Any], Any], Any], Future[Any]]
    at_once: int
    look: Callable[[], None] = lambda: None
    stop: Stop = field(default_factory=Stop)
