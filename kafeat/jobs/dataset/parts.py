"""List the parts of a run, and reject what is impossible for all parts before anything is written."""

from __future__ import annotations

from dataclasses import replace
from itertools import takewhile

from kafeat.errors import KafeatError, UsageError
from kafeat.io.data_set import Part, renamed, stem
from kafeat.io.formats import FORMATS, format_of_part, spelled
from kafeat.io.storage.base import StandardStream
from kafeat.jobs.dataset.request import DatasetRequest
from kafeat.jobs.transform.transform import OpenTransform

_MOST_LOOKED_AT = 8
"""At most this many parts, evenly spread, are opened before a run. If all of them fail, the run does not start."""


def plan_parts(request: DatasetRequest) -> list[Part] | None:
    """List the parts of the input. Return None for text, which is cut into parts while it is read."""
    request.rules.check(request.map)
    files = request.files if request.rows_per_file is None else None
    if files is not None:
        parts: list[Part] | None = renamed(
            files.parts, request.writing.output_format, request.reading.input_format
        )
    else:
        parts = _ranges(request)
    if parts is None:
        _refuse_for_text(request)
    if parts is not None or request.source.kind() == "file":
        # For text, only check the first part, because later parts are unknown until all text is read.
        _refuse_request(
            request, parts or [replace(Part.of(request.source), name=name_of_part(request, 0, 1))]
        )
    return parts


def _refuse_request(request: DatasetRequest, parts: list[Part]) -> None:
    """Try some of the parts, and refuse a request that is impossible for all of them, such as for a missing column."""
    some = parts[:: -(-len(parts) // _MOST_LOOKED_AT)]
    refusals = list(
        takewhile(lambda refusal: refusal is not None, (_refusal(request, part) for part in some))
    )
    if len(refusals) == len(some) and refusals[0] is not None:
        raise refusals[0]


def _refusal(request: DatasetRequest, part: Part) -> KafeatError | None:
    """Return an error if the request is impossible for a part, and None if it is possible or the part is damaged."""
    target = request.target.join(part.name)
    try:
        opened = request.reading.open_file(part, fitted=request.map.columns.file_dialect)
    except UsageError as error:
        return error
    except (KafeatError, OSError, MemoryError):
        return None  # a damaged file does not stop the run
    with opened:
        try:
            OpenTransform(request.job, opened, target).check(target)
        except KafeatError as error:
            return error
    return None


def _refuse_for_text(request: DatasetRequest) -> None:
    """Refuse options that do not work with text, whose rows are divided into parts while they are read."""
    cut = spelled(one.title for one in FORMATS.values() if one.split)
    if not request.engine.in_this_process:
        raise UsageError(
            f"{request.source}: expected {cut} for --engine {request.engine.name}, got text, in which a row can only "
            "be found by reading all rows before it; use --engine threads"
        )
    if request.rules.rejects is not None:
        raise UsageError(f"--rejects: expected {cut} with --rows-per-file, got text")


def _ranges(request: DatasetRequest) -> list[Part] | None:
    """Return ranges of rows as parts, or None if the input can only be read from its first row on."""
    source, chunk_rows, rows = request.source, request.map.chunk_rows, request.rows_per_file or 0
    if rows < chunk_rows:
        raise UsageError(
            f"--rows-per-file: expected at least {chunk_rows:,}, the rows of one chunk of the map, got {rows:,}"
        )
    whole = Part.of(source)
    if not whole.stamp:
        return None
    with request.job.opened(whole) as opened:
        if opened.rows is None or not opened.seekable:
            return None
        height = rows - rows % chunk_rows
        starts = range(0, max(1, opened.rows), height)
        return [
            replace(
                whole,
                name=name_of_part(request, i, len(starts)),
                only=(start, min(start + height, opened.rows)),
            )
            for i, start in enumerate(starts)
        ]


def name_of_part(request: DatasetRequest, number: int, parts: int) -> str:
    """Return the name of an output part by its number. The total number of `parts` sets the number of digits."""
    format = format_of_part(request.source, request.reading.input_format, request.writing.output_format)
    base = "part" if isinstance(request.source, StandardStream) else stem(request.source.name)
    return f"{base}-{number:0{max(5, len(str(parts)))}d}.{format.name}"
