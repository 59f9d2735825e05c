"""Normal directions: their declaration and their draw."""

from __future__ import annotations

from typing import Literal

import numpy as np

from kafeat.contract.step import parameter
from kafeat.maths.kernel import KernelParameters
from kafeat.maths.kernels.shift_invariant import RbfKernel
from kafeat.types import Floats

Directions = Literal["iid", "orthogonal"]

DIRECTIONS = parameter("orthogonal", "how the directions are drawn")


def draw_directions(how: Directions, m: int, d: int, rng: np.random.Generator) -> Floats:
    """w ~ N(0, I), (m, d); orthogonal ones have norms of their own."""
    normal = RbfKernel().frequencies(KernelParameters(gamma=0.5))  # N(0, 2γ I)
    return normal.orthogonal(m, d, rng) if how == "orthogonal" else normal.iid(m, d, rng)
