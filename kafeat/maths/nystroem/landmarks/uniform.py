"""Landmarks drawn uniformly from the rows."""

from __future__ import annotations

import numpy as np

from kafeat.maths.nystroem.landmarks.fit_sample import FitSample, Indices


def uniform(view: FitSample, m: int, rng: np.random.Generator) -> Indices:
    """m different rows, each as likely as the other, without replacement (Williams & Seeger 2001)."""
    return np.sort(rng.choice(len(view.X), size=m, replace=False))
