"""The base class of writers, and the layout of an output."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from kafeat.contract.tile import Rows
from kafeat.io.storage.atomic import AtomicFile
from kafeat.types import Floats, Mask

if TYPE_CHECKING:
    import pyarrow as pa

    from kafeat.io.writers.passthrough import PassthroughColumns


@dataclass(frozen=True)
class Layout:
    """The columns of an output, and how to write them: passthrough columns first, then the features."""

    names: Sequence[str]
    dtype: np.dtype[Any]
    rows: int | None = None
    first: int = 0
    """Row number, in the input, of the first row to write. `start` in `buffer` and `filled` also counts input rows."""
    block_rows: int = 8192
    """Number of rows of every block except the last, which may have fewer."""
    passthrough_schema: pa.Schema | None = None
    list_name: str | None = None
    """Name of the one column of lists, or None if each feature has a column."""
    compression: str | None = None
    """The compression, or None to let the format and the suffix decide."""
    metadata: Mapping[str, str] = field(default_factory=dict)
    delimiter: str = ","
    nullable: bool = False
    """True if some rows may have no features (all NaN). Formats with nulls write nulls for them."""
    dropping: bool = False
    """True if rows may be dropped, so that a row's position in the output is not known in advance."""
    passthrough: PassthroughColumns | None = None
    """Converts passthrough columns to `passthrough_schema`."""

    @property
    def passthrough_names(self) -> list[str]:
        return [] if self.passthrough_schema is None else list(self.passthrough_schema.names)


class Writer(ABC):
    """An open output: `begin`, then `write` for each block, then `finish` and `close`.

    `location` names it in messages, and the bytes go to `file`.
    """

    wants: Literal["C", "F"] = "C"
    """The memory order in which blocks are written fastest."""

    def __init__(self, location: str, file: AtomicFile, layout: Layout) -> None:
        self.location, self.file, self.layout = location, file, layout
        self._finished = False

    @classmethod
    def check(cls, location: str, layout: Layout) -> None:  # noqa: ARG003  # for formats that have rules
        """Raise UsageError for a layout that the format does not support, before a file is opened."""
        return

    def begin(self) -> None:
        return

    def buffer(self, start: int, rows: int) -> Floats:
        """Return memory (rows, d) for the features of rows `start` to `start + rows`, which a worker then fills."""
        return np.empty((rows, len(self.layout.names)), self.layout.dtype, order=self.wants)

    def filled(self, start: int, block: Floats) -> None:
        """A worker calls this in its thread when it has filled a buffer. A subclass may write the block early."""
        return

    def write(self, block: Rows, passthrough: pa.Table | None, good: Mask | None = None) -> None:
        """Write the next rows, or only the `good` ones, with their features and their passthrough columns.

        Sparse rows are for sparse formats only. For a value that the format cannot store, raise InvalidValueError with
        the number of its row in the block.
        """
        if passthrough is not None:
            if self.layout.passthrough is not None:
                passthrough = self.layout.passthrough.table(passthrough, good)
            passthrough = passthrough if good is None else passthrough.filter(good)
        self._write(block, passthrough, good)

    @abstractmethod
    def _write(self, block: Any, passthrough: pa.Table | None, good: Mask | None) -> None:
        """Write the `good` rows of a block (None: all). `passthrough` has only the good rows."""

    def finish(self) -> None:
        """Write waiting rows and the end of the file. A second call does nothing."""
        if not self._finished:
            self._finished = True
            self._end()

    @abstractmethod
    def _end(self) -> None: ...

    @abstractmethod
    def close(self) -> None:
        """Close the file, whether finished or not."""
