"""Any kernel, by comparing each row with some rows of the data: the first map to try on most tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, cast

import numpy as np
from pydantic import Field, PlainSerializer, field_validator
from pydantic_core import PydanticCustomError

from kafeat.contract.checks import count_rows, refuse_negative
from kafeat.contract.describe import Described, spell
from kafeat.contract.kernel_inputs import KernelInputs
from kafeat.contract.step import (
    N_COMPONENTS,
    PositiveFloat,
    PositiveInt,
    Sample,
    Step,
    Transform,
    Width,
    parameter,
    refuse_beside,
    refuse_parameter,
)
from kafeat.contract.traits import ExactTraits, NumberTraits, Traits
from kafeat.maths.bandwidth import Rule, resolve_gamma
from kafeat.maths.dot_products import COEFFICIENTS, Coefficients, check_series
from kafeat.maths.kernel import DifferentiableKernel, KernelParameters, TiledKernel, spelled_out
from kafeat.maths.kernels import find_kernel, kernel_names
from kafeat.maths.kernels.column_sets import degree_warning
from kafeat.maths.nystroem.kernel import (
    NO_EXACT,
    FunctionKernel,
    LandmarkKernel,
    PrecomputedKernel,
    check_parameters,
    check_square,
)
from kafeat.maths.nystroem.landmarks import OF_LABEL, POINTS, SELECTORS, WITH_TOLERANCE, Given, select
from kafeat.maths.nystroem.projection import factor, fitted, leading, padded
from kafeat.maths.nystroem.transform import LandmarkFeatures, drowned, gain_of
from kafeat.maths.task import MOST_CLASSES, count_classes
from kafeat.types import Array, ArrayOf, Floats, Shapes, State

_DIFFERENTIABLE = kernel_names(DifferentiableKernel)

if TYPE_CHECKING:
    KernelName = str
    Selector = str
else:
    KernelName = Literal[(*kernel_names(TiledKernel), "precomputed")]
    Selector = Literal[("auto", *SELECTORS)]
Function = Annotated[
    Callable[..., Any],
    Described("a Python function k(X, Y)", "functions"),
    PlainSerializer(lambda kernel: f"<function {getattr(kernel, '__name__', '?')}>", when_used="json"),
]
Rows = Annotated[Given, Described("a mapping with the key 'given'", "mappings")]


_UNSAVED = "kernel: expected a kernel that a model file can hold, got a Python function"


class Nystroem(Step):
    """Nyström features: z(x) = Tᵀ k(L, x), T Tᵀ = K_mm⁺ = V_r Λ_r^{−1} V_rᵀ, K_mm = k(L, L) on m landmark rows L.

    ZZᵀ = K_nm K_mm⁺ K_mn is the best approximation of the kernel within the span of the landmarks. It is exact on the
    landmarks, and z(x)·z(x) ≤ k(x, x) if the kernel is positive definite. With `weights: fitted`, T Tᵀ is not K_mm⁺,
    but the matrix for which ZZᵀ is closest to the kernel of the sample. T is lower triangular, a rotation of V_r
    Λ_r^{−½} that saves half of the product. Columns after the r-th are 0. With `root: symmetric`, T is V_r Λ_r^{−½}
    V_rᵀ, as in scikit-learn. With `kernel: precomputed`, a row holds k(x, y) for every training row y.

    Source: Williams & Seeger 2001, equation 8; selectors and `weights` have sources of their own.
    """

    kernel: KernelName | Function = parameter("rbf", "the kernel to approximate; poly means polynomial")
    gamma: PositiveFloat | Rule = parameter(
        "median", "γ, or a rule to compute it from the fit sample; median is 1/d for kernels of dot products"
    )
    nu: Annotated[float, Field(gt=0, le=30)] = parameter(1.5, "ν, the smoothness of the matern kernel")
    alpha: PositiveFloat = parameter(1.0, "α of the rational_quadratic kernel")
    degree: PositiveInt = parameter(2, "degree of the polynomial and anova kernels")
    coef0: Annotated[float, Field(ge=0)] = parameter(1.0, "c₀ of the polynomial and sigmoid kernels")
    coefficients: Coefficients | None = COEFFICIENTS
    n_components: Width = N_COMPONENTS
    n_landmarks: Width | None = parameter(None, "m, the number of landmarks; null: as many as outputs")
    landmarks: Selector | Rows = parameter(
        "auto",
        "selects the landmarks; auto: residual with a label, else kmeans; rpcholesky for a function or precomputed",
    )
    dual_l1: Annotated[float, Field(ge=0, lt=1)] = parameter(
        0.0,
        "τ of dual_weighted and dual_kmeans for a label of numbers: rows with a smaller error get no weight",
    )
    tolerance: Annotated[float, Field(gt=0, lt=1)] | None = parameter(
        None,
        "for rpcholesky and greedy: stop when this share of the kernel's trace is left, or at n_components",
    )
    weights: Literal["auto", "exact", "fitted"] = parameter(
        "auto",
        "T Tᵀ: exact on the landmarks, or fitted to the kernel of the sample; auto: fitted if `landmarks: auto` is "
        "kmeans, else exact",
    )
    root: Literal["triangular", "symmetric"] = parameter(
        "triangular", "form of T with as many landmarks as outputs; symmetric makes the product twice as slow"
    )
    rcond: Annotated[float, Field(ge=0, lt=1)] = parameter(1e-12, "eigenvalues below rcond·λ_max are cut off")
    clip_negative: bool = parameter(False, "accept an indefinite kernel and cut its negative part off")

    @property
    def traits(self) -> Traits:
        traits, kernel = super().traits, None if self._named is None else find_kernel(self._named)
        non_negative = kernel is not None and kernel.non_negative
        by_label = {f"landmarks: {self._selector}": "to choose rows by"} if self._selector in OF_LABEL else {}
        uses = self.landmarks == "auto" and self._selector == "kmeans"
        return replace(
            traits,
            label=replace(traits.label.needing(by_label), uses=uses),
            numbers=NumberTraits(
                spreads="ignores" if kernel is None or non_negative else "needs",
                refuses_negative=non_negative,
            ),
            exact=ExactTraits(
                kernel is None or kernel.needs_coordinates, none=NO_EXACT if self._precomputed else None
            ),
            keeps_rows=not self._precomputed and self._selector not in ("kmeans", "learned"),
            given_rows={self.landmarks.key: self.landmarks.given}
            if isinstance(self.landmarks, Given)
            else {},
            unsaved=None if isinstance(self.kernel, str) else _UNSAVED,
        )

    @field_validator("kernel", mode="before")
    @classmethod
    def _long_name(cls, kernel: object) -> object:
        if isinstance(kernel, str) and ":" in kernel:  # earlier releases imported module:function
            text = (
                f"expected the name of a kernel, got {spell(kernel)}: "
                "a function of your own is given to `kafeat.fit` in Python, as a callable"
            )
            raise PydanticCustomError("parameter", "{text}", {"text": text})
        return spelled_out(kernel)

    def check_parameters(self) -> None:
        if not self._named:  # parameters of named kernels would have no effect
            given = "a precomputed kernel" if self._precomputed else "a Python function"
            refuse_beside(self, ("gamma", "nu", "alpha", "degree", "coef0"), given)
        check_series(self, self.kernel, self.coefficients)
        self._check_landmarks()
        if self.root == "symmetric":
            self._check_square()
        if self._precomputed:
            check_parameters(self.landmarks, self.weights)
        if self.landmarks == "learned" and self.kernel not in _DIFFERENTIABLE:
            refuse_parameter(
                "landmarks", f"another, as learned needs {' or '.join(_DIFFERENTIABLE)}", "learned"
            )

    def _check_landmarks(self) -> None:
        if self.n_landmarks is not None and self.n_landmarks < self.n_components:
            refuse_parameter("n_landmarks", f"at least n_components = {self.n_components}", self.n_landmarks)
        if self.tolerance is not None:
            if self._selector not in WITH_TOLERANCE:
                needed = " or ".join(WITH_TOLERANCE)
                refuse_parameter("tolerance", f"landmarks: {needed} with it", self._selector)
            if self.n_landmarks is not None:
                refuse_parameter("n_landmarks", "none with a tolerance", self.n_landmarks)

    def _check_square(self) -> None:
        if self.n_landmarks not in (None, self.n_components):
            refuse_parameter("n_landmarks", "as many as n_components, for a symmetric root", self.n_landmarks)
        if self.weights == "fitted":
            refuse_parameter("weights", "exact, for a symmetric root", self.weights)

    @property
    def _precomputed(self) -> bool:
        return self.kernel == "precomputed"

    @property
    def _named(self) -> str | None:
        """The name of the kernel, or None for a precomputed kernel or a Python function."""
        named = isinstance(self.kernel, str) and not self._precomputed
        return str(self.kernel) if named else None

    @property
    def _selector(self) -> str:
        """The name of the selector. For `auto`, it is the selector that is used without a label."""
        if isinstance(self.landmarks, Given):
            return "given"
        if self.landmarks != "auto":
            return self.landmarks
        return "kmeans" if self._named else "rpcholesky"

    def settled(self, sample: Sample) -> Self:
        if self.landmarks != "auto" or self._selector != "kmeans" or sample.label is None:
            return self
        n_classes = count_classes(sample.label)
        return (
            self.model_copy(update={"landmarks": "residual"})
            if n_classes is None or 2 <= n_classes <= MOST_CLASSES
            else self
        )

    def width_warning(self, n_features_in: int) -> str | None:
        return degree_warning(self.kind, self.degree, n_features_in) if self.kernel == "anova" else None

    def fit(self, sample: Sample, rng: np.random.Generator) -> State:
        of_gamma, of_landmarks, of_weights = rng.spawn(3)
        X, gamma = sample.X, self._fit_gamma(sample.X, of_gamma)
        kernel = self.landmark_kernel(gamma)
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            landmarks, numbers = self._choose(sample, kernel, of_landmarks)
            K = kernel.matrix(landmarks, X)
            scale = kernel.scale(K.diagonal())
            W = self._weights(K / scale, kernel, landmarks, scale, X, of_weights)
        T = padded(W, self._width(len(K)), self.root == "symmetric") * np.sqrt(scale)
        later = {"centre": kernel.centre(landmarks), "rows": numbers}
        return {
            **{name: array for name, array in later.items() if array is not None},
            "landmarks": landmarks,
            "projection": T,
            "gain": np.array(gain_of(T) / scale),
            "gamma": np.array(gamma),
            "scale": np.array(scale),
            "rank": np.array(W.shape[1]),
        }

    def _fit_gamma(self, X: Floats, rng: np.random.Generator) -> float:
        """Check that the kernel accepts the rows X, and return its γ, or 1 if it has none."""
        if self._precomputed:
            check_square(X)
        if self._named is None:
            return 1.0
        if find_kernel(self._named).non_negative:
            refuse_negative(X)
        return resolve_gamma(self.gamma, find_kernel(self._named), X, rng)

    def _choose(
        self, sample: Sample, kernel: LandmarkKernel, rng: np.random.Generator
    ) -> tuple[Array, Array | None]:
        """Return the landmarks: points (m, d), or column numbers (m,) of a precomputed kernel.

        The second array has the row numbers (m,) in the input if landmarks are rows of the sample. If not, it is None.
        """
        X, m = sample.X, self.n_landmarks or self.n_components
        if isinstance(self.landmarks, Given):
            name = "n_landmarks" if self.n_landmarks else "n_components"
            exactly = self.n_landmarks is not None or self.root == "symmetric"
            return self.landmarks.rows_of(sample, name, m, exactly, kernel.non_negative), None
        if self.tolerance is not None:
            m = min(m, len(X))
        chosen = select(self._selector, kernel.view(sample, self.dual_l1, self.tolerance), m, rng)
        if self._selector in POINTS:
            # the mean of non-negative rows may be below 0 by rounding
            return np.maximum(chosen, 0.0) if kernel.non_negative else chosen, None
        if self._precomputed:
            return np.sort(chosen).astype(np.int64), None
        return X[chosen], np.asarray(chosen if sample.rows is None else sample.rows[chosen], dtype=np.int64)

    def _weights(
        self,
        K: Floats,
        kernel: LandmarkKernel,
        landmarks: Array,
        scale: float,
        X: Floats,
        rng: np.random.Generator,
    ) -> Floats:
        """Return the weights (m, r) of the landmarks: the factor of K_mm⁺, its leading directions, or fitted ones."""
        W, width = factor(K, self.rcond, kernel.name, self.clip_negative), self._width(len(K))
        against = kernel.against(landmarks, scale)
        # With default parameters and without a label, weights are fitted to reduce the error of the kernel.
        free = self.landmarks == self.weights == "auto" and self.root == "triangular"
        if self.weights == "fitted" or (free and self._selector == "kmeans" and len(X) > len(K)):
            return fitted(W, against, lambda rows: kernel.against(rows, scale)(rows), X, width, rng)
        return W if W.shape[1] <= width else leading(W, against, X, width, rng)

    def _width(self, m: int) -> int:
        """Return the number of outputs for m landmarks."""
        return self.n_components if self.tolerance is None else min(self.n_components, m)

    def landmark_kernel(self, gamma: float) -> LandmarkKernel:
        """Return the kernel for use with landmarks. It has this γ and the parameters of the recipe."""
        if self._precomputed:
            return PrecomputedKernel()
        if isinstance(self.kernel, str):
            name, kernel = self.kernel, cast(TiledKernel, find_kernel(self.kernel))
        else:
            name, kernel = getattr(self.kernel, "__name__", "function"), FunctionKernel(self.kernel)
        return LandmarkKernel(name, kernel, KernelParameters.of(self, gamma))

    def state_shapes(self, state: State, n_features_in: int) -> Shapes:
        m = self.n_landmarks or self.n_components
        if isinstance(self.landmarks, Given) or self.tolerance is not None:
            m = count_rows(state, "landmarks")
        return {
            # Files of format 1 lack centre and rows, and the older files of format 1 also lack the gain.
            "gain": ArrayOf((), optional=True),
            "centre": ArrayOf((n_features_in,), optional=True),
            "rows": ArrayOf((m,), "int64", optional=True, sign="of at least 0"),
            "landmarks": ArrayOf((m,), "int64", below=n_features_in)
            if self._precomputed
            else (m, n_features_in),
            "projection": (m, self.n_features_out(state, n_features_in)),
            "gamma": (),
            "scale": ArrayOf((), sign="above 0"),
            "rank": ArrayOf((), "int64"),
        }

    def check_state(self, state: State, n_features_in: int) -> None:
        super().check_state(state, n_features_in)
        projection = state["projection"]
        if self._is_triangle(projection) and np.triu(projection, 1).any():
            raise ValueError("state.projection: expected zeros above the diagonal")

    def n_features_out(self, state: State, n_features_in: int) -> int:
        return self._width(count_rows(state, "landmarks"))

    def bind(self, state: State, n_features_in: int, dtype: np.dtype[Any]) -> Transform:
        projection, scale = state["projection"], float(state["scale"])
        tile = self.landmark_kernel(float(state["gamma"])).tile(
            state["landmarks"], scale, self.precision(state, dtype), state.get("centre")
        )
        return LandmarkFeatures(tile, projection, n_features_in, dtype, self._is_triangle(projection))

    def precision(self, state: State, dtype: np.dtype[Any]) -> np.dtype[Any]:
        """Return the dtype to compute in: float64 if rounding in `dtype` would be larger than the smallest features."""
        if drowned(float(state.get("gain", 0.0)), len(state["projection"]), dtype):
            return np.dtype(np.float64)
        return dtype

    def _is_triangle(self, projection: Floats) -> bool:
        return self.root == "triangular" and len(projection) == projection.shape[1]

    def exact(self, state: State, pair: KernelInputs) -> KernelInputs:
        return self.landmark_kernel(float(state["gamma"])).gram(pair)
