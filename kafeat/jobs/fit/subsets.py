"""Divide a fit sample into rows to fit settings on and rows to test them on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from kafeat.chain.chain import Chain
from kafeat.contract.step import DOUBLE, Sample
from kafeat.errors import DataError, InvalidValueError
from kafeat.types import Array, Floats

# Rows that are used in all, and those held out of them.
_MOST_ROWS = 6000
_MOST_HELD_OUT = 1500
_LEAST_ROWS = 20


@dataclass(frozen=True)
class Subset:
    """Rows of a sample, and their numbers in it."""

    sample: Sample
    rows: Array

    def __len__(self) -> int:
        return len(self.rows)

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Change the row number of errors to that in the whole sample."""
        try:
            yield
        except InvalidValueError as refused:
            raise InvalidValueError(int(self.rows[refused.row]), refused.column, refused.problem) from None

    def features(self, chain: Chain) -> Floats:
        """Return the features of the rows in float64."""
        with self.counted():
            return chain.transform(self.sample.X).astype(np.float64)


def train_and_test(
    sample: Sample, rng: np.random.Generator, most_rows: int = _MOST_ROWS
) -> tuple[Subset, Subset]:
    """Return three quarters of the rows, and the rest."""
    order = _shuffled(sample, rng, most_rows)
    held = min(len(order) // 4, _MOST_HELD_OUT)
    return subset_of(sample, order[held:]), subset_of(sample, order[:held])


def folds_of(
    sample: Sample, rng: np.random.Generator, n_folds: int, most_rows: int
) -> list[tuple[Subset, Subset]]:
    """Return the rows of each fold after the rows of the others: to fit on, and to test on."""
    parts = np.array_split(_shuffled(sample, rng, most_rows), n_folds)
    return [
        (subset_of(sample, np.concatenate(parts[:i] + parts[i + 1 :])), subset_of(sample, parts[i]))
        for i in range(n_folds)
    ]


def _shuffled(sample: Sample, rng: np.random.Generator, most_rows: int) -> Array:
    order = rng.permutation(len(sample.X))[:most_rows]
    if len(order) < _LEAST_ROWS:
        raise DataError(f"expected at least {_LEAST_ROWS} rows to choose parameters on, got {len(order)}")
    return order


def subset_of(sample: Sample, rows: Array) -> Subset:
    """Return these rows, in ascending order."""
    rows = np.sort(rows)
    label = None if sample.label is None else sample.label[rows]
    # In float64 for every map, so that the choice does not depend on rounding.
    X = np.ascontiguousarray(sample.X[rows])
    numbers = rows if sample.rows is None else sample.rows[rows]
    return Subset(replace(sample, X=X, label=label, dtype=DOUBLE, rows=numbers), rows)
