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

    def __init__(self, place: str, path: str, layout: Layout) -> None:
        super().__init__(layout)
        if layout.layout == "tensor":
            raise UsageError(f"{place}: expected the layout columns or list for JSON lines, got tensor")
        kept = [] if layout.kept_schema is None else layout.kept_schema.names
        one = layout.list_name if layout.layout == "list" else None
        self._spelling = Spelling(kept, layout.names, one)
        self._out = TextOutput(place, path, layout.compression, "JSON lines")

    def _write(self, block: Floats, kept: pa.Table | None, good: Mask | None = None) -> None:
        if good is not None:
            block, kept = block[good], None if kept is None else kept.filter(pa.array(good))
        features = columns_of(block, nulls_of(block) if self.layout.nullable else None)
        for text in self._spelling.lines([] if kept is None else kept.columns, features):
            self._out.write(text)

    def _end(self) -> None:
        self._out.end()

    def close(self) -> None:
        self._out.close()
