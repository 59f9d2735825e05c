"""Compare every output of a command with every file it reads, before the command starts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from kafeat.cli.options import FileName

if TYPE_CHECKING:
    from kafeat.jobs.transform.overlaps import InputPlace, OutputPlace


def refuse_overlaps_of(command: click.Command, values: Mapping[str, Any]) -> None:
    """Refuse parameters with which an output would replace an input or another output."""
    files = list(_files(command, values))
    outputs = [place for _, kind, place in files if kind.written]
    if not outputs:
        return
    from kafeat.io.storage.location import parse_location
    from kafeat.io.storage.object_store import is_remote
    from kafeat.jobs.transform.overlaps import refuse_overlaps, refuse_table_name

    remote = any(map(is_remote, outputs))
    refuse_overlaps(
        [read for _, kind, place in files for read in _read(kind, place, remote)],
        [written for name, kind, place in files for written in _written(name, kind, place)],
    )
    for _, kind, place in files:
        if kind.use == "model":
            refuse_table_name(parse_location(place))


def _files(command: click.Command, values: Mapping[str, Any]) -> Iterator[tuple[str, FileName, str]]:
    """Yield every file among the values: its name in messages, its type and its location."""
    for parameter in command.params:
        if isinstance(parameter.type, FileName):
            name = parameter.opts[0] if isinstance(parameter, click.Option) else parameter.type.what
            paths = values.get(parameter.name or "") or ()
            for place in [paths] if isinstance(paths, str) else paths:
                yield name, parameter.type, place


def _read(kind: FileName, place: str, remote: bool) -> list[InputPlace]:
    from kafeat.io.storage.location import parse_location
    from kafeat.jobs.transform.overlaps import InputPlace

    if kind.use == "config":
        return InputPlace.of_config(kind.what, place)
    if kind.use == "data":
        return [InputPlace.of_data(kind.what, parse_location(place), remote)]
    return [] if kind.written else [InputPlace(kind.what, (parse_location(place),))]


def _written(name: str, kind: FileName, place: str) -> list[OutputPlace]:
    from kafeat.io.storage.location import parse_location
    from kafeat.jobs.transform.overlaps import OutputPlace

    if kind.use == "pages":
        from kafeat.jobs.evaluate.report import pages_of

        return [OutputPlace(name, parse_location(page)) for page in pages_of(place)]
    if kind.use == "search":
        journal = journal_of(place)
        return [
            OutputPlace(name, parse_location(place)),
            *([] if journal is None else [OutputPlace("a journal", parse_location(journal))]),
        ]
    return [OutputPlace(name, parse_location(place))] if kind.written else []


def journal_of(place: str) -> str | None:
    """Return the name of the journal of a search: it lies beside the output if that is a file of this machine."""
    from kafeat.io.storage.local_path import LocalPath
    from kafeat.io.storage.location import parse_location

    output = parse_location(place)
    return f"{output.path}.journal" if isinstance(output, LocalPath) and output.kind() != "other" else None
