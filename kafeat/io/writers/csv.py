"""Writer of CSV files and standard output."""

from __future__ import annotations

import pyarrow as pa

from kafeat.errors import UsageError
from kafeat.io.writers.arrow_columns import columns_of, nulls_of
from kafeat.io.writers.base import Layout, Writer
from kafeat.io.writers.byte_output import TextOutput
from kafeat.io.writers.csv_text import header, lines
from kafeat.types import Floats, Mask


class CsvWriter(Writer):
    """A writer of one line for each row. Every number has the shortest form that reads back to the same value."""

    order = "F"

    def __init__(self, place: str, path: str, layout: Layout) -> None:
        super().__init__(layout)
        if layout.layout != "columns":
            raise UsageError(
                f"{place}: expected the columns layout for CSV, got {layout.layout}; Parquet, Arrow and JSON lines "
                "hold lists"
            )
        self._out = TextOutput(place, path, layout.compression, "CSV")

    def begin(self) -> None:
        if self.layout.header:
            kept = [] if self.layout.kept_schema is None else self.layout.kept_schema.names
            self._out.write(header([*kept, *self.layout.names], self.layout.delimiter))

    def _write(self, block: Floats, kept: pa.Table | None, good: Mask | None = None) -> None:
        if good is not None:
            block, kept = block[good], None if kept is None else kept.filter(pa.array(good))
        features = columns_of(block, nulls_of(block) if self.layout.nullable else None)
        for text in lines([] if kept is None else kept.columns, features, self.layout.delimiter):
            self._out.write(text)

    def _end(self) -> None:
        self._out.end()

    def close(self) -> None:
        self._out.close()
