"""Rows of a CSV with too few or too many fields: kept as rows of nulls, so that the numbers of the others stay."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Protocol

import pyarrow as pa


class _Invalid(Protocol):
    """What the reader tells of such a row; `number` counts rows from 1, such ones among them."""

    number: int
    expected_columns: int
    actual_columns: int
    text: str


class Ragged:
    """Takes such rows out of the reader's hands, and puts rows of nulls in their places."""

    def __init__(self) -> None:
        self.problems: dict[int, tuple[str, str]] = {}
        """What is wrong with a row, and its text, by its number from 0, headers counted."""
        self._waiting: deque[int] = deque()

    def take(self, row: _Invalid) -> str:
        """For the reader."""
        problem = f"expected {row.expected_columns} fields, got {row.actual_columns}"
        self.problems[row.number - 1] = problem, row.text
        self._waiting.append(row.number - 1)
        return "skip"

    def woven(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The batches with a row of nulls for each row that was taken."""
        row, null = 0, None
        for batch in batches:
            null = pa.RecordBatch.from_arrays(
                [pa.nulls(1, f.type) for f in batch.schema], schema=batch.schema
            )
            done = 0
            while done < batch.num_rows or (self._waiting and self._waiting[0] == row):
                if self._waiting and self._waiting[0] == row:
                    self._waiting.popleft()
                    yield null
                    row += 1
                    continue
                most = batch.num_rows - done
                run = min(most, self._waiting[0] - row) if self._waiting else most
                yield batch.slice(done, run)
                done, row = done + run, row + run
        while null is not None and self._waiting:
            self._waiting.popleft()
            yield null
