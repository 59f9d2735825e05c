"""The rows of a source as matrices: what every job that reads features goes through."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from kafeat.io.source import Chunk
from kafeat.sparse import Rows
from kafeat.stream import prefetch


def matrices(
    chunks: Iterator[Chunk], dtype: np.dtype[Any], of_missing: str = ""
) -> Iterator[tuple[Chunk, Rows]]:
    """Chunks and their features (rows, d), sparse where the source is, read ahead.

    `of_missing` is advice for errors about missing values.
    """
    for chunk in prefetch(chunks, 2):
        yield chunk, chunk.numbers(dtype, of_missing)
