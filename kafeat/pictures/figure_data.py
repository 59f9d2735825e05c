"""The data of the figures of a map: small parts of the matrices that an evaluation computes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kafeat.chain.blas import one_blas_thread
from kafeat.chain.chain import Chain
from kafeat.chain.tiles import run_tiles
from kafeat.contract.tile import InputRows, dense
from kafeat.errors import KafeatError
from kafeat.maths.calibration import Reliability
from kafeat.types import Array, Floats

_GRAM_ROWS = 200
_PAIRS = 40_000
_SPECTRUM_ROWS = 600
_LINE = 161
# The spectrum is drawn to this multiple of the map's last frequency, at so many points.
_BEYOND, _POINTS = 1.4, 201

Losses = Mapping[str, tuple[float, float]]
"""What a score loses without each column, and the standard error."""

Curve = tuple[Floats, Floats]
"""Shares of false and of true positives at falling thresholds."""


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

    predictions: dict[str, list[tuple[int, float]]] = field(default_factory=dict)
    """Numbers of rows and the seconds to predict them."""
    rates: dict[str, Curve] = field(default_factory=dict)
    """Shares of false and true positives; only of two classes."""
    surface: Surface | None = None
    """Only of data of two columns."""
    model: ModelFigures = ModelFigures()
    """Empty unless the map ends in a predictor."""
    importance: Losses | None = None
    """What the score of test rows loses when a column is shuffled, the largest first."""


@dataclass(frozen=True)
class SignatureCurves:
    """Signature and spectrum of a homogeneous map beside those of its kernel, and the weight of each ratio y/x."""

    ratios: Floats
    """log(y/x), from 0 on."""
    exact: Floats
    """The signature there."""
    near: Floats
    """That of the map."""
    weights: Floats
    """Weight of the ratio in the data."""
    frequencies: Floats
    """λ, from 0 on; empty if the map has no frequencies."""
    spectrum: Floats
    """κ(λ)."""
    sampled: tuple[Floats, Floats]
    """The frequencies of the map, and what it has in the place of κ there."""


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
    spectra: tuple[Floats, Floats]
    """Eigenvalues of K and of ZZᵀ, largest first."""
    line: tuple[Floats, Floats, Floats] | None
    """t, and the kernel and its approximation between a row and points on the line to another row."""
    signature: SignatureCurves | None
    """Only of a homogeneous map."""
    landmarks: tuple[Floats, Floats] | None
    """Rows and landmarks, projected to the first two principal components of the rows."""
    learning: LearningFigures = LearningFigures()


def same_map(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return true if two records are of one map with one setting."""
    return (one["map"], one["setting"]) == (other["map"], other["setting"])


def map_figures(
    record: Any, chain: Chain, dtype: np.dtype[Any], X: InputRows, K: Floats, Z: Floats, between: bool
) -> MapFigures:
    """Return the data of a map with features in `dtype`.

    They are of its input X (n, d), the exact kernel K (n, n) and the features Z (n, D). `between` is False if points
    between two rows have no meaning, as with codes of categories.
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
        line=_line(chain, dtype, X, K) if between else None,
        signature=signature_curves(chain, X),
        landmarks=_landmarks(chain, X),
    )


def _in_order(K: Floats, rng: np.random.Generator) -> Array:
    """Choose rows and order them along the leading eigenvector, so that the matrices show blocks."""
    some = np.sort(rng.choice(len(K), min(len(K), _GRAM_ROWS), replace=False))
    part = K[np.ix_(some, some)]
    centred = part - part.mean(axis=0) - part.mean(axis=1)[:, None] + part.mean()
    return some[np.argsort(np.linalg.eigh(centred)[1][:, -1])]


def _eigenvalues(G: Floats) -> Floats:
    return np.maximum(np.linalg.eigvalsh(G)[::-1], 0.0)


def _line(
    chain: Chain, dtype: np.dtype[Any], X: InputRows, K: Floats
) -> tuple[Floats, Floats, Floats] | None:
    """Evaluate the kernel on the line from the first row to the row with the smallest kernel value."""
    t = np.linspace(0.0, 1.0, _LINE)
    start, end = dense(X[np.array([0, np.argmin(K[0])])]).astype(np.float64)
    path = (start + t[:, None] * (end - start)).astype(X.dtype)
    try:
        with one_blas_thread():
            Z = run_tiles(chain.bind(dtype), path, dtype).astype(np.float64)
        return t, chain.exact(path[:1], path, dtype)[0], Z @ Z[0]
    except KafeatError:
        return None


def signature_curves(chain: Chain, X: InputRows) -> SignatureCurves | None:
    """Return the curves of the first homogeneous map for the ratios in rows X; None without such a map."""
    for index, fitted in enumerate(chain.steps):
        if fitted.step.kind == "homogeneous":
            step: Any = fitted.step
            ratios, _, weights = step.error_curve(fitted.state, chain.before(index, X))
            exact, near = step.signatures(fitted.state, ratios)
            sampled = step.sampled_spectrum(fitted.state)
            if sampled is None:
                nothing = np.empty(0)
                return SignatureCurves(ratios, exact, near, weights, nothing, nothing, (nothing, nothing))
            frequencies = np.linspace(0.0, _BEYOND * sampled[0][-1], _POINTS)
            return SignatureCurves(
                ratios, exact, near, weights, frequencies, step.spectrum(frequencies), sampled
            )
    return None


def _landmarks(chain: Chain, X: InputRows) -> tuple[Floats, Floats] | None:
    for index, fitted in enumerate(chain.steps):
        L = fitted.state.get("landmarks")
        if L is None:
            continue
        rows = chain.before(index, X).astype(np.float64)
        if L.ndim != 2 or L.shape[1] != rows.shape[1] or rows.shape[1] < 2:
            return None
        mean = rows.mean(axis=0)
        plane = np.linalg.svd(rows - mean, full_matrices=False)[2][:2].T
        return (rows - mean) @ plane, (L - mean) @ plane
    return None
