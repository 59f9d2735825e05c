"""Landmarks drawn uniformly from the rows."""

from __future__ import annotations

import numpy as np

from kafeat.types import Floats


def uniform(X: Floats, m: int, rng: np.random.Generator) -> Floats:
    """m different rows, each as likely as the other, without replacement (Williams & Seeger 2001)."""
    return X[np.sort(rng.choice(len(X), size=m, replace=False))]
