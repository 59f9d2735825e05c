"""Landmarks drawn by the dual weights of a task."""

from __future__ import annotations

import numpy as np

from kafeat.landmarks.dual import dual_weights
from kafeat.landmarks.view import Indices, View, draw, fill_up


def dual_weighted(view: View, m: int, rng: np.random.Generator) -> Indices:
    """P(i) ∝ |α_i|, without replacement (Nyström based kernel classification for big data, 2015, equation 8).

    Where fewer than m rows have an α, they are all taken, and the rest is uniform.
    """
    rows, alpha = dual_weights(view, m, rng)
    return fill_up(rows[draw(alpha, m, rng)], np.arange(len(view.X)), m, rng)
