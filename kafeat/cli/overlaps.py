"""Compare every output of a command with every file it reads, before the command starts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from kafeat.cli.options import FileName, located
from kafeat.errors import KafeatError

if TYPE_CHECKING:
    from kafeat.io.storage.base import Location


def refuse_overlaps_of(command: click.Command, values: Mapping[str, Any]) -> None:
    """Refuse parameters with which an output would replace an input or another output."""
    files = [(*file, located(file[-1])) for file in _files(command, values)]
    outputs = [place for _, kind, _, place in files if kind.written]
    if not outputs:
        return
    from kafeat.io.storage.local_path import LocalPath
    from kafeat.io.storage.object_store import ObjectUri
    from kafeat.jobs.transform.overlaps import InputPlace, OutputPlace, refuse_overlaps, refuse_table_name

    remote = any(isinstance(place, ObjectUri) for place in outputs)
    read: list[InputPlace] = []
    written: list[OutputPlace] = []
    for name, kind, given, place in files:
        match kind.use:
            case "config":
                read += [
                    InputPlace(kind.what, (place,)),
                    InputPlace(f"the rows that {given} names", _rows_of(given)),
                ]
            case "data":
                read.append(InputPlace.of_data(kind.what, place, remote))
            case "file":
                read.append(InputPlace(kind.what, (place,)))
            case "pages":
                from kafeat.jobs.evaluate.report import pages_of

                written += [OutputPlace(name, LocalPath(page)) for page in pages_of(given)]
            case _:
                written.append(OutputPlace(name, place))
                journal = journal_of(place) if kind.use == "search" else None
                if journal is not None:
                    written.append(OutputPlace("a journal", LocalPath(journal)))
    refuse_overlaps(read, written)
    for _, kind, _, place in files:
        if kind.use == "model":
            refuse_table_name(place)


def _files(command: click.Command, values: Mapping[str, Any]) -> Iterator[tuple[str, FileName, str]]:
    """Yield every file among the values: its name in messages, its type and its location."""
    for parameter in command.params:
        if isinstance(parameter.type, FileName):
            name = parameter.opts[0] if isinstance(parameter, click.Option) else parameter.type.what
            paths = values.get(parameter.name or "") or ()
            for place in [paths] if isinstance(paths, str) else paths:
                yield name, parameter.type, place


def _rows_of(config: str) -> tuple[Location, ...]:
    """Return the files of rows that a config names. The command itself reports one that cannot be read."""
    from kafeat.config import load_config

    with suppress(KafeatError):
        given = (rows for step in load_config(config).steps for rows in step.traits.given_rows.values())
        return tuple(located(rows) for rows in given if isinstance(rows, str))
    return ()


def journal_of(place: Location) -> str | None:
    """Return the name of the journal of a search: it lies beside the output if that is a file of this machine."""
    from kafeat.io.storage.local_path import LocalPath

    return f"{place.path}.journal" if isinstance(place, LocalPath) and place.kind() != "other" else None
