"""What every writer is: memory for a worker to fill, blocks in the order of rows, and an end."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from kafeat.errors import UsageError
from kafeat.io.files import refused
from kafeat.io.formats import OUTPUTS, PIPED, delimiter_of
from kafeat.io.names import unique
from kafeat.io.output import Guard, Written, atomic
from kafeat.io.uri import shown
from kafeat.types import Floats, Mask

if TYPE_CHECKING:
    import pyarrow as pa

    from kafeat.io.kept import Kept


@dataclass(frozen=True)
class Layout:
    """What an output holds: kept columns first, then the features."""

    names: Sequence[str]
    dtype: np.dtype[Any]
    rows: int | None = None
    first: int = 0
    """Number of the first row: blocks say where they start in the input."""
    block_rows: int = 8192
    """No block is higher; only the last one is lower."""
    kept_schema: pa.Schema | None = None
    layout: Literal["columns", "list", "tensor"] = "columns"
    list_name: str = "features"
    compression: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    delimiter: str = ","
    header: bool = True
    nullable: bool = False
    """Rows of features may be NaN, and are written as nulls where the format has them."""
    dropping: bool = False
    """Rows may be left out, so that a row's number does not tell its place."""
    kept: Kept | None = None
    """What makes kept columns those of `kept_schema`."""


class Sink(ABC):
    """An output that is open."""

    order: ClassVar[Literal["C", "F"]] = "C"
    """The memory order in which blocks are written fastest."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.wants: Literal["C", "F"] = self.order
        self._finished = False

    def begin(self) -> None:
        """Write what comes before the rows."""
        return

    def buffer(self, start: int, rows: int) -> Floats:
        """Memory for output rows `start` to `start + rows`, for a worker to fill and `write` to take."""
        del start
        return np.empty((rows, len(self.layout.names)), self.layout.dtype, order=self.wants)

    def filled(self, start: int, block: Floats) -> None:
        """Called by the worker that has filled a buffer: it may write it then and there, where places are known."""
        return

    def write(self, block: Floats, kept: pa.Table | None, good: Mask | None = None) -> None:
        """The next rows: their features, and their kept columns if there are any; just those that are `good`.

        ValueRefused, its row counted from the first of these, for a kept value that the format cannot hold.
        """
        if kept is not None and self.layout.kept is not None:
            kept = self.layout.kept.table(kept, good)
        self._write(block, kept, good)

    @abstractmethod
    def _write(self, block: Floats, kept: pa.Table | None, good: Mask | None) -> None: ...

    def finish(self) -> None:
        """Write what is left; a second call does nothing."""
        if not self._finished:
            self._finished = True
            self._end()

    @abstractmethod
    def _end(self) -> None: ...

    @abstractmethod
    def close(self) -> None:
        """Let go of the file, finished or not."""


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
    from kafeat.io.kept import NAMES, Kept

    return Kept(place, format, schema) if format in NAMES else None


def _sink(place: str, path: str, regular: bool, format: str, layout: Layout) -> Sink:
    if format == "csv":
        from kafeat.io.csv_sink import CsvSink

        return CsvSink(place, path, layout)
    if format == "parquet":
        from kafeat.io.parquet_sink import ParquetSink

        return ParquetSink(path, layout)
    if format == "npy":
        from kafeat.io.npy_sink import NpySink

        return NpySink(place, path, regular, layout)
    if format == "arrow":
        from kafeat.io.ipc_sink import IpcSink

        return IpcSink(place, path, regular, layout)
    if format == "jsonl":
        from kafeat.io.jsonl_sink import JsonlSink

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
