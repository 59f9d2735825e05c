"""Units for numbers whose squares would leave float64, or float32."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from kafeat.types import Floats


def power_of_two(sizes: ArrayLike) -> Floats:
    """The largest power of two at most each size, and 1 for 0: dividing by it changes no digit, only the exponent."""
    sizes = np.asarray(sizes, dtype=np.float64)
    return np.where(sizes > 0.0, np.ldexp(1.0, np.frexp(sizes)[1] - 1), 1.0)
