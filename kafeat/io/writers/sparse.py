"""Base of the writers of sparse formats: rows of features without those that are 0."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

import numpy as np

from kafeat.contract.tile import SparseRows
from kafeat.errors import UsageError
from kafeat.io.writers.base import Layout, Writer
from kafeat.types import Floats, Mask

if TYPE_CHECKING:
    import pyarrow as pa


class SparseWriter(Writer):
    """A writer of sparse rows. It takes dense ones too, for maps whose features are dense."""

    def __init__(self, location: str, layout: Layout, format: str) -> None:
        super().__init__(layout)
        if layout.layout != "columns":
            raise UsageError(
                f"{location}: expected the columns layout for {format}, got {layout.layout}; Parquet, Arrow and JSON "
                "lines hold lists"
            )
        if layout.nullable:
            raise UsageError(
                f"{location}: expected --on-bad-rows error or drop for {format}, got null: sparse rows have no nulls"
            )

    def write_sparse(self, rows: SparseRows, passthrough: pa.Table | None, good: Mask | None = None) -> None:
        """Write the next rows, or only those that are `good`."""
        if good is not None:
            rows = rows[good]
            passthrough = None if passthrough is None else passthrough.filter(good)
        self._write_rows(rows, passthrough, good)

    def _write(self, block: Floats, passthrough: pa.Table | None, good: Mask | None) -> None:
        self._write_rows(_without_zeros(block if good is None else block[good]), passthrough, good)

    @abstractmethod
    def _write_rows(self, rows: SparseRows, passthrough: pa.Table | None, good: Mask | None) -> None:
        """Write rows. They and `passthrough` are the good ones of a block already; `good` tells which these are."""


def _without_zeros(block: Floats) -> SparseRows:
    rows, columns = np.nonzero(block)
    starts = np.append(0, np.cumsum(np.bincount(rows, minlength=len(block))))
    return SparseRows(block[rows, columns], columns, starts, block.shape[1])
