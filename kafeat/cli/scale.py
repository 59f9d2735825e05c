"""The options of data sets: where parts are made, and whether to go on with what is there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

if TYPE_CHECKING:
    from kafeat.pool import Engine

C = TypeVar("C", bound=Callable[..., Any])


@dataclass(frozen=True)
class Scale:
    """How a data set of many files is gone through."""

    engine_name: str = "threads"
    address: str | None = None
    rows_per_file: int | None = None
    resume: bool = False

    def over_parts(self, source: str) -> bool:
        """Whether there are parts; options that are of no use without them are refused."""
        from kafeat.errors import UsageError
        from kafeat.io.parts import is_data_set

        if self.rows_per_file is not None or is_data_set(source):
            return True
        context = click.get_current_context()
        for parameter, option in (("engine", "--engine"), ("resume", "--resume")):
            # a variable of the environment is a default for all calls, with one file or many
            if context.get_parameter_source(parameter) is ParameterSource.COMMANDLINE:
                raise UsageError(
                    f"{option}: expected an input of many files, or --rows-per-file, got one: {source}"
                )
        return False

    def engine(self, jobs: int | None) -> Engine:
        """Where the parts are made."""
        from kafeat.pool import Engine

        return Engine(self.engine_name, self.address, jobs)


def scale_options(command: C) -> C:
    """--rows-per-file, --resume, --engine and the address of one, handed to the command as `scale`."""

    @wraps(command)
    def with_scale(
        *args: Any, engine: str, scheduler: str | None, rows_per_file: int | None, resume: bool, **rest: Any
    ) -> Any:
        return command(*args, scale=Scale(engine, scheduler, rows_per_file, resume), **rest)

    for option in (
        click.option(
            "--scheduler", "--address", metavar="URL",
            help="Of a Dask scheduler (tcp://host:8786) or a Ray cluster.",
        ),
        click.option(
            "--engine", default="threads", show_default=True, metavar="NAME",
            help="Where parts are made: threads, processes, dask, ray or spark.",
        ),
        click.option("--resume", is_flag=True, help="Keep the parts that an earlier run has made, if nothing changed."),
        click.option(
            "--rows-per-file", type=click.IntRange(min=1), metavar="N",
            help="Cut IN into parts of at most N rows (whole chunks of the map), and make OUT a folder.",
        ),
    ):  # fmt: skip
        with_scale = option(with_scale)
    return with_scale  # type: ignore[return-value]
