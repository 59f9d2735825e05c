"""Nyström features."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from kafeat.bandwidth import Rule, resolve_gamma
from kafeat.describe import Says
from kafeat.domain import check_indices, refuse_negative
from kafeat.errors import DataError, UsageError
from kafeat.kernel_tiles import SCALED, ColumnTile, FunctionTile, KernelTile, call_kernel, kernel_tile
from kafeat.kernels import KERNELS, KernelParameters
from kafeat.landmarks import OF_LABEL, POINTS, ROWS, Indices, Profile, View
from kafeat.landmarks.given import Given
from kafeat.landmarks.projection import fitted, leading, whitening
from kafeat.pair import Coordinates, Gram, Pair
from kafeat.step import (
    PositiveFloat,
    PositiveInt,
    Sample,
    Step,
    Transform,
    Width,
    parameter,
    refuse_parameter,
)
from kafeat.types import Array, Floats, Shape, State

Function = Annotated[Callable[..., Any], Says("a Python function k(X, Y)", "functions")]
Rows = Annotated[Given, Says("a mapping with the key 'given'", "mappings")]

# An eigenvalue below −10⁻⁶ of the largest is no rounding error: the kernel is indefinite.
_CLEARLY_NEGATIVE = 1e-6
_BLOCK = 1024


class Nystroem(Step):
    """Nyström features: z(x) = Λ_r^{−½} V_rᵀ k(L, x), with K_mm = k(L, L) = VΛVᵀ on m landmark rows L.

    ZZᵀ = K_nm K_mm⁺ K_mn is the best approximation of the kernel within the span of the landmarks: exact on the
    landmarks themselves, never above the kernel, and as good as the kernel's spectrum falls fast. The rank cut is
    relative and made in float64; columns beyond the rank are 0. With more landmarks than components, those directions
    are kept that lead on the fit sample. Good landmarks matter: docs/accuracy.md compares the ways to choose them.

    `kernel: precomputed` takes rows that hold k(x, every training row) and is fitted on the square matrix of the
    training rows; landmarks are columns of it.

    Source: Williams & Seeger 2001, equation 8; the selectors and `weights` name theirs.
    """

    kernel: (
        Literal[
            "rbf",
            "laplacian",
            "matern",
            "rational_quadratic",
            "polynomial",
            "linear",
            "cosine",
            "sigmoid",
            "chi2",
            "additive_chi2",
            "intersection",
            "jensen_shannon",
            "hellinger",
            "precomputed",
        ]
        | Function
    ) = parameter("rbf", "the kernel to approximate")
    gamma: PositiveFloat | Rule = parameter(
        "median", "γ, or how it is read off the fit sample; median is 1/d for kernels of dot products"
    )
    nu: Annotated[float, Field(gt=0, le=30)] = parameter(1.5, "ν, the smoothness of the matern kernel")
    alpha: PositiveFloat = parameter(1.0, "α of the rational_quadratic kernel")
    degree: PositiveInt = parameter(2, "of the polynomial kernel")
    coef0: Annotated[float, Field(ge=0)] = parameter(1.0, "c₀ of the polynomial and sigmoid kernels")
    n_components: Width = parameter(256, "D, the number of outputs")
    n_landmarks: Width | None = parameter(None, "m, the number of landmarks; null: as many as outputs")
    landmarks: (
        Literal[
            "auto",
            "uniform",
            "kmeans",
            "learned",
            "rpcholesky",
            "greedy",
            "leverage",
            "farthest",
            "dual_weighted",
            "dual_kmeans",
        ]
        | Rows
    ) = parameter(
        "auto", "how the landmarks are chosen; auto: kmeans, and rpcholesky where only rows will do"
    )
    dual_l1: Annotated[float, Field(ge=0, lt=1)] = parameter(
        0.0, "τ, the ℓ1 penalty on the duals of dual_weighted and dual_kmeans"
    )
    weights: Literal["exact", "fitted"] = parameter(
        "exact", "of the landmarks: exact on them, or fitted to the kernel of the fit sample"
    )
    rcond: Annotated[float, Field(ge=0, lt=1)] = parameter(1e-10, "eigenvalues below rcond·λ_max are cut off")
    clip_negative: bool = parameter(False, "accept an indefinite kernel and cut its negative part off")

    @model_validator(mode="after")
    def _enough_landmarks(self) -> Self:
        if self.n_landmarks is not None and self.n_landmarks < self.n_components:
            refuse_parameter("n_landmarks", f"at least n_components = {self.n_components}", self.n_landmarks)
        if self._precomputed:
            if self.landmarks in POINTS or isinstance(self.landmarks, Given):
                refuse_parameter("landmarks", "landmarks that are columns of the input", self.landmarks)
            if self.weights == "fitted":
                refuse_parameter("weights", "exact, for a precomputed kernel", self.weights)
        if self.landmarks == "learned" and self.kernel not in ("rbf", "rational_quadratic"):
            refuse_parameter("landmarks", "another, as learned needs rbf or rational_quadratic", "learned")
        return self

    @property
    def _precomputed(self) -> bool:
        return self.kernel == "precomputed"

    @property
    def _selector(self) -> str:
        """The name of the selector, `auto` resolved."""
        if isinstance(self.landmarks, Given):
            return "given"
        if self.landmarks != "auto":
            return self.landmarks
        return "rpcholesky" if self._precomputed or callable(self.kernel) else "kmeans"

    @property
    def needs_coordinates(self) -> bool:
        return not isinstance(self.kernel, str) or self._precomputed or KERNELS[self.kernel].needs_coordinates

    @property
    def needs_label(self) -> bool:
        return self._selector in OF_LABEL

    @property
    def keeps_rows(self) -> bool:
        return not self._precomputed and self._selector not in ("kmeans", "learned")

    @property
    def given_rows(self) -> Mapping[str, str | Array]:
        return {self.landmarks.key: self.landmarks.given} if isinstance(self.landmarks, Given) else {}

    @property
    def unsaved(self) -> str | None:
        if isinstance(self.kernel, str):
            return None
        return "kernel: expected a kernel that a model file can hold, got a Python function"

    @property
    def no_exact(self) -> str | None:
        if not self._precomputed:
            return None
        return "nystroem: kernel precomputed: there is no exact kernel beyond the given columns"

    def recipe(self) -> dict[str, Any]:
        shown = self
        if not isinstance(self.kernel, str):
            shown = self.model_copy(update={"kernel": f"<function {getattr(self.kernel, '__name__', '?')}>"})
        return {"kind": self.kind, **shown.model_dump(mode="json", warnings=False), **self._searches}

    def fit(self, sample: Sample, rng: np.random.Generator) -> State:
        of_gamma, of_landmarks, of_weights = rng.spawn(3)
        X = sample.X
        if self._precomputed and X.shape[0] != X.shape[1]:
            raise DataError(
                f"nystroem: kernel precomputed: expected the square kernel matrix of the training rows, got "
                f"{X.shape[0]} rows and {X.shape[1]} columns: fit on all of them (fit_rows: all), with no other columns"
            )
        gamma = 1.0
        if isinstance(self.kernel, str) and not self._precomputed:
            if KERNELS[self.kernel].non_negative:
                refuse_negative(X)
            gamma = resolve_gamma(self.gamma, KERNELS[self.kernel], X, of_gamma)
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            landmarks = self._choose(sample, gamma, of_landmarks)
            K = self._landmark_kernel(landmarks, X, gamma)
            scale = self._scale(K.diagonal())
            W = self._factor(K / scale)
            projection = self._project(W, landmarks, X, gamma, scale, of_weights)
        kept = projection.shape[1]
        padded = np.zeros((len(K), self.n_components))
        padded[:, :kept] = projection * np.sqrt(scale)
        return {
            "landmarks": landmarks,
            "projection": padded,
            "gamma": np.array(gamma),
            "scale": np.array(scale),
            "rank": np.array(kept),
        }

    def _choose(self, sample: Sample, gamma: float, rng: np.random.Generator) -> Array:
        """The landmarks: rows (m, d), or numbers of columns (m,) of a precomputed kernel."""
        X = sample.X
        if isinstance(self.landmarks, Given):
            return self._given(sample, self.landmarks)
        m = self.n_landmarks or self.n_components
        if len(X) < m:
            raise DataError(
                f"nystroem: expected at least as many rows as landmarks ({m}), got {len(X)}: "
                "lower n_landmarks or n_components"
            )
        view = self._view(sample, gamma)
        try:
            if self._selector in POINTS:
                return POINTS[self._selector](view, m, rng)
            chosen = ROWS[self._selector](view, m, rng)
        except UsageError as error:
            raise UsageError(f"nystroem: landmarks: {self._selector}: {error}") from None
        return np.sort(chosen).astype(np.int64) if self._precomputed else X[chosen]

    def _given(self, sample: Sample, landmarks: Given) -> Floats:
        rows = sample.given.get(landmarks.key)
        if rows is None:
            raise UsageError(f"nystroem: landmarks: given: expected the rows of {landmarks.key}, got none")
        least = self.n_landmarks or self.n_components
        if len(rows) < least or (self.n_landmarks and len(rows) != least):
            wanted = f"n_landmarks = {least}" if self.n_landmarks else f"at least n_components = {least}"
            raise DataError(f"nystroem: landmarks: {landmarks.key}: expected {wanted} rows, got {len(rows)}")
        if isinstance(self.kernel, str) and KERNELS[self.kernel].non_negative and rows.min() < 0.0:
            raise DataError(
                f"nystroem: landmarks: {landmarks.key}: expected values of at least 0, got {rows.min():g}"
            )
        return rows

    def _view(self, sample: Sample, gamma: float) -> View:
        X = sample.X

        def scaled_diagonal(rows: Indices) -> Floats:
            return (self._diagonal(X, rows, gamma) / scale()).astype(X.dtype)

        known: list[float] = []

        def scale() -> float:
            if not known:
                needed = callable(self.kernel) or self.kernel in SCALED
                known.append(self._scale(self._diagonal(X, np.arange(len(X)), gamma)) if needed else 1.0)
            return known[0]

        def kernel(rows: Indices, columns: Indices) -> Floats:
            tile = self._tile(columns if self._precomputed else X[columns], gamma, scale(), X.dtype)
            return _evaluate(tile, X, rows, len(columns))

        return View(X, kernel, scaled_diagonal, sample.label, self.dual_l1, self._profile(gamma))

    def _profile(self, gamma: float) -> Profile | None:
        """The kernel as a function of r², where it has a slope everywhere."""

        def rbf(squared: Floats) -> tuple[Floats, Floats]:
            K = np.exp(-gamma * squared)
            return K, -gamma * K

        def rational_quadratic(squared: Floats) -> tuple[Floats, Floats]:
            base = 1.0 + gamma / self.alpha * squared
            K = base**-self.alpha
            return K, -gamma * K / base

        forms = {"rbf": rbf, "rational_quadratic": rational_quadratic}
        if not isinstance(self.kernel, str) or self.kernel not in forms:
            return None
        return Profile(forms[self.kernel], float(gamma**-0.5))

    def _tile(self, landmarks: Array, gamma: float, scale: float, dtype: np.dtype[Any]) -> KernelTile:
        if not isinstance(self.kernel, str):
            return FunctionTile(self.kernel, landmarks, scale, dtype)
        if self._precomputed:
            return ColumnTile(landmarks, scale, dtype)
        return kernel_tile(self.kernel, landmarks, self._parameters(gamma), dtype, scale)

    def _diagonal(self, X: Floats, rows: Indices, gamma: float) -> Floats:
        """k(x, x), float64."""
        if self._precomputed:
            return X[rows, rows].astype(np.float64)
        parts: list[Floats] = [np.empty(0)]
        for start in range(0, len(rows), _BLOCK // 8):
            x = X[rows[start : start + _BLOCK // 8]].astype(np.float64)
            # of named kernels the Gram matrix with no rows at all tells the diagonal
            y = x if callable(self.kernel) else x[:0]
            parts.append(self._gram(gamma, Coordinates(x, y)).squared_norms[0])
        return np.concatenate(parts)

    def _scale(self, diagonal: Floats) -> float:
        """What the kernel is divided by, so that float32 holds it: its largest diagonal entry, if it has no bound."""
        largest = float(np.abs(diagonal).max(initial=0.0))
        if callable(self.kernel) or self.kernel in SCALED:
            return largest if 0.0 < largest < np.inf else 1.0
        return 1.0

    def _landmark_kernel(self, landmarks: Array, X: Floats, gamma: float) -> Floats:
        """K_mm, float64 and symmetric."""
        if self._precomputed:
            K = X[np.ix_(landmarks, landmarks)].astype(np.float64)
        else:
            rows = landmarks.astype(np.float64)
            K = self._gram(gamma, Coordinates(rows, rows)).dots
        if not np.isfinite(K).all():
            raise DataError(
                f"nystroem: kernel {self._name}: expected a kernel matrix that float64 can hold, got "
                f"{K[~np.isfinite(K)][0]:g}: scale the input"
            )
        symmetric: Floats = (K + K.T) / 2.0
        if np.abs(K - symmetric).max() > _CLEARLY_NEGATIVE * np.abs(K).max():
            raise DataError(f"nystroem: kernel {self._name}: expected a symmetric kernel matrix, got another")
        return symmetric

    def _factor(self, K: Floats) -> Floats:
        """V_r Λ_r^{−½}, (m, r)."""
        values, vectors = np.linalg.eigh(K)
        if values[0] < -_CLEARLY_NEGATIVE * values[-1] and not self.clip_negative:
            raise DataError(
                f"nystroem: kernel {self._name}: expected a positive semi-definite kernel matrix, got the "
                f"eigenvalue {values[0]:.3g} beside {values[-1]:.3g}: choose another kernel, or clip_negative: true"
            )
        return whitening(values, vectors, self.rcond)

    def _project(
        self, W: Floats, landmarks: Array, X: Floats, gamma: float, scale: float, rng: np.random.Generator
    ) -> Floats:
        if self.weights == "exact" and W.shape[1] <= self.n_components:
            return W
        tile = self._tile(landmarks, gamma, scale, np.dtype(np.float64))

        def kernel(rows: Floats) -> Floats:
            return _evaluate(tile, rows, np.arange(len(rows)), len(landmarks))

        def exact(rows: Floats) -> Floats:
            return _evaluate(
                self._tile(rows, gamma, scale, np.dtype(np.float64)), rows, np.arange(len(rows)), len(rows)
            )

        if self.weights == "exact":
            return leading(W, kernel, X, self.n_components, rng)
        return fitted(W, kernel, exact, X, self.n_components, rng)

    @property
    def _name(self) -> str:
        return self.kernel if isinstance(self.kernel, str) else getattr(self.kernel, "__name__", "function")

    def _parameters(self, gamma: float) -> KernelParameters:
        return KernelParameters(
            gamma=gamma, degree=self.degree, coef0=self.coef0, nu=self.nu, alpha=self.alpha
        )

    def _gram(self, gamma: float, pair: Pair) -> Gram:
        if isinstance(self.kernel, str):
            return KERNELS[self.kernel].gram(pair, self._parameters(gamma))
        if not isinstance(pair, Coordinates):
            raise TypeError("a function needs coordinates")
        function = self.kernel

        def norms(X: Floats) -> Floats:
            parts = [X[i : i + 64] for i in range(0, len(X), 64)]
            return np.concatenate([np.empty(0), *(call_kernel(function, x, x).diagonal() for x in parts)])

        values = call_kernel(function, pair.x, pair.y).astype(np.float64)
        return Gram(values, (norms(pair.x), norms(pair.y)))

    def state_shapes(self, state: State, n_features_in: int) -> Mapping[str, Shape]:
        m = self.n_landmarks or self.n_components
        if isinstance(self.landmarks, Given) and "landmarks" in state:
            m = len(state["landmarks"])
        return {
            "landmarks": (m,) if self._precomputed else (m, n_features_in),
            "projection": (m, self.n_components),
            "gamma": (),
            "scale": (),
            "rank": (),
        }

    def check_state(self, state: State, n_features_in: int) -> None:
        if self._precomputed:
            check_indices("landmarks", state["landmarks"], n_features_in)
        if not state["scale"] > 0.0:
            raise ValueError(f"scale: expected a number above 0, got {float(state['scale']):g}")

    def bind(self, state: State, n_features_in: int, dtype: np.dtype[Any]) -> Transform:
        tile = self._tile(state["landmarks"], float(state["gamma"]), float(state["scale"]), dtype)
        return _NystroemTransform(tile, state["projection"], n_features_in, dtype)

    def exact(self, state: State, pair: Pair) -> Pair:
        if self.no_exact:
            raise UsageError(self.no_exact)
        return self._gram(float(state["gamma"]), pair)


def _evaluate(tile: KernelTile, X: Floats, rows: Indices, m: int) -> Floats:
    """The kernel of some rows of X with m landmarks, block by block, in the dtype of the tile."""
    out = np.empty((len(rows), m), dtype=tile.dtype)
    scratch = tile.scratch(min(_BLOCK, len(rows)))
    for start in range(0, len(rows), _BLOCK):
        block = np.ascontiguousarray(X[rows[start : start + _BLOCK]], dtype=tile.dtype)
        target = out[start : start + _BLOCK]
        tile.evaluate(block, target, tuple(buffer[: len(block)] for buffer in scratch))
    return out


class _NystroemTransform(Transform):
    """The kernel with the landmarks, then one matrix product."""

    def __init__(
        self, tile: KernelTile, projection: Floats, n_features_in: int, dtype: np.dtype[Any]
    ) -> None:
        self.n_features_in = n_features_in
        self._m, self.n_features_out = projection.shape
        self._tile = tile
        self._projection = np.ascontiguousarray(projection, dtype=dtype)
        self._dtype = dtype

    def scratch(self, rows: int) -> tuple[Array, ...]:
        return np.empty((rows, self._m), dtype=self._dtype), *self._tile.scratch(rows)

    def apply(self, X: Floats, out: Floats, scratch: tuple[Array, ...]) -> None:
        K, *rest = scratch
        self._tile.evaluate(X, K, tuple(rest))
        np.matmul(K, self._projection, out=out)
