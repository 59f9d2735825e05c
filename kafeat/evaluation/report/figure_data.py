"""The data of the figures of a map: small parts of the matrices that an evaluation computes."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from kafeat.errors import KafeatError
from kafeat.evaluation.kernel_error import SignatureCurves, before, signature_curves
from kafeat.evaluation.records import EvaluationRecord, Named
from kafeat.evaluation.scores import Curve, ModelFigures
from kafeat.model.feature_map import FeatureMap
from kafeat.types import Array, Floats

_GRAM_ROWS = 200
_PAIRS = 40_000
_SPECTRUM_ROWS = 600
_LINE = 161


@dataclass(frozen=True)
class Surface:
    """The predictions of each machine in the plane of two columns, as numbers of classes or scaled numbers."""

    corners: tuple[Floats, Floats]
    """The smallest and the largest values (2,) of the columns."""
    planes: dict[str, Floats]
    """Predictions (g, g) of raw, map and exact; the first axis is that of the second column."""
    rows: Floats
    """Some test rows (n, 2)."""
    labels: Floats
    """Their labels (n,)."""
    names: tuple[str, ...]
    """Names of the columns."""


@dataclass(frozen=True)
class LearningFigures:
    """The data of the figures of the learner, on raw columns, on features and with the exact kernel."""

    predictions: dict[str, list[tuple[int, float]]] = field(default_factory=dict)
    """Numbers of rows and the seconds to predict them."""
    rates: dict[str, Curve] = field(default_factory=dict)
    """Shares of false and true positives; only of two classes."""
    surface: Surface | None = None
    """Only of data of two columns."""
    model: ModelFigures = field(default_factory=ModelFigures)
    """Empty unless the map ends in a predictor."""


@dataclass(frozen=True)
class MapFigures:
    """The data of one map with one setting, for its first seed."""

    record: EvaluationRecord
    exact: Floats
    approximate: Floats
    """Gram matrices of some rows, (r, r), with similar rows next to each other."""
    pairs: tuple[Floats, Floats]
    """k(x, y) and z(x)·z(y) of random pairs."""
    distances: tuple[Floats, Floats]
    """‖φ(x) − φ(y)‖ and ‖z(x) − z(y)‖ of the same pairs."""
    spectra: tuple[Floats, Floats]
    """Eigenvalues of K and of ZZᵀ, largest first."""
    line: tuple[Floats, Floats, Floats] | None
    """t, and the kernel and its approximation between a row and points on the line to another row."""
    signature: SignatureCurves | None
    """Only of a homogeneous map."""
    landmarks: tuple[Floats, Floats] | None
    """Rows and landmarks, projected to the first two principal components of the rows."""
    importance: dict[str, float] | None = None
    """The share of each input in a metric that was learned from the label, the heaviest first."""
    learning: LearningFigures = LearningFigures()


def same_map(one: Named, other: Named) -> bool:
    """Return true if two records are of one map with one setting."""
    return (one["map"], one["setting"]) == (other["map"], other["setting"])


def map_figures(
    record: EvaluationRecord, fm: FeatureMap, X: Floats, K: Floats, Z: Floats, between: bool
) -> MapFigures:
    """Return the data of a map: its input X (n, d), the exact kernel K (n, n) and the features Z (n, D).

    `between` is False if points between two rows have no meaning, as with codes of categories.
    """
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
        spectra=(
            _eigenvalues(K[:_SPECTRUM_ROWS, :_SPECTRUM_ROWS]),
            _eigenvalues(Z[:_SPECTRUM_ROWS] @ Z[:_SPECTRUM_ROWS].T),
        ),
        line=_line(fm, X, K) if between else None,
        signature=signature_curves(fm, X),
        landmarks=_landmarks(fm, X),
    )


def _in_order(K: Floats, rng: np.random.Generator) -> Array:
    """Choose rows and order them along the leading eigenvector, so that the matrices show blocks."""
    some = np.sort(rng.choice(len(K), min(len(K), _GRAM_ROWS), replace=False))
    part = K[np.ix_(some, some)]
    centred = part - part.mean(axis=0) - part.mean(axis=1)[:, None] + part.mean()
    order: Array = some[np.argsort(np.linalg.eigh(centred)[1][:, -1])]
    return order


def _eigenvalues(G: Floats) -> Floats:
    values: Floats = np.maximum(np.linalg.eigvalsh(G)[::-1], 0.0)
    return values


def _line(fm: FeatureMap, X: Floats, K: Floats) -> tuple[Floats, Floats, Floats] | None:
    """Evaluate the kernel on the line from the first row to the row with the smallest kernel value."""
    t = np.linspace(0.0, 1.0, _LINE)
    start, end = X[0].astype(np.float64), X[int(np.argmin(K[0]))].astype(np.float64)
    path = (start + t[:, None] * (end - start)).astype(X.dtype)
    try:
        Z = fm.transform(path).astype(np.float64)
        return t, fm.exact_kernel(path[:1], path)[0], Z @ Z[0]
    except KafeatError:
        return None


def _landmarks(fm: FeatureMap, X: Floats) -> tuple[Floats, Floats] | None:
    for index, fitted in enumerate(fm.chain.steps):
        L = fitted.state.get("landmarks")
        if L is None:
            continue
        rows = before(fm, index, X).astype(np.float64)
        if L.ndim != 2 or L.shape[1] != rows.shape[1] or rows.shape[1] < 2:
            return None
        mean = rows.mean(axis=0)
        plane = np.linalg.svd(rows - mean, full_matrices=False)[2][:2].T
        return (rows - mean) @ plane, (L - mean) @ plane
    return None
