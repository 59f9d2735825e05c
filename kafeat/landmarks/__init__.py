"""How Nyström landmarks are chosen: one file per selector, the same signature.

A selector sees the fit sample (n, d) and returns m rows of the same width.
"""

from __future__ import annotations

import numpy as np

from kafeat.landmarks.uniform import uniform
from kafeat.types import Floats

SELECTORS = {"uniform": uniform}


def select(name: str, X: Floats, m: int, rng: np.random.Generator) -> Floats:
    """m landmarks by the selector of that name."""
    return SELECTORS[name](X, m, rng)
