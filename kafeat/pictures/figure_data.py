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

Losses = Mapping[str, tuple[float, float]]
"""What a score loses without each column, and the standard error."""


@dataclass(frozen=True)
class ModelFigures:
    """The data of the figures of a model: how honest its probabilities are, and where it errs."""

    reliability: Reliability | None = None
    """Only of classes."""
    confusion: tuple[Array, tuple[str, ...]] | None = None
    """Number of rows (k, k) of each true class that were predicted as each, and the classes; None for numbers."""
    residuals: tuple[Floats, Floats] | None = None
    """The predicted numbers and y − ŷ, of the first label; None for classes."""


@dataclass(frozen=True)
class LearningFigures:
    """The data of the figures of the learner, on raw columns, on features and with the exact kernel."""

    model: ModelFigures = ModelFigures()
    """Empty unless the map ends in a predictor."""
    importance: Losses | None = None
    """What the score of test rows loses when a column is shuffled, the largest first."""


@dataclass(frozen=True)
class MapFigures:
    """The data of one map with one setting, for its first seed."""

    record: Any
    """The record of the evaluation, of which figures read the map, its setting and numbers."""
    exact: Floats
    approximate: Floats
    """Gram matrices of some rows, (r, r), with similar rows next to each other."""
    pairs: tuple[Floats, Floats]
    """k(x, y) and z(x)·z(y) of random pairs."""
    distances: tuple[Floats, Floats]
    """‖φ(x) − φ(y)‖ and ‖z(x) − z(y)‖ of the same pairs."""
    learning: LearningFigures = LearningFigures()


def same_map(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return true if two records are of one map with one setting."""
    return (one["map"], one["setting"]) == (other["map"], other["setting"])


def map_figures(record: Any, K: Floats, Z: Floats) -> MapFigures:
    """Return the data of a map with the exact kernel K (n, n) and the features Z (n, D) of some rows."""
    rng = np.random.default_rng(0)
    some = _in_order(K, rng)
    i, j = rng.integers(len(K), size=(2, _PAIRS))
    apart = i != j
    i, j = i[apart], j[apart]
    near = np.einsum("ij,ij->i", Z[i], Z[j])
    norms = np.einsum("ij,ij->i", Z, Z)
    return MapFigures(
        record=record,
        exact=K[np.ix_(some, some)],
        approximate=Z[some] @ Z[some].T,
        pairs=(K[i, j], near),
        distances=(
            np.sqrt(np.maximum(K[i, i] + K[j, j] - 2.0 * K[i, j], 0.0)),
            np.sqrt(np.maximum(norms[i] + norms[j] - 2.0 * near, 0.0)),
        ),
    )


def _in_order(K: Floats, rng: np.random.Generator) -> Array:
    """Choose rows and order them along the leading eigenvector, so that the matrices show blocks."""
    some = np.sort(rng.choice(len(K), min(len(K), _GRAM_ROWS), replace=False))
    part = K[np.ix_(some, some)]
    centred = part - part.mean(axis=0) - part.mean(axis=1)[:, None] + part.mean()
    return some[np.argsort(np.linalg.eigh(centred)[1][:, -1])]
