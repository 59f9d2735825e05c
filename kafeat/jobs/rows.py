"""The rows of a source as matrices: what every job that reads features goes through."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from kafeat.io.columns import Columns
from kafeat.io.source import Chunk, Source
from kafeat.sparse import Rows
from kafeat.stream import prefetch


def matrices(
    source: Source, columns: Columns, keep: Sequence[str], chunk_rows: int, dtype: str
) -> Iterator[tuple[Chunk, Rows]]:
    """Chunks and their features (rows, d), sparse where the source is, read ahead."""
    for chunk in prefetch(source.chunks(columns, keep, chunk_rows), 2):
        yield chunk, chunk.numbers(np.dtype(dtype))
