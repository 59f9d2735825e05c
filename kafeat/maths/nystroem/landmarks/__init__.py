"""Selectors of Nyström landmarks: one file per selector, the same signature.

A selector sees a `FitSample` of the fit sample. It returns m row numbers, all different, or m points of its own.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kafeat.maths.nystroem.landmarks.duals import dual_kmeans, dual_weighted
from kafeat.maths.nystroem.landmarks.farthest import farthest
from kafeat.maths.nystroem.landmarks.fit_sample import FitSample, Indices, Profile
from kafeat.maths.nystroem.landmarks.greedy import greedy
from kafeat.maths.nystroem.landmarks.kmeans import kmeans
from kafeat.maths.nystroem.landmarks.learned import learned
from kafeat.maths.nystroem.landmarks.leverage import leverage
from kafeat.maths.nystroem.landmarks.rpcholesky import rpcholesky
from kafeat.maths.nystroem.landmarks.uniform import uniform
from kafeat.types import Floats

__all__ = ["OF_LABEL", "POINTS", "ROWS", "FitSample", "Indices", "Profile"]

ROWS: dict[str, Callable[[FitSample, int, np.random.Generator], Indices]] = {
    "uniform": uniform,
    "rpcholesky": rpcholesky,
    "greedy": greedy,
    "leverage": leverage,
    "farthest": farthest,
    "dual_weighted": dual_weighted,
}
"""Selectors of rows."""

POINTS: dict[str, Callable[[FitSample, int, np.random.Generator], Floats]] = {
    "kmeans": kmeans,
    "learned": learned,
    "dual_kmeans": dual_kmeans,
}
"""Selectors that make points of their own: inputs must be coordinates."""

OF_LABEL = ("dual_weighted", "dual_kmeans")
