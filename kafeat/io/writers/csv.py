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

    def __init__(self, location: str, path: str, layout: Layout) -> None:
        super().__init__(layout)
        if layout.layout != "columns":
            raise UsageError(
                f"{location}: expected the columns layout for CSV, got {layout.layout}; Parquet, Arrow and JSON lines "
                "hold lists"
            )
        self._out = TextOutput(location, path, layout.compression, "CSV")

    def begin(self) -> None:
        if self.layout.header:
            passthrough = (
                [] if self.layout.passthrough_schema is None else self.layout.passthrough_schema.names
            )
            self._out.write(header([*passthrough, *self.layout.names], self.layout.delimiter))

    def _write(self, block: Floats, passthrough: pa.Table | None, good: Mask | None = None) -> None:
        if good is not None:
            block, passthrough = (
                block[good],
                None if passthrough is None else passthrough.filter(pa.array(good)),
            )
        features = columns_of(block, nulls_of(block) if self.layout.nullable else None)
        for text in lines(
            [] if passthrough is None else passthrough.columns, features, self.layout.delimiter
        ):
            self._out.write(text)

    def _end(self) -> None:
        self._out.end()

    def close(self) -> None:
        self._out.close()
