"""The rows of a source as matrices: what every job that reads features goes through."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kafeat.io.source import Chunk
from kafeat.stream import prefetch
from kafeat.types import Floats


def matrices(chunks: Iterator[Chunk], dtype: str) -> Iterator[tuple[Chunk, Floats]]:
    """Chunks and their features (rows, d), read ahead."""
    for chunk in prefetch(chunks, 2):
        yield chunk, chunk.matrix(np.dtype(dtype))
