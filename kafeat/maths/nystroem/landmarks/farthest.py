"""Landmarks as far from each other as can be."""

from __future__ import annotations

import numpy as np

from kafeat.maths.nystroem.landmarks.fit_sample import FitSample, Indices, fill_up


def farthest(view: FitSample, m: int, rng: np.random.Generator) -> Indices:
    """Always the row farthest from those chosen, in kernel distance k(x,x) + k(l,l) − 2k(x,l) (Gonzalez 1985).

    The first is random. Within a factor of 2 of the smallest possible covering radius; O(n m). Where all other rows
    are duplicates, the rest is uniform.
    """
    everything = np.arange(len(view.X))
    diagonal = view.diagonal(everything).astype(np.float64)
    distance = np.full(len(everything), np.inf)
    chosen = [int(rng.integers(len(everything)))]
    while True:
        last = chosen[-1]
        to_last = diagonal + diagonal[last] - 2.0 * view.kernel(everything, np.array([last]))[:, 0]
        np.minimum(distance, to_last, out=distance)
        distance[chosen] = -np.inf
        # 0 but for rounding
        noise = 16.0 * float(np.finfo(view.X.dtype).eps) * float(np.abs(diagonal).max())
        if len(chosen) == m or distance.max() <= noise:
            return fill_up(np.array(chosen), everything, m, rng)
        chosen.append(int(np.argmax(distance)))
