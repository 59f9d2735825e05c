"""The directions of largest variance. After a map, this is approximate kernel PCA."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from kafeat.contract.checks import count_rows
from kafeat.contract.memory import require_memory
from kafeat.contract.step import Sample, Scaler, Width, parameter
from kafeat.contract.traits import Traits
from kafeat.errors import DataError
from kafeat.types import ArrayOf, Floats, Shapes, State

# Measured with 300 to 100,000 rows: singular values due to rounding were at most 0.4 √n ε of the largest.
_STEPS = 4.0


class Pca(Scaler):
    """(x − μ)V, and with `whiten` (x − μ)V/σ: coordinates in the directions of largest variance in the fit sample.

    V (d, n_components) are the leading right singular vectors of the centred sample, and σ² the variances (over n − 1)
    along them. The largest entry of each vector is positive. A direction whose variance is only due to rounding becomes
    0.
    """

    always: ClassVar[Traits] = Traits()

    n_components: Width | None = parameter(None, "components to keep; null: as many as there are")
    whiten: bool = parameter(False, "scale every component to unit variance")

    def fit(self, sample: Sample, rng: np.random.Generator) -> State:
        n, d = sample.X.shape
        k = self._count(n, d)
        # The centred sample, its triangular factor, the decomposition of this factor and a workspace need memory.
        require_memory(
            (n + 8.0 * min(n, d)) * d,
            f"pca: {n:,} rows of {d:,} columns",
            "put projection before it, which takes any number of columns, or lower fit_rows",
        )
        # Subtract the first row before the mean, so that a large offset costs no digits.
        first = sample.X[0].astype(np.float64)
        centred = sample.X - first
        middle = centred.mean(axis=0)
        centred -= middle
        if n > d:
            centred = np.linalg.qr(centred, mode="r")
        singular, components = _leading(centred, k)
        mean = first + middle
        spread = singular / np.sqrt(max(n - 1, 1))
        # Rounding errors in the decomposition add up like a random walk, and stored entries are rounded as well.
        steps = _STEPS * np.sqrt(max(n, d)) * np.finfo(sample.X.dtype).eps
        real = spread > steps * (spread[0] + np.linalg.norm(mean))
        components[~real] = 0.0
        scale = np.where(real, spread, 1.0) if self.whiten else np.ones(k)
        return {"mean": mean, "components": components, "scale": scale}

    def _count(self, n: int, d: int) -> int:
        """Return the number of components of a sample (n, d)."""
        most = min(n, d)
        if self.n_components is not None and self.n_components > most:
            raise DataError(
                f"pca: n_components: expected at most {most}, the smaller of {n} rows and {d} features, "
                f"got {self.n_components}"
            )
        return self.n_components or most

    def state_shapes(self, state: State, n_features_in: int) -> Shapes:
        k = self.n_features_out(state, n_features_in)
        return {
            "mean": (n_features_in,),
            "components": (k, n_features_in),
            "scale": ArrayOf((k,), sign="above 0"),
        }

    def n_features_out(self, state: State, n_features_in: int) -> int:
        return count_rows(state, "components") if self.n_components is None else self.n_components

    def scale(self, state: State, X: Floats) -> Floats:
        projected: Floats = (X - state["mean"]) @ state["components"].T
        projected /= state["scale"]
        return projected


def _leading(centred: Floats, k: int) -> tuple[Floats, Floats]:
    """Return the k largest singular values, and right singular vectors (k, d) with a positive largest entry."""
    _, singular, components = np.linalg.svd(centred, full_matrices=False)
    components = components[:k]
    largest = np.abs(components).argmax(axis=1)
    return singular[:k], components * np.sign(components[np.arange(k), largest])[:, None]
