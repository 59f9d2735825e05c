"""Open an output in its format. The modules of writers are imported on use."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from kafeat.errors import UsageError
from kafeat.io.columns.fields import unique
from kafeat.io.storage.atomic import WrittenFile, atomic
from kafeat.io.storage.base import Location, StandardStream
from kafeat.io.storage.files import refused
from kafeat.io.storage.formats import OUTPUTS, PIPED, delimiter_of
from kafeat.io.writers.base import Layout, Writer

if TYPE_CHECKING:
    import pyarrow as pa

    from kafeat.io.writers.passthrough import PassthroughColumns


@contextmanager
def open_writer(
    location: Location, format: str, layout: Layout, written: WrittenFile | None = None
) -> Iterator[Writer]:
    """Open a writer. Its file appears when the block ends without an error. `-` is standard output."""
    options, name = layout.options, str(location)
    passthrough = None
    if layout.passthrough_schema is not None and len(layout.passthrough_schema):
        passthrough = _passthrough(name, format, layout.passthrough_schema)
    chosen = replace(
        layout,
        passthrough_schema=layout.passthrough_schema if passthrough is None else passthrough.schema,
        delimiter=delimiter_of(location, layout.delimiter),
        passthrough=passthrough,
    )
    _refuse_clash(name, chosen)
    if isinstance(location, StandardStream):
        if format not in PIPED:
            raise UsageError(
                f"-: expected CSV, Arrow, JSON lines or LIBSVM on standard output, got {format}; name a file"
            )
        try:
            with _ended(_writer("-", "-", False, format, chosen)) as writer:
                yield writer
        except BrokenPipeError:
            raise
        except OSError as error:
            raise refused("-", error) from error
        return
    with (
        atomic(
            location,
            options.overwrite,
            fsync=options.fsync,
            written=written,
            sweep=options.sweep,
            guard=options.guard,
        ) as output,
        _ended(_writer(name, output.path, output.regular, format, chosen)) as writer,
    ):
        yield writer


@contextmanager
def _ended(writer: Writer) -> Iterator[Writer]:
    try:
        writer.begin()
        yield writer
        writer.finish()
    finally:
        writer.close()


def _passthrough(location: str, format: str, schema: pa.Schema) -> PassthroughColumns | None:
    from kafeat.io.writers.passthrough import NAMES, PassthroughColumns

    return PassthroughColumns(location, format, schema) if format in NAMES else None


def _writer(location: str, path: str, regular: bool, format: str, layout: Layout) -> Writer:
    if format == "csv":
        from kafeat.io.writers.csv import CsvWriter

        return CsvWriter(location, path, layout)
    if format == "parquet":
        from kafeat.io.writers.parquet import ParquetWriter

        return ParquetWriter(path, layout)
    if format == "npy":
        from kafeat.io.writers.npy import NpyWriter

        return NpyWriter(location, path, regular, layout)
    if format == "arrow":
        from kafeat.io.writers.arrow_ipc import ArrowWriter

        return ArrowWriter(location, path, regular, layout)
    if format == "jsonl":
        from kafeat.io.writers.jsonl import JsonlWriter

        return JsonlWriter(location, path, layout)
    if format == "libsvm":
        from kafeat.io.writers.libsvm import LibsvmWriter

        return LibsvmWriter(location, path, layout)
    if format == "npz":
        from kafeat.io.writers.npz import NpzWriter

        return NpzWriter(location, path, regular, layout)
    raise UsageError(f"{location}: expected an output format of {', '.join(OUTPUTS)}, got {format!r}")


def _refuse_clash(location: str, chosen: Layout) -> None:
    if chosen.layout not in ("columns", "list"):
        raise UsageError(f"{location}: expected the layout columns or list, got {chosen.layout!r}")
    passthrough = chosen.passthrough_names
    features = list(chosen.names) if chosen.layout == "columns" else [chosen.list_name]
    both = [name for name in passthrough if name in set(features)]
    if both:
        raise UsageError(
            f"{location}: expected passthrough columns with other names than the features, got {', '.join(both)}; "
            "choose another prefix for the features"
        )
    if not unique(passthrough):
        raise UsageError(f"{location}: expected every passthrough column once, got {', '.join(passthrough)}")
