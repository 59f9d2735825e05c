"""What the samplers along normal directions share: how directions are declared and drawn."""

from __future__ import annotations

from typing import Literal

import numpy as np

from kafeat.contract.step import parameter
from kafeat.maths.fourier import spectra
from kafeat.types import Floats

Directions = Literal["iid", "orthogonal"]

DIRECTIONS = parameter("orthogonal", "how the directions are drawn")


def draw_directions(how: Directions, m: int, d: int, rng: np.random.Generator) -> Floats:
    """w ~ N(0, I), (m, d); orthogonal ones have norms of their own."""
    law = spectra.rbf(0.5)  # ω ~ N(0, 2γ I)
    return law.orthogonal(m, d, rng) if how == "orthogonal" else law.iid(m, d, rng)
