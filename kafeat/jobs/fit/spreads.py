"""Warn about columns whose spreads differ by orders of magnitude."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from kafeat.contract.name_patterns import feature_places
from kafeat.contract.step import Step
from kafeat.contract.tile import TextRows
from kafeat.errors import quoted
from kafeat.types import Array, Floats

_FACTOR = 100.0
_MOSTLY_ZERO = 0.95
_LEAST_SPREAD_ROWS, _MOST_ROWS, _MOST_SPREADS = 10, 5_000, 1 << 22


def spread_warnings(step: Step, X: Floats, names: Sequence[str | None] | None) -> Iterator[str]:
    """Yield warnings about the rows X (n, d) that a step is fitted on. `names` are the column names, if known.

    They are about columns whose spreads differ by orders of magnitude, before a step that compares whole rows. A
    squared distance is a sum over the columns, each of which adds twice its variance on average. So a column with a
    hundredth of the largest standard deviation adds a ten-thousandth of the largest share. A column that is nearly
    always zero (a rare category, a count, a pixel at the rim) has a small spread by nature, so it does not count.
    """
    if isinstance(X, TextRows):
        return
    for columns, steps in step.inner_chains:
        picks = _picked(columns, names, X.shape[1])
        inner = None if names is None else [names[j] for j in picks]
        yield from spread_warnings(steps[0], X[:, picks], inner)
    enough = len(X) >= _LEAST_SPREAD_ROWS and X.shape[1] > 0
    extremes = _extremes(X) if enough and step.traits.numbers.spreads == "needs" else None
    if extremes is None:
        return
    large, small, spread = extremes
    with np.errstate(over="ignore"):
        factor = spread[large] / spread[small]
    if factor >= _FACTOR:
        pair = "" if names is None else "".join(
            f"{opening}{quoted(str(names[j]))} {spread[j]:.3g}{closing}"
            for j, opening, closing in ((large, " (", ", "), (small, "", ")"))
        )  # fmt: skip
        yield (
            f"the spreads of the columns differ by a factor of {_spelled(factor)}{pair}: to {step.kind} the "
            "smaller ones hardly count; put a step `kind: standardize` before it"
        )


def _spelled(factor: float) -> str:
    return f"{factor:,.0f}" if factor < 1e9 else f"{factor:.0e}"


def _extremes(X: Floats) -> tuple[int, int, Array] | None:
    """Return the columns of largest and smallest spread, and all spreads. Return None if no column varies enough."""
    rows = max(_LEAST_SPREAD_ROWS, min(_MOST_ROWS, _MOST_SPREADS // X.shape[1]))
    some = X[:: -(-len(X) // rows)].astype(np.float64)
    size = np.abs(some).max(axis=0, initial=0.0)
    relative = (some / np.where(size > 0.0, size, 1.0)).std(axis=0)  # squares of 1e200 would overflow
    spread = relative * size
    varies = relative > 1e-6  # rounding makes constants vary by less
    small = np.flatnonzero(varies & (np.mean(some == 0.0, axis=0) < _MOSTLY_ZERO))
    if not len(small):
        return None
    return int(np.argmax(spread)), int(small[np.argmin(spread[small])]), spread


def _picked(columns: Sequence[str] | None, names: Sequence[str | None] | None, width: int) -> list[int]:
    """Return the indices of the features that a chain reads. The name of a list column stands for all its features."""
    if columns is None or names is None:
        return list(range(width))
    return list(dict.fromkeys(j for _, places in feature_places(columns, names) for j in places))
