"""Compare every output of a command with every file it reads, before the command starts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import click

from kafeat.cli.options import FileName


def refuse_overlaps_of(command: click.Command, values: Mapping[str, Any]) -> None:
    """Refuse parameters with which an output would replace an input or another output."""
    files = list(_files(command, values))
    outputs = [place for _, kind, place in files if kind.written]
    if not outputs:
        return
    from kafeat.io.storage.location import parse_location
    from kafeat.io.storage.object_store import is_remote
    from kafeat.jobs.transform.overlaps import InputPlace, OutputPlace, refuse_overlaps, refuse_table_name

    remote = any(map(is_remote, outputs))
    read: list[InputPlace] = []
    written: list[OutputPlace] = []
    for name, kind, place in files:
        match kind.use:
            case "config":
                read += InputPlace.of_config(kind.what, place)
            case "data":
                read.append(InputPlace.of_data(kind.what, parse_location(place), remote))
            case "file":
                read.append(InputPlace(kind.what, (parse_location(place),)))
            case "pages":
                from kafeat.study.report.document import pages_of

                written += [OutputPlace(name, parse_location(page)) for page in pages_of(place)]
            case _:
                written.append(OutputPlace(name, parse_location(place)))
                journal = journal_of(place) if kind.use == "search" else None
                if journal is not None:
                    written.append(OutputPlace("a journal", parse_location(journal)))
    refuse_overlaps(read, written)
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


def journal_of(place: str) -> str | None:
    """Return the name of the journal of a search: it lies beside the output if that is a file of this machine."""
    from kafeat.io.storage.local_path import LocalPath
    from kafeat.io.storage.location import parse_location

    output = parse_location(place)
    return f"{output.path}.journal" if isinstance(output, LocalPath) and output.kind() != "other" else None
