"""Nyström features."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from kafeat.bandwidth import Rule, resolve_gamma
from kafeat.domain import refuse_negative
from kafeat.errors import DataError
from kafeat.kernel_tiles import KernelTile, kernel_tile
from kafeat.kernels import KERNELS, KernelParameters
from kafeat.landmarks import select
from kafeat.pair import Coordinates, Gram, Pair
from kafeat.step import PositiveFloat, PositiveInt, Sample, Step, Transform, parameter, refuse_parameter
from kafeat.types import Array, Floats, Shape, State

# An eigenvalue below −10⁻⁶ of the largest is no rounding error: the kernel is indefinite.
_CLEARLY_NEGATIVE = 1e-6


class Nystroem(Step):
    """Nyström features: z(x) = Λ_r^{−½} V_rᵀ k(L, x), with K_mm = k(L, L) = VΛVᵀ on m landmark rows L.

    ZZᵀ = K_nm K_mm⁺ K_mn is the best approximation of the kernel within the span of the landmarks: exact on the
    landmarks themselves, never above the kernel, and as good as the kernel's spectrum falls fast. The rank cut is
    relative and made in float64; columns beyond the rank are 0.

    Source: Williams & Seeger 2001, equation 8.
    """

    keeps_rows: ClassVar[bool] = True

    kernel: Literal[
        "rbf", "laplacian", "polynomial", "linear", "cosine", "sigmoid", "chi2", "additive_chi2"
    ] = parameter("rbf", "the kernel to approximate")
    gamma: PositiveFloat | Rule = parameter(
        "median", "γ, or how it is read off the fit sample; median is 1/d for kernels of dot products"
    )
    degree: PositiveInt = parameter(2, "of the polynomial kernel")
    coef0: Annotated[float, Field(ge=0)] = parameter(1.0, "c₀ of the polynomial and sigmoid kernels")
    n_components: PositiveInt = parameter(256, "D, the number of outputs")
    n_landmarks: PositiveInt | None = parameter(None, "m, the number of landmarks; null: as many as outputs")
    landmarks: Literal["uniform"] = parameter("uniform", "how the landmarks are chosen")
    rcond: Annotated[float, Field(ge=0, lt=1)] = parameter(1e-10, "eigenvalues below rcond·λ_max are cut off")
    clip_negative: bool = parameter(False, "accept an indefinite kernel and cut its negative part off")

    @model_validator(mode="after")
    def _enough_landmarks(self) -> Self:
        if self.n_landmarks is not None and self.n_landmarks < self.n_components:
            refuse_parameter("n_landmarks", f"at least n_components = {self.n_components}", self.n_landmarks)
        return self

    @property
    def needs_coordinates(self) -> bool:
        return KERNELS[self.kernel].needs_coordinates

    def fit(self, sample: Sample, rng: np.random.Generator) -> State:
        m = self.n_landmarks or self.n_components
        if len(sample.X) < m:
            raise DataError(
                f"nystroem: expected at least as many rows as landmarks ({m}), got {len(sample.X)}: "
                "lower n_landmarks or n_components"
            )
        of_gamma, of_landmarks = rng.spawn(2)
        if KERNELS[self.kernel].non_negative:
            refuse_negative(sample.X)
        gamma = np.array(resolve_gamma(self.gamma, KERNELS[self.kernel], sample.X, of_gamma))
        landmarks = select(self.landmarks, sample.X, m, of_landmarks)
        rows = landmarks.astype(np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            K = self._gram(float(gamma), Coordinates(rows, rows)).dots
        projection, rank = self._factor(K)
        return {"landmarks": landmarks, "projection": projection, "gamma": gamma, "rank": np.array(rank)}

    def _factor(self, K: Floats) -> tuple[Floats, int]:
        """V_r Λ_r^{−½}, (m, n_components), with zero columns beyond the rank."""
        if not np.isfinite(K).all():
            raise DataError(
                f"nystroem: kernel {self.kernel}: expected a kernel matrix that float64 can hold, got "
                f"{K[~np.isfinite(K)][0]:g}: scale the input"
            )
        values, vectors = np.linalg.eigh(K)
        values, vectors = values[::-1], vectors[:, ::-1]
        if values[-1] < -_CLEARLY_NEGATIVE * values[0] and not self.clip_negative:
            raise DataError(
                f"nystroem: kernel {self.kernel}: expected a positive semi-definite kernel matrix, got the "
                f"eigenvalue {values[-1]:.3g} beside {values[0]:.3g}: choose another kernel, or clip_negative: true"
            )
        rank = int(np.count_nonzero(values > max(self.rcond * values[0], 0.0)))
        kept = min(rank, self.n_components)
        projection = np.zeros((len(K), self.n_components))
        projection[:, :kept] = vectors[:, :kept] / np.sqrt(values[:kept])
        return projection, kept

    def _parameters(self, gamma: float) -> KernelParameters:
        return KernelParameters(gamma=gamma, degree=self.degree, coef0=self.coef0)

    def _gram(self, gamma: float, pair: Pair) -> Gram:
        return KERNELS[self.kernel].gram(pair, self._parameters(gamma))

    def state_shapes(self, state: State, n_features_in: int) -> Mapping[str, Shape]:
        m = self.n_landmarks or self.n_components
        return {
            "landmarks": (m, n_features_in),
            "projection": (m, self.n_components),
            "gamma": (),
            "rank": (),
        }

    def bind(self, state: State, n_features_in: int, dtype: np.dtype[Any]) -> Transform:
        tile = kernel_tile(self.kernel, state["landmarks"], self._parameters(float(state["gamma"])), dtype)
        return _NystroemTransform(tile, state["projection"], state["landmarks"].shape, dtype)

    def exact(self, state: State, pair: Pair) -> Pair:
        return self._gram(float(state["gamma"]), pair)


class _NystroemTransform(Transform):
    """The kernel with the landmarks, then one matrix product."""

    def __init__(self, tile: KernelTile, projection: Floats, landmarks: Shape, dtype: np.dtype[Any]) -> None:
        self._m, self.n_features_in = landmarks
        self.n_features_out = projection.shape[1]
        self._tile = tile
        self._projection = np.ascontiguousarray(projection, dtype=dtype)
        self._dtype = dtype

    def scratch(self, rows: int) -> tuple[Array, ...]:
        return np.empty((rows, self._m), dtype=self._dtype), *self._tile.scratch(rows)

    def apply(self, X: Floats, out: Floats, scratch: tuple[Array, ...]) -> None:
        K, *rest = scratch
        self._tile.evaluate(X, K, tuple(rest))
        np.matmul(K, self._projection, out=out)
