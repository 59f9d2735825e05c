"""Landmarks that are cluster centres of the rows that matter to a task."""

from __future__ import annotations

import numpy as np

from kafeat.landmarks.dual import dual_weights
from kafeat.landmarks.kmeans import weighted_kmeans
from kafeat.landmarks.view import View, fill_up
from kafeat.types import Floats


def dual_kmeans(view: View, m: int, rng: np.random.Generator) -> Floats:
    """Centres of k-means with the weights α_i² (Nyström based kernel classification for big data, 2015, equation 9).

    Where fewer than m rows have an α, they are all taken, and the rest is uniform.
    """
    rows, alpha = dual_weights(view, m, rng)
    squares = alpha**2
    weighing = squares > 0.0
    if np.count_nonzero(weighing) <= m:
        return view.X[fill_up(rows[weighing], np.arange(len(view.X)), m, rng)]
    return weighted_kmeans(view.X[rows[weighing]], squares[weighing], m, rng)
