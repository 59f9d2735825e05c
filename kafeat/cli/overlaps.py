"""The type of file names, and the check that no output of a command replaces an input or another output."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal

import click
from click.shell_completion import CompletionItem

from kafeat.errors import KafeatError
from kafeat.io.storage.files import ReadOnce

if TYPE_CHECKING:
    from kafeat.io.storage.base import Location
    from kafeat.jobs.transform.overlaps import InputPlace, OutputPlace


class FileName(click.types.StringParamType):
    """A file or folder name, which a shell completes. An environment variable separates several names by `:`.

    `use` is how the command uses it. The command reads "data", a "config" or another "file". It writes a "model",
    "pages" in a folder, another "output", or a "search": a config, and a journal next to the config. `what` names
    the file in messages.
    """

    envvar_list_splitter = os.pathsep

    def __init__(
        self, use: Literal["data", "config", "file", "model", "output", "search", "pages"], what: str
    ) -> None:
        self.use, self.what = use, what

    @property
    def written(self) -> bool:
        """True if the command writes this file or folder."""
        return self.use in ("model", "output", "search", "pages")

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        # A config is read by the check of overlaps and by the command. If it is a pipe, it can be read only once.
        name = super().convert(value, param, ctx)
        return ReadOnce(name) if self.use == "config" and not isinstance(name, ReadOnce) else name

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        return [CompletionItem(incomplete, type="dir" if self.use == "pages" else "file")]


def located(name: str) -> Location:
    """Return the location of a file or folder that the user has named."""
    from kafeat.io.storage.location import parse_location

    return parse_location(name)


def refuse_overlaps_of(command: click.Command, values: Mapping[str, Any]) -> None:
    """Refuse parameters with which an output would replace an input or another output."""
    files = [(*file, located(file[-1])) for file in _files(command, values)]
    outputs = [place for _, kind, _, place in files if kind.written]
    if not outputs:
        return
    from kafeat.io.storage.object_store import ObjectUri
    from kafeat.jobs.transform.overlaps import refuse_overlaps, refuse_table_name

    remote = any(isinstance(place, ObjectUri) for place in outputs)
    read = [one for _, kind, given, place in files for one in _read(kind, given, place, remote)]
    written = [one for name, kind, given, place in files for one in _written(name, kind, given, place)]
    refuse_overlaps(read, written)
    for _, kind, _, place in files:
        if kind.use == "model":
            refuse_table_name(place)


def _read(kind: FileName, given: str, place: Location, remote: bool) -> list[InputPlace]:
    """Return all files of an input. `remote` is true if an output is remote; only then is a remote folder listed."""
    from kafeat.jobs.transform.overlaps import InputPlace

    match kind.use:
        case "config":
            rows = InputPlace(f"the rows that {given} names", _rows_of(given))
            return [InputPlace(kind.what, (place,)), rows]
        case "data":
            return [InputPlace.of_data(kind.what, place, remote)]
        case "file":
            return [InputPlace(kind.what, (place,))]
    return []


def _written(name: str, kind: FileName, given: str, place: Location) -> list[OutputPlace]:
    """Return all files that an output consists of, such as a config and its journal."""
    from kafeat.io.storage.local_path import LocalPath
    from kafeat.jobs.transform.overlaps import OutputPlace

    if kind.use == "pages":
        from kafeat.study.report.document import pages_of

        return [OutputPlace(name, LocalPath(page)) for page in pages_of(given)]
    journal = journal_of(place) if kind.use == "search" else None
    beside = [] if journal is None else [OutputPlace("a journal", LocalPath(journal))]
    return [OutputPlace(name, place), *beside] if kind.written else []


def _files(command: click.Command, values: Mapping[str, Any]) -> Iterator[tuple[str, FileName, str]]:
    """Yield every file among the values: its name in messages, its type and its location."""
    for parameter in command.params:
        if isinstance(parameter.type, FileName):
            name = parameter.opts[0] if isinstance(parameter, click.Option) else parameter.type.what
            paths = values.get(parameter.name or "") or ()
            for place in [paths] if isinstance(paths, str) else paths:
                yield name, parameter.type, place


def names_of(command: click.Command, values: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the tables that a command reads, and the files that it writes. Options follow arguments in both."""
    files = sorted(_files(command, values), key=lambda file: file[0].startswith("-"))
    reads = tuple(given for _, kind, given in files if kind.use == "data")
    return reads, tuple(given for _, kind, given in files if kind.written)


def _rows_of(config: str) -> tuple[Location, ...]:
    """Return the files of rows, such as landmarks, that a config names. An invalid config gives ()."""
    from kafeat.config import load_config

    with suppress(KafeatError):
        given = (rows for step in load_config(config).steps for rows in step.traits.given_rows.values())
        return tuple(located(rows) for rows in given if isinstance(rows, str))
    return ()


def journal_of(place: Location) -> str | None:
    """Return the path of the journal next to a search's output. None if the output is not a local file."""
    from kafeat.io.storage.local_path import LocalPath

    return f"{place.path}.journal" if isinstance(place, LocalPath) and place.kind() != "other" else None
