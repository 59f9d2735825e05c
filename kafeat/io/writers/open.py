"""Check the layout of an output, and open the writer of its format."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace

from kafeat.errors import UsageError
from kafeat.io.columns.fields import unique
from kafeat.io.formats import FORMATS, Format, delimiter_of, imported, piped, spelled
from kafeat.io.storage.atomic import AtomicFile, atomic, naming
from kafeat.io.storage.base import Location, StandardStream
from kafeat.io.writers.base import Layout, Writer


@contextmanager
def open_writer(
    location: Location,
    format: Format,
    layout: Layout,
    opening: Callable[[Location], AbstractContextManager[AtomicFile]] = atomic,
) -> Iterator[Writer]:
    """Open a writer. Its file appears when the block ends without an error. `-` is standard output.

    `opening` makes the file, as `atomic` does, unless the location is standard output.
    """
    name, layout = str(location), checked(location, format, layout)
    opened: AbstractContextManager[AtomicFile] = nullcontext(AtomicFile("-", regular=False))
    if not isinstance(location, StandardStream):
        opened = opening(location)
    elif not format.piped:
        raise UsageError(f"-: expected {piped()} on standard output, got {format.name}; name a file")
    new = imported(format.writer)
    with naming(location), opened as output, _ended(new(name, output, layout)) as writer:
        yield writer


def checked(location: Location, format: Format, layout: Layout) -> Layout:
    """Return the layout with the types in which the format stores passthrough columns.

    Raise UsageError for columns and options that the format does not support.
    """
    name = str(location)
    layout = replace(layout, delimiter=delimiter_of(location, layout.delimiter))
    _check_options(name, format, layout)
    _check_columns(name, format, layout)
    imported(format.writer).check(name, layout)
    if layout.passthrough_names and format.passthrough == "columns":
        from kafeat.io.writers.passthrough import PassthroughColumns

        passthrough = PassthroughColumns(name, format, layout.passthrough_schema)
        layout = replace(layout, passthrough_schema=passthrough.schema, passthrough=passthrough)
    return layout


@contextmanager
def _ended(writer: Writer) -> Iterator[Writer]:
    try:
        writer.begin()
        yield writer
        writer.finish()
    finally:
        writer.close()


def _check_options(location: str, format: Format, layout: Layout) -> None:
    """Raise UsageError for options that the format does not have."""
    title = format.title
    if layout.list_name is not None and not format.lists:
        lists = spelled(
            (one.title for one in FORMATS.values() if one.lists and one.passthrough == "columns"), "and"
        )
        raise UsageError(f"{location}: expected the columns layout for {title}, got list; {lists} hold lists")
    if layout.nullable and format.sparse:
        raise UsageError(
            f"{location}: expected --on-bad-rows error or drop for {title}, got null: sparse rows have no nulls"
        )
    if layout.compression not in (None, *format.compressions):
        some = (
            f"a compression of {spelled(format.compressions)}"
            if len(format.compressions) > 1
            else "no compression"
        )
        raise UsageError(f"{location}: expected {some} for {title}, got {layout.compression!r}")


def _check_columns(location: str, format: Format, layout: Layout) -> None:
    """Raise UsageError for passthrough columns if the format has none, and for columns with the same name."""
    passthrough = layout.passthrough_names
    features = list(layout.names) if layout.list_name is None else [layout.list_name]
    both = [name for name in passthrough if name in set(features)]
    if both:
        raise UsageError(
            f"{location}: expected passthrough columns with other names than the features, got {', '.join(both)}; "
            "choose another prefix for the features"
        )
    if passthrough and format.passthrough == "none":
        raise UsageError(
            f"{location}: expected no passthrough columns in {format.title}, got {', '.join(passthrough)}"
        )
    if not unique(passthrough):
        raise UsageError(f"{location}: expected every passthrough column once, got {', '.join(passthrough)}")
