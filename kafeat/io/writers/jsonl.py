"""Writer of JSON lines: an object for each row."""

from __future__ import annotations

import pyarrow as pa

from kafeat.errors import UsageError
from kafeat.io.writers.arrow_columns import columns_of, nulls_of
from kafeat.io.writers.base import Layout, Writer
from kafeat.io.writers.byte_output import TextOutput
from kafeat.io.writers.jsonl_text import Spelling
from kafeat.types import Floats, Mask


class JsonlWriter(Writer):
    """A writer of one object for each row. Every number has the shortest form that reads back to the same value."""

    order = "F"

    def __init__(self, location: str, path: str, layout: Layout) -> None:
        super().__init__(layout)
        if layout.layout == "tensor":
            raise UsageError(f"{location}: expected the layout columns or list for JSON lines, got tensor")
        passthrough = [] if layout.passthrough_schema is None else layout.passthrough_schema.names
        one = layout.list_name if layout.layout == "list" else None
        self._spelling = Spelling(passthrough, layout.names, one)
        self._out = TextOutput(location, path, layout.compression, "JSON lines")

    def _write(self, block: Floats, passthrough: pa.Table | None, good: Mask | None = None) -> None:
        if good is not None:
            block, passthrough = (
                block[good],
                None if passthrough is None else passthrough.filter(pa.array(good)),
            )
        features = columns_of(block, nulls_of(block) if self.layout.nullable else None)
        for text in self._spelling.lines([] if passthrough is None else passthrough.columns, features):
            self._out.write(text)

    def _end(self) -> None:
        self._out.end()

    def close(self) -> None:
        self._out.close()
