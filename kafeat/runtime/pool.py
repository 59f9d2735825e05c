"""Engines: their options, and one that is running."""

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
    """The name and options of an engine, which runs the parts of a data set.

    Attributes:
        name: One of `ENGINES`.
        address: Address of the Dask scheduler or Ray cluster.
        jobs: Number of items that run at once; None takes all cores or all workers.
    """

    name: str = "threads"
    address: str | None = None
    jobs: int | None = None

    @property
    def in_this_process(self) -> bool:
        """True if its workers are threads of this process."""
        return self.name == "threads"

    @property
    def ends_workers(self) -> bool:
        """True if no worker outlives the engine; those of a cluster may go on for a while."""
        return self.name not in ("dask", "ray", "spark")

    def check(self) -> None:
        """Refuse an unknown name, and a missing or superfluous address."""
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
    """A running engine.

    Attributes:
        submit: `submit(work, item)` returns a future; its error is the fate of the worker, as `work` raises nothing.
        at_once: Number of items to submit at once.
        check: Raises an error if the engine is lost.
        stop: Ends work in this process when the engine is ended early.
    """

    submit: Callable[[Callable[[Any], Any], Any], Future[Any]]
    at_once: int
    check: Callable[[], None] = lambda: None
    stop: Stop = field(default_factory=Stop)
