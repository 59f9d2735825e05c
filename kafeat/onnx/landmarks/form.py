"""What every kernel here is, and what it is of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from kafeat.kernels import KernelParameters
from kafeat.onnx.graph import Graph, Value
from kafeat.types import Array


@dataclass(frozen=True, eq=False)
class Landmarks:
    """Rows (m, d), float64, or numbers of columns (m,) of a precomputed kernel; the kernel is divided by `scale`."""

    rows: Array
    parameters: KernelParameters
    scale: float
    centre: Array | None = None
    """Of kernels of the distance, (d,): where both sides are moved to; None: the mean of the landmarks."""


Form: TypeAlias = Callable[[Graph, Value, Landmarks], Value]
"""k(x, l_j)/scale of every row of x (n, d) with every landmark, (n, m)."""
