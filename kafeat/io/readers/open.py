"""Open an input in the format of its name or its first bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafeat.errors import UsageError
from kafeat.io.formats import FORMATS, INPUTS, delimiter_of, format_of, format_of_bytes, imported, spelled
from kafeat.io.storage.base import Location, StandardStream

if TYPE_CHECKING:
    from kafeat.io.readers.base import Reader


def open_reader(
    location: Location,
    format: str | None = None,
    *,
    delimiter: str = ",",
    header: bool = True,
    stamp: str | None = None,
) -> Reader:
    """Open a file, an object or standard input, as a context manager. Arrow on standard input is recognised.

    `stamp` is the stamp of the file when it was listed. Without it, the file must not change from now on.
    """
    if stamp is None:
        entry = location.entry()
        stamp = None if entry is None else entry.stamp
    reader = _reader(location, format, delimiter, header)
    reader.origin = None if stamp is None else (location, stamp)
    return reader


def _reader(location: Location, given: str | None, delimiter: str, header: bool) -> Reader:
    format = format_of(location, given, INPUTS)
    if not format.reader:
        raise UsageError(
            f"{location}: expected an input format of {', '.join(INPUTS)}, got {format.name}: it is written only"
        )
    options: dict[str, Any] = {}
    if isinstance(location, StandardStream):
        if not format.piped:
            piped = spelled(one.title for one in FORMATS.values() if one.piped and one.reader)
            raise UsageError(f"-: expected {piped} on standard input, got {format.name}: it cannot be piped")
        if given is None:
            from kafeat.io.readers.text_stream import HashingStream

            options["raw"] = HashingStream(location)
            found = format_of_bytes(options["raw"].magic)
            format = found if found is not None and found.piped else format
    if format.name == "csv":
        options |= {"delimiter": delimiter_of(location, delimiter), "header": header}
    reader: Reader = imported(format.reader)(location, **options)
    return reader
