"""JSON lines: an object for each row."""

from __future__ import annotations

import pyarrow as pa

from kafeat.errors import UsageError, quoted
from kafeat.io.columnar import columns_of, nulls_of
from kafeat.io.jsonl_text import Spelling, spelled
from kafeat.io.pour import TextOut
from kafeat.io.sink import Layout, Sink
from kafeat.types import Floats, Mask


class JsonlSink(Sink):
    """Text, one object a line, every number in the shortest form that reads back to the same value."""

    order = "F"

    def __init__(self, place: str, path: str, layout: Layout) -> None:
        super().__init__(layout)
        if layout.layout == "tensor":
            raise UsageError(f"{place}: expected the layout columns or list for JSON lines, got tensor")
        kept = [] if layout.kept_schema is None else list(layout.kept_schema)
        for field in kept:
            if not spelled(field.type):
                raise UsageError(
                    f"{place}: column {quoted(field.name)}: expected a kept column that JSON can spell, "
                    f"got {field.type}; leave it out, or write Parquet"
                )
        one = layout.list_name if layout.layout == "list" else None
        self._spelling = Spelling([field.name for field in kept], layout.names, one)
        self._out = TextOut(place, path, layout.compression, "JSON lines")

    def write(self, block: Floats, kept: pa.Table | None, good: Mask | None = None) -> None:
        if good is not None:
            block, kept = block[good], None if kept is None else kept.filter(pa.array(good))
        features = columns_of(block, nulls_of(block) if self.layout.nullable else None)
        for text in self._spelling.lines([] if kept is None else kept.columns, features):
            self._out.write(text)

    def _end(self) -> None:
        self._out.end()

    def close(self) -> None:
        self._out.close()
