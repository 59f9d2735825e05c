"""Options that several commands share."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from kafeat.io import formats
from kafeat.io.storage.files import ReadOnce

F = TypeVar("F", bound=Callable[..., Any])

INPUTS = click.Choice(formats.INPUTS)
OUTPUTS = click.Choice(formats.OUTPUTS)


class FileName(click.types.StringParamType):
    """A file or folder name, which a shell completes. An environment variable separates several names by `:`.

    `use` says how the command uses it: it reads data, a config or another file, or it writes a model, another output,
    the result of a search with a journal beside it, or a folder of pages. `kafeat.cli.overlaps` compares outputs with
    inputs. `what` names the file in messages.
    """

    envvar_list_splitter = os.pathsep

    def __init__(
        self, use: Literal["data", "config", "file", "model", "output", "search", "pages"], what: str
    ) -> None:
        self.use, self.what = use, what

    @property
    def written(self) -> bool:
        """True if the command writes to it."""
        return self.use in ("model", "output", "search", "pages")

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        # The check of overlapping files reads a config, and then the command does.
        name = super().convert(value, param, ctx)
        return ReadOnce(name) if self.use == "config" and not isinstance(name, ReadOnce) else name

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        return [CompletionItem(incomplete, type="dir" if self.use == "pages" else "file")]


class ColumnName(click.types.StringParamType):
    """The name of a column. An environment variable holds one name, which may have spaces."""

    def split_envvar_value(self, rv: str) -> list[str]:
        return [rv]


class KindName(click.types.StringParamType):
    """The kind of a step, which a shell completes."""

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        # Kinds are the names of files. Importing the registry to list them would take most of a second.
        from pkgutil import iter_modules

        from kafeat import predictors, samplers, scalers

        packages = (scalers, samplers, predictors)
        names = [module.name for package in packages for module in iter_modules(package.__path__)]
        return [
            CompletionItem(name) for name in names if name.startswith(incomplete) and not name.startswith("_")
        ]


def finite(context: click.Context, option: click.Parameter, number: float | None) -> float | None:
    """Refuse infinity, and NaN, which click accepts within any bounds."""
    if number is not None and not math.isfinite(number):
        raise click.BadParameter(f"{number} is no finite number.", context, option)
    return number


_LARGEST = 1 << 53


class _Number(click.IntRange):
    """A whole number with bounds; the help is silent about the largest number that any option takes."""

    def _describe_range(self) -> str:
        return f"x>={self.min}" if self.max == _LARGEST else super()._describe_range()

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if str(value).isdecimal() and int(value) > _LARGEST:
            self.fail(f"{value} is not in the range {self.min}<=x<={self.max}.", param, ctx)
        return super().convert(value, param, ctx)


def number(least: int, most: int = _LARGEST) -> click.IntRange:
    """Return the type of a whole number. Larger ones are refused before anything is allocated for them."""
    return _Number(least, most)


MOST_JOBS = 4096
KIND, COLUMN = KindName(), ColumnName()
DATA, CONFIG, MODEL = (
    FileName("data", "the input"), FileName("config", "the config"), FileName("file", "the model"),
)  # fmt: skip
FILE = FileName("file", "the input")
NEW_MODEL, OUTPUT, SEARCHED, PAGES = (
    FileName("model", "a model"), FileName("output", "an output"), FileName("search", "an output"),
    FileName("pages", "pages"),
)  # fmt: skip

LABELS_HELP = "Label column. It is not a feature. Repeatable for labels that are numbers."
label = click.option("--label", "labels", type=COLUMN, multiple=True, metavar="COL", help=LABELS_HELP)
overwrite_model = click.option(
    "--overwrite/--no-clobber",
    default=True,
    help="Replace an existing MODEL (default), or fail if it exists.",
)
task = click.option(
    "--task", type=click.Choice(["auto", "classification", "regression"]), default="auto", show_default=True,
    help="Type of the label. With auto, text and at most 100 different whole numbers are classes.",
)  # fmt: skip
jobs = click.option(
    "--jobs",
    "-j",
    type=number(1, MOST_JOBS),
    metavar="N",
    help="Number of threads (default: all cores). It never changes the output.",
)
quiet = click.option("--quiet", "-q", is_flag=True, help="Write nothing to stderr except errors.")


output_dtype = click.option(
    "--output-dtype", type=click.Choice(["float16", "float32", "float64"]),
    help="Type of the features (default: that of the map) or predictions (default: float64). A value that does not fit "
    "is an error.",
)  # fmt: skip
fsync = click.option(
    "--fsync/--no-fsync", default=True,
    help="Flush the output to disk before it gets its final name (default), or leave this to the system.",
)  # fmt: skip


def _use_json(_context: click.Context, _option: click.Parameter, chosen: str) -> None:
    from kafeat.cli import log

    log.use_json(chosen == "json")


log_format = click.option(
    "--log-format", type=click.Choice(["text", "json"]), default="text", show_default=True, is_eager=True,
    expose_value=False, callback=_use_json, help="Format of stderr: text, or one JSON object per line.",
)  # fmt: skip
verbose = click.option(
    "--verbose", "-v", is_flag=True, help="Write a summary, the versions and the machine to stderr."
)


def model(command: F) -> F:
    """Add --model."""
    return click.option(
        "--model", required=True, type=MODEL, metavar="MODEL", help="Map made by `kafeat fit`."
    )(command)


def reading(command: F) -> F:
    """Add --input-format, --delimiter, --no-header and --limit, which the command receives as `reading`."""

    @wraps(command)
    def with_reading(
        *args: Any,
        input_format: str | None,
        delimiter: str,
        no_header: bool,
        limit: int | None,
        **rest: Any,
    ) -> Any:
        from kafeat.io.readers.dataset import InputOptions

        return command(*args, reading=InputOptions(input_format, delimiter, not no_header, limit), **rest)

    for option in (
        click.option(
            "--limit",
            type=number(1),
            metavar="N",
            allow_from_autoenv=False,
            help="Read only the first N rows, for a trial.",
        ),
        click.option(
            "--no-header", is_flag=True, help="The CSV input has no header. Its columns are named c0, c1, …"
        ),
        click.option(
            "--delimiter",
            default=",",
            metavar="CHAR",
            help="Delimiter of a CSV input (default: a comma); tab for tabs.",
        ),
        click.option(
            "--input-format",
            type=INPUTS,
            help="Format of the input (default: by the suffix; stdin is CSV or Arrow, whichever its first bytes show).",
        ),
    ):
        with_reading = option(with_reading)
    return cast("F", with_reading)


if TYPE_CHECKING:
    from kafeat.io.storage.base import Location
    from kafeat.runtime.engine import Engine

C = TypeVar("C", bound=Callable[..., Any])


@dataclass(frozen=True)
class DatasetOptions:
    """Options for data sets of many files."""

    engine_name: str = "threads"
    address: str | None = None
    rows_per_file: int | None = None
    resume: bool = False

    def over_parts(self, source: Location) -> bool:
        """Return True if the data set has parts. Refuse options that have no effect on a single file."""
        from kafeat.errors import UsageError
        from kafeat.io.data_set import is_data_set, must_exist

        if self.rows_per_file is not None or is_data_set(source):
            return True
        context = click.get_current_context()
        for parameter, option in (("engine", "--engine"), ("resume", "--resume")):
            # an environment variable is a default for every call, with one file or many
            if context.get_parameter_source(parameter) is ParameterSource.COMMANDLINE:
                must_exist(source)
                raise UsageError(
                    f"{option}: expected an input of many files, or --rows-per-file, got one: {source}"
                )
        return False

    def engine(self, jobs: int | None) -> Engine:
        """Return the engine that transforms the parts."""
        from kafeat.runtime.engine import Engine

        return Engine(self.engine_name, self.address, jobs)


def scale_options(command: C) -> C:
    """Add --rows-per-file, --resume, --engine and --scheduler, which the command receives as `scale`."""

    @wraps(command)
    def with_scale(
        *args: Any, engine: str, scheduler: str | None, rows_per_file: int | None, resume: bool, **rest: Any
    ) -> Any:
        return command(*args, scale=DatasetOptions(engine, scheduler, rows_per_file, resume), **rest)

    for option in (
        click.option(
            "--scheduler", metavar="URL",
            help="Address of a Dask scheduler (tcp://host:8786) or a Ray cluster.",
        ),
        click.option(
            "--engine", default="threads", show_default=True, metavar="NAME",
            help="Engine that transforms the parts: threads, processes, dask, ray or spark.",
        ),
        click.option("--resume", is_flag=True, help="Keep parts of a previous run if nothing changed."),
        click.option(
            "--rows-per-file", type=number(1), metavar="N",
            help="Split IN into parts of at most N rows (whole chunks of the map) and write them to the folder OUT.",
        ),
    ):  # fmt: skip
        with_scale = option(with_scale)
    return cast("C", with_scale)
