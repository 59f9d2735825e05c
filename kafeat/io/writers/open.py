"""What every writer is: memory for a worker to fill, blocks in the order of rows, and an end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from kafeat.errors import UsageError
from kafeat.io.columns.labels import unique
from kafeat.io.storage.atomic import Guard, Written, atomic
from kafeat.io.storage.files import refused
from kafeat.io.storage.formats import OUTPUTS, PIPED, delimiter_of
from kafeat.io.storage.uri import shown
from kafeat.io.writers.base import Layout, Sink

if TYPE_CHECKING:
    import pyarrow as pa

    from kafeat.io.writers.kept import Kept


@contextmanager
def open_sink(
    place: str,
    format: str,
    *,
    names: Sequence[str],
    dtype: np.dtype[Any],
    rows: int | None = None,
    first: int = 0,
    block_rows: int = 8192,
    kept_schema: pa.Schema | None = None,
    layout: Literal["columns", "list", "tensor"] = "columns",
    list_name: str = "features",
    compression: str | None = None,
    metadata: Mapping[str, str] | None = None,
    clobber: bool = True,
    fsync: bool = True,
    delimiter: str = ",",
    header: bool = True,
    nullable: bool = False,
    dropping: bool = False,
    written: Written | None = None,
    sweep: bool = True,
    guard: Guard = nullcontext,
) -> Iterator[Sink]:
    """A sink whose file appears when the block ends without an error; `-` is standard output."""
    delimiter = delimiter_of(place, delimiter)
    kept = None
    if kept_schema is not None and len(kept_schema):
        kept = _kept(shown(place), format, kept_schema)
        kept_schema = kept_schema if kept is None else kept.schema
    wanted = Layout(
        tuple(names), np.dtype(dtype), rows, first, block_rows, kept_schema, layout, list_name, compression,
        dict(metadata or {}), delimiter, header, nullable, dropping, kept,
    )  # fmt: skip
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
        atomic(place, clobber, fsync=fsync, written=written, sweep=sweep, guard=guard) as output,
        _ended(_sink(shown(place), output.path, output.regular, format, wanted)) as sink,
    ):
        yield sink


@contextmanager
def _ended(sink: Sink) -> Iterator[Sink]:
    try:
        sink.begin()
        yield sink
        sink.finish()
    finally:
        sink.close()


def _kept(place: str, format: str, schema: pa.Schema) -> Kept | None:
    from kafeat.io.writers.kept import NAMES, Kept

    return Kept(place, format, schema) if format in NAMES else None


def _sink(place: str, path: str, regular: bool, format: str, layout: Layout) -> Sink:
    if format == "csv":
        from kafeat.io.writers.csv import CsvSink

        return CsvSink(place, path, layout)
    if format == "parquet":
        from kafeat.io.writers.parquet import ParquetSink

        return ParquetSink(path, layout)
    if format == "npy":
        from kafeat.io.writers.npy import NpySink

        return NpySink(place, path, regular, layout)
    if format == "arrow":
        from kafeat.io.writers.arrow_ipc import IpcSink

        return IpcSink(place, path, regular, layout)
    if format == "jsonl":
        from kafeat.io.writers.jsonl import JsonlSink

        return JsonlSink(place, path, layout)
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
