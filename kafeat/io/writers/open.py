"""What every writer is: memory for a worker to fill, blocks in the order of rows, and an end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from kafeat.errors import UsageError
from kafeat.io.columns.labels import unique
from kafeat.io.storage.atomic import WrittenFile, atomic
from kafeat.io.storage.files import refused
from kafeat.io.storage.formats import OUTPUTS, PIPED, delimiter_of
from kafeat.io.storage.uri import shown
from kafeat.io.writers.base import Layout, Writer

if TYPE_CHECKING:
    import pyarrow as pa

    from kafeat.io.writers.passthrough import PassthroughColumns


@contextmanager
def open_writer(
    place: str, format: str, layout: Layout, written: WrittenFile | None = None
) -> Iterator[Writer]:
    """Open a writer. Its file appears when the block ends without an error. `-` is standard output."""
    options = layout.options
    kept = None
    if layout.kept_schema is not None and len(layout.kept_schema):
        kept = _kept(shown(place), format, layout.kept_schema)
    wanted = replace(
        layout,
        kept_schema=layout.kept_schema if kept is None else kept.schema,
        delimiter=delimiter_of(place, layout.delimiter),
        kept=kept,
    )
    _refuse_clash(shown(place), wanted)
    if place == "-":
        if format not in PIPED:
            raise UsageError(
                f"-: expected CSV, Arrow or JSON lines on standard output, got {format}; name a file"
            )
        try:
            with _ended(_sink("-", "-", False, format, wanted)) as sink:
                yield sink
        except BrokenPipeError:
            raise
        except OSError as error:
            raise refused("-", error) from error
        return
    with (
        atomic(
            place,
            options.overwrite,
            fsync=options.fsync,
            written=written,
            sweep=options.sweep,
            guard=options.guard,
        ) as output,
        _ended(_sink(shown(place), output.path, output.regular, format, wanted)) as sink,
    ):
        yield sink


@contextmanager
def _ended(sink: Writer) -> Iterator[Writer]:
    try:
        sink.begin()
        yield sink
        sink.finish()
    finally:
        sink.close()


def _kept(place: str, format: str, schema: pa.Schema) -> PassthroughColumns | None:
    from kafeat.io.writers.passthrough import NAMES, PassthroughColumns

    return PassthroughColumns(place, format, schema) if format in NAMES else None


def _sink(place: str, path: str, regular: bool, format: str, layout: Layout) -> Writer:
    if format == "csv":
        from kafeat.io.writers.csv import CsvWriter

        return CsvWriter(place, path, layout)
    if format == "parquet":
        from kafeat.io.writers.parquet import ParquetWriter

        return ParquetWriter(path, layout)
    if format == "npy":
        from kafeat.io.writers.npy import NpyWriter

        return NpyWriter(place, path, regular, layout)
    if format == "arrow":
        from kafeat.io.writers.arrow_ipc import ArrowWriter

        return ArrowWriter(place, path, regular, layout)
    if format == "jsonl":
        from kafeat.io.writers.jsonl import JsonlWriter

        return JsonlWriter(place, path, layout)
    raise UsageError(f"{place}: expected an output format of {', '.join(OUTPUTS)}, got {format!r}")


def _refuse_clash(place: str, wanted: Layout) -> None:
    if wanted.layout not in ("columns", "list", "tensor"):
        raise UsageError(f"{place}: expected the layout columns, list or tensor, got {wanted.layout!r}")
    kept = [] if wanted.kept_schema is None else list(wanted.kept_schema.names)
    features = list(wanted.names) if wanted.layout == "columns" else [wanted.list_name]
    both = [name for name in kept if name in set(features)]
    if both:
        raise UsageError(
            f"{place}: expected kept columns with other names than the features, got {', '.join(both)}; "
            "choose another prefix for the features"
        )
    if not unique(kept):
        raise UsageError(f"{place}: expected every kept column once, got {', '.join(kept)}")
