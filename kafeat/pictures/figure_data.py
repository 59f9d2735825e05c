"""The data of the figures of a map: small parts of the matrices that an evaluation computes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from kafeat.maths.calibration import Reliability
from kafeat.types import Array, Floats

_GRAM_ROWS = 200
_PAIRS = 40_000

ModelFigures = tuple[Reliability, tuple[Array, tuple[str, ...]]]
"""The reliability of the probabilities of a model; and its confusion matrix (k, k), with the names of the classes."""


@dataclass(frozen=True)
class MapFigures:
    """The data of one map with one setting, for its first seed."""

    about: Mapping[str, Any]
    """Its name as `map`, and its setting."""
    exact: Floats
    approximate: Floats
    """Gram matrices of some rows, (r, r), with similar rows next to each other."""
    distances: tuple[Floats, Floats]
    """‖φ(x) − φ(y)‖ and ‖z(x) − z(y)‖ of random pairs."""
    model: ModelFigures | None = None
    """None unless the map ends in a predictor of classes."""


def same_map(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return True if both are of one map with one setting."""
    return (one["map"], one["setting"]) == (other["map"], other["setting"])


def map_figures(
    about: Mapping[str, Any], K: Floats, Z: Floats, model: ModelFigures | None = None
) -> MapFigures:
    """Return the data of a map with the exact kernel K (n, n) and the features Z (n, D) of some rows."""
    rng = np.random.default_rng(0)
    some = _in_order(K, rng)
    i, j = rng.integers(len(K), size=(2, _PAIRS))
    apart = i != j
    i, j = i[apart], j[apart]
    near = np.einsum("ij,ij->i", Z[i], Z[j])
    norms = np.einsum("ij,ij->i", Z, Z)
    return MapFigures(
        about=about,
        exact=K[np.ix_(some, some)],
        approximate=Z[some] @ Z[some].T,
        distances=(
            np.sqrt(np.maximum(K[i, i] + K[j, j] - 2.0 * K[i, j], 0.0)),
            np.sqrt(np.maximum(norms[i] + norms[j] - 2.0 * near, 0.0)),
        ),
        model=model,
    )


def _in_order(K: Floats, rng: np.random.Generator) -> Array:
    """Choose rows and order them along the leading eigenvector, so that the matrices show blocks."""
    some = np.sort(rng.choice(len(K), min(len(K), _GRAM_ROWS), replace=False))
    part = K[np.ix_(some, some)]
    centred = part - part.mean(axis=0) - part.mean(axis=1)[:, None] + part.mean()
    return some[np.argsort(np.linalg.eigh(centred)[1][:, -1])]
