"""The base class of writers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from kafeat.io.writers.options import OutputOptions
from kafeat.types import Floats, Mask

if TYPE_CHECKING:
    import pyarrow as pa

    from kafeat.io.writers.passthrough import PassthroughColumns


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
    options: OutputOptions = field(default_factory=OutputOptions)
    metadata: Mapping[str, str] = field(default_factory=dict)
    delimiter: str = ","
    header: bool = True
    nullable: bool = False
    """Rows of features may be NaN, and are written as nulls where the format has them."""
    dropping: bool = False
    """Rows may be left out, so that a row's number does not tell its place."""
    kept: PassthroughColumns | None = None
    """What makes kept columns those of `kept_schema`."""

    @property
    def layout(self) -> Literal["columns", "list", "tensor"]:
        """One column for each feature, one column of lists, or one of tensors."""
        return self.options.layout

    @property
    def list_name(self) -> str:
        """Name of the column of lists or tensors."""
        return self.options.list_name

    @property
    def compression(self) -> str | None:
        """Compression; None is the default of the format."""
        return self.options.compression


class Writer(ABC):
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
