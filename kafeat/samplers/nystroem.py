"""Nyström features."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, field_validator, model_validator
from pydantic_core import PydanticCustomError

from kafeat.contract.checks import check_indices, count_rows, refuse_negative
from kafeat.contract.describe import Described, spell
from kafeat.contract.kernel_inputs import KernelInputs
from kafeat.contract.step import (
    N_COMPONENTS,
    ErrorSlopes,
    PositiveFloat,
    PositiveInt,
    Sample,
    Step,
    Traits,
    Transform,
    Width,
    parameter,
    refuse_parameter,
)
from kafeat.errors import DataError, UsageError
from kafeat.maths.bandwidth import Rule, resolve_gamma
from kafeat.maths.dot_products import COEFFICIENTS, Coefficients, check_series
from kafeat.maths.kernel import DifferentiableKernel, KernelParameters, TiledKernel, spelled_out
from kafeat.maths.kernels import find_kernel, kernel_names
from kafeat.maths.kernels.column_sets import degree_warning
from kafeat.maths.nystroem.kernel import CLEARLY, LandmarkKernel, evaluate
from kafeat.maths.nystroem.landmarks import OF_LABEL, POINTS, ROWS, Given
from kafeat.maths.nystroem.projection import fitted, leading, learn_preimages, trapezoid, whitening
from kafeat.maths.nystroem.transform import InFloat64, LandmarkFeatures, drowned, gain_of
from kafeat.maths.task import MOST_CLASSES, count_classes
from kafeat.types import Array, Floats, Shape, State

_WITH_TOLERANCE = ("rpcholesky", "greedy")
_DIFFERENTIABLE = kernel_names(DifferentiableKernel)

if TYPE_CHECKING:
    KernelName = str
else:
    KernelName = Literal[(*kernel_names(TiledKernel), "precomputed")]
Function = Annotated[Callable[..., Any], Described("a Python function k(X, Y)", "functions")]
Rows = Annotated[Given, Described("a mapping with the key 'given'", "mappings")]


_UNSAVED = "kernel: expected a kernel that a model file can hold, got a Python function"
_NO_EXACT = (
    "nystroem: kernel precomputed: there is no exact kernel beyond the given columns; `kafeat evaluate --config` takes "
    "a recipe with this as its first step, and the square kernel matrix of all rows"
)


class Nystroem(Step):
    """Nyström features: z(x) = Tᵀ k(L, x), T Tᵀ = K_mm⁺ = V_r Λ_r^{−1} V_rᵀ, K_mm = k(L, L) on m landmark rows L.

    ZZᵀ = K_nm K_mm⁺ K_mn is the best approximation of the kernel within the span of the landmarks. It is exact on the
    landmarks and never above a positive definite kernel. The faster the spectrum falls, the smaller its error. T is
    lower triangular, a rotation of V_r Λ_r^{−½} that saves half of the product. Columns beyond rank r are 0. With
    `root: symmetric` T is V_r Λ_r^{−½} V_rᵀ, as in scikit-learn. `kernel: precomputed` takes rows that hold k(x, every
    training row).

    Source: Williams & Seeger 2001, equation 8; the selectors and `weights` name theirs.
    """

    # Drineas & Mahoney 2005; with an eigengap Mahdavi, Yang & Jin 2012 (Frobenius), Jin et al. 2013 (spectral).
    always: ClassVar[Traits] = Traits(
        error_slopes=ErrorSlopes(frobenius=(-0.25, -0.5), spectral=(-0.5, -1.0))
    )

    kernel: KernelName | Function = parameter("rbf", "the kernel to approximate; poly is polynomial")
    gamma: PositiveFloat | Rule = parameter(
        "median", "γ, or how it is read off the fit sample; median is 1/d for kernels of dot products"
    )
    nu: Annotated[float, Field(gt=0, le=30)] = parameter(1.5, "ν, the smoothness of the matern kernel")
    alpha: PositiveFloat = parameter(1.0, "α of the rational_quadratic kernel")
    degree: PositiveInt = parameter(2, "of the polynomial and anova kernels")
    coef0: Annotated[float, Field(ge=0)] = parameter(1.0, "c₀ of the polynomial and sigmoid kernels")
    coefficients: Coefficients | None = COEFFICIENTS
    n_components: Width = N_COMPONENTS
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
            "residual",
            "dual_weighted",
            "dual_kmeans",
        ]
        | Rows
    ) = parameter(
        "auto",
        "how the landmarks are chosen; auto: residual with a label, else kmeans, or rpcholesky if only rows will do",
    )
    dual_l1: Annotated[float, Field(ge=0, lt=1)] = parameter(
        0.0,
        "τ of dual_weighted and dual_kmeans for a label of numbers: rows with a smaller error get no weight",
    )
    tolerance: Annotated[float, Field(gt=0, lt=1)] | None = parameter(
        None,
        "for rpcholesky and greedy: outputs end where this share of the kernel's trace is left, n_components at most",
    )
    weights: Literal["exact", "fitted"] = parameter(
        "exact", "of the landmarks: exact on them, or fitted to the kernel of the fit sample"
    )
    root: Literal["triangular", "symmetric"] = parameter(
        "triangular", "T where landmarks are as many as outputs; symmetric costs twice the product"
    )
    rcond: Annotated[float, Field(ge=0, lt=1)] = parameter(1e-8, "eigenvalues below rcond·λ_max are cut off")
    clip_negative: bool = parameter(False, "accept an indefinite kernel and cut its negative part off")
    preimages: bool = parameter(
        False, "learn the way back from features to rows by ridge, for inverse_transform: D·d numbers more"
    )

    @property
    def traits(self) -> Traits:
        traits, kernel = super().traits, None if self._named is None else find_kernel(self._named)
        non_negative = kernel is not None and kernel.non_negative
        by_label = {f"landmarks: {self._selector}": "to choose rows by"} if self._selector in OF_LABEL else {}
        return replace(
            traits,
            label_needs={**traits.label_needs, **by_label},
            uses_label=self.landmarks == "auto" and self._selector == "kmeans",
            needs_coordinates=kernel is None or kernel.needs_coordinates,
            spreads="ignores" if kernel is None or non_negative else "needs",
            refuses_negative=non_negative,
            keeps_rows=not self._precomputed and self._selector not in ("kmeans", "learned"),
            given_rows={self.landmarks.key: self.landmarks.given}
            if isinstance(self.landmarks, Given)
            else {},
            unsaved=None if isinstance(self.kernel, str) else _UNSAVED,
            no_exact=_NO_EXACT if self._precomputed else None,
        )

    @field_validator("kernel", mode="before")
    @classmethod
    def _long_name(cls, kernel: object) -> object:
        if isinstance(kernel, str) and ":" in kernel:  # module:function, which earlier versions imported
            text = (
                f"expected the name of a kernel, got {spell(kernel)}: "
                "a function of your own is given to `kafeat.fit` in Python, as a callable"
            )
            raise PydanticCustomError("parameter", "{text}", {"text": text})
        return spelled_out(kernel)

    @model_validator(mode="after")
    def _own_kernel_has_no_parameters(self) -> Self:
        """A kernel that is given brings its numbers along, so these would do nothing."""
        if self._named:
            return self
        given = "a precomputed kernel" if self._precomputed else "a Python function"
        for name in ("gamma", "nu", "alpha", "degree", "coef0"):
            if getattr(self, name) != type(self).model_fields[name].default:
                refuse_parameter(name, f"none beside {given}", getattr(self, name))
        return self

    @model_validator(mode="after")
    def _coefficients_of_a_series(self) -> Self:
        check_series(self, self.kernel, self.coefficients)
        return self

    @model_validator(mode="after")
    def _enough_landmarks(self) -> Self:
        if self.n_landmarks is not None and self.n_landmarks < self.n_components:
            refuse_parameter("n_landmarks", f"at least n_components = {self.n_components}", self.n_landmarks)
        if self.tolerance is not None:
            if self._selector not in _WITH_TOLERANCE:
                refuse_parameter(
                    "tolerance", f"landmarks: {' or '.join(_WITH_TOLERANCE)} with it", self._selector
                )
            if self.n_landmarks is not None:
                refuse_parameter("n_landmarks", "none beside a tolerance", self.n_landmarks)
        if self.root == "symmetric":
            if self.n_landmarks not in (None, self.n_components):
                refuse_parameter(
                    "n_landmarks", "as many as n_components, for a symmetric root", self.n_landmarks
                )
            if self.weights == "fitted":
                refuse_parameter("weights", "exact, for a symmetric root", self.weights)
        if self._precomputed:
            if self.landmarks in POINTS or isinstance(self.landmarks, Given):
                refuse_parameter("landmarks", "landmarks that are columns of the input", self.landmarks)
            if self.weights == "fitted":
                refuse_parameter("weights", "exact, for a precomputed kernel", self.weights)
            if self.preimages:
                refuse_parameter("preimages", "false, for a precomputed kernel", self.preimages)
        if self.landmarks == "learned" and self.kernel not in _DIFFERENTIABLE:
            needed = " or ".join(_DIFFERENTIABLE)
            refuse_parameter("landmarks", f"another, as learned needs {needed}", "learned")
        return self

    @property
    def _precomputed(self) -> bool:
        return self.kernel == "precomputed"

    @property
    def _named(self) -> str | None:
        """The name of the kernel; None for columns and functions."""
        named = isinstance(self.kernel, str) and not self._precomputed
        return str(self.kernel) if named else None

    @property
    def _selector(self) -> str:
        """The name of the selector, `auto` resolved."""
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

    def recipe(self) -> dict[str, Any]:
        shown = self
        if not isinstance(self.kernel, str):
            shown = self.model_copy(update={"kernel": f"<function {getattr(self.kernel, '__name__', '?')}>"})
        return {"kind": self.kind, **shown.model_dump(mode="json", warnings=False), **self._searches}

    def fit(self, sample: Sample, rng: np.random.Generator) -> State:
        of_gamma, of_landmarks, of_weights, of_preimages = rng.spawn(4)
        X, gamma = sample.X, self._fit_gamma(sample.X, of_gamma)
        kernel = self.landmark_kernel(gamma)
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            landmarks, chosen = self._choose(sample, kernel, of_landmarks)
            K = kernel.matrix(landmarks, X)
            scale = kernel.scale(K.diagonal())
            centre = kernel.centre(landmarks)
            width = self.n_components if self.tolerance is None else len(K)
            factor = self._factor(K / scale, kernel)
            projection = self._project(factor, kernel, landmarks, scale, X, width, of_weights)
        padded = self._padded(projection, len(K), width) * np.sqrt(scale)
        preimages: State = {}
        if self.preimages:
            tile = kernel.tile(landmarks, scale, np.dtype(np.float64), centre)
            preimages = learn_preimages(
                X, lambda rows: evaluate(tile, X, rows, len(landmarks)) @ padded, of_preimages
            )
        return {
            **preimages,
            **({} if centre is None else {"centre": centre}),
            **({} if chosen is None else {"rows": chosen}),
            "landmarks": landmarks,
            "projection": padded,
            "gain": np.array(gain_of(padded) / scale),
            "gamma": np.array(gamma),
            "scale": np.array(scale),
            "rank": np.array(projection.shape[1]),
        }

    def _fit_gamma(self, X: Floats, rng: np.random.Generator) -> float:
        """Return γ for the rows X, which the kernel has to accept; 1 for a kernel without it."""
        if self._precomputed and X.shape[0] != X.shape[1]:
            raise DataError(
                f"nystroem: kernel precomputed: expected the square kernel matrix of the training rows, got "
                f"{X.shape[0]} rows and {X.shape[1]} columns: fit on all of them (fit_rows: all), with no other columns"
            )
        if self._named is None:
            return 1.0
        if find_kernel(self._named).non_negative:
            refuse_negative(X)
        return resolve_gamma(self.gamma, find_kernel(self._named), X, rng)

    def _padded(self, projection: Floats, m: int, width: int) -> Floats:
        """Return the projection in the form of `root`, with columns of zeros up to the width, (m, width)."""
        if self.root == "symmetric":
            # W's columns are those of V, scaled
            projection = projection @ (projection / np.linalg.norm(projection, axis=0)).T
        elif m == width:
            projection = trapezoid(projection)
        padded = np.zeros((m, width))
        padded[:, : projection.shape[1]] = projection
        return padded

    def _choose(
        self, sample: Sample, kernel: LandmarkKernel, rng: np.random.Generator
    ) -> tuple[Array, Array | None]:
        """The landmarks: rows (m, d), or numbers of columns (m,) of a precomputed kernel.

        Landmarks that are rows of the sample come with the numbers of these rows in the input, (m,).
        """
        X = sample.X
        if isinstance(self.landmarks, Given):
            return self._given(sample, self.landmarks), None
        m = self.n_landmarks or self.n_components
        if self.tolerance is not None:
            m = min(m, len(X))
        if len(X) < m:
            raise DataError(
                f"nystroem: expected at least as many rows as landmarks ({m}), got {len(X)}: "
                "lower n_landmarks or n_components"
            )
        view = kernel.view(sample, self.dual_l1, self.tolerance)
        try:
            if self._selector in POINTS:
                points = POINTS[self._selector](view, m, rng)
                # a centre of rows that are never negative, but for rounding
                return np.maximum(points, 0.0) if kernel.non_negative else points, None
            chosen = ROWS[self._selector](view, m, rng)
        except UsageError as error:
            raise UsageError(f"nystroem: landmarks: {self._selector}: {error}") from None
        if self._precomputed:
            return np.sort(chosen).astype(np.int64), None
        return X[chosen], np.asarray(chosen if sample.rows is None else sample.rows[chosen], dtype=np.int64)

    def _given(self, sample: Sample, landmarks: Given) -> Floats:
        rows = sample.given.get(landmarks.key)
        if rows is None:
            raise UsageError(f"nystroem: landmarks: given: expected the rows of {landmarks.key}, got none")
        least = self.n_landmarks or self.n_components
        exactly = self.n_landmarks is not None or self.root == "symmetric"
        if len(rows) < least or (exactly and len(rows) != least):
            name = "n_landmarks" if self.n_landmarks else "n_components"
            wanted = f"{name} = {least}" if exactly else f"at least n_components = {least}"
            raise DataError(f"nystroem: landmarks: {landmarks.key}: expected {wanted} rows, got {len(rows)}")
        if self.traits.refuses_negative and rows.min() < 0.0:
            raise DataError(
                f"nystroem: landmarks: {landmarks.key}: expected values of at least 0, got {rows.min():g}"
            )
        return rows

    def _factor(self, K: Floats, kernel: LandmarkKernel) -> Floats:
        """V_r Λ_r^{−½}, (m, r)."""
        values, vectors = np.linalg.eigh(K)
        if values[0] < -CLEARLY * values[-1] and not self.clip_negative:
            raise DataError(
                f"nystroem: kernel {kernel.name}: expected a positive semi-definite kernel matrix, got the "
                f"eigenvalue {values[0]:.3g} beside {values[-1]:.3g}: choose another kernel, or clip_negative: true"
            )
        return whitening(values, vectors, self.rcond)

    def _project(
        self,
        W: Floats,
        kernel: LandmarkKernel,
        landmarks: Array,
        scale: float,
        X: Floats,
        width: int,
        rng: np.random.Generator,
    ) -> Floats:
        """The weights (m, D) of the landmarks: W itself, its leading directions, or fitted ones."""
        if self.weights == "exact" and W.shape[1] <= width:
            return W
        tile = kernel.tile(landmarks, scale, np.dtype(np.float64), kernel.centre(landmarks))

        def with_landmarks(rows: Floats) -> Floats:
            return evaluate(tile, rows, np.arange(len(rows)), len(landmarks))

        def exact(rows: Floats) -> Floats:
            own = kernel.tile(rows, scale, np.dtype(np.float64), kernel.centre(rows))
            return evaluate(own, rows, np.arange(len(rows)), len(rows))

        if self.weights == "exact":
            return leading(W, with_landmarks, X, width, rng)
        return fitted(W, with_landmarks, exact, X, width, rng)

    def landmark_kernel(self, gamma: float) -> LandmarkKernel:
        """Return the kernel with its parameters in force."""
        parameters = KernelParameters(
            gamma=gamma,
            degree=self.degree,
            coef0=self.coef0,
            nu=self.nu,
            alpha=self.alpha,
            coefficients=self.coefficients or (1.0,),
        )
        return LandmarkKernel(self.kernel, parameters)

    def state_shapes(self, state: State, n_features_in: int) -> Mapping[str, Shape]:
        m = self.n_landmarks or self.n_components
        if isinstance(self.landmarks, Given) or self.tolerance is not None:
            m = count_rows(state, "landmarks")
        # the first files of format 1 have no gain, and all of them no centre and no rows
        later: dict[str, Shape] = {"gain": (), "centre": (n_features_in,), "rows": (m,)}
        return {
            **{name: shape for name, shape in later.items() if name in state},
            "landmarks": (m,) if self._precomputed else (m, n_features_in),
            "projection": (m, self.n_features_out(state, n_features_in)),
            "gamma": (),
            "scale": (),
            "rank": (),
            **({} if not self.preimages else self._preimage_shapes(state, n_features_in)),
        }

    def _preimage_shapes(self, state: State, n_features_in: int) -> dict[str, Shape]:
        D = self.n_features_out(state, n_features_in)
        return {"preimages": (D, n_features_in), "preimage_of_0": (n_features_in,)}

    @property
    def state_dtypes(self) -> Mapping[str, str]:
        return {"rank": "int64", "rows": "int64", **({"landmarks": "int64"} if self._precomputed else {})}

    def check_state(self, state: State, n_features_in: int) -> None:
        super().check_state(state, n_features_in)
        if self._precomputed:
            check_indices("landmarks", state["landmarks"], n_features_in)
        if "rows" in state and (state["rows"] < 0).any():
            raise ValueError("state.rows: expected numbers of rows, at least 0")
        projection = state["projection"]
        if self._is_triangle(projection) and np.triu(projection, 1).any():
            raise ValueError("state.projection: expected zeros above the diagonal")
        if not state["scale"] > 0.0:
            raise ValueError(f"scale: expected a number above 0, got {float(state['scale']):g}")

    def n_features_out(self, state: State, n_features_in: int) -> int:
        if self.tolerance is None:
            return self.n_components
        return min(self.n_components, count_rows(state, "landmarks"))

    def bind(self, state: State, n_features_in: int, dtype: np.dtype[Any]) -> Transform:
        projection, scale = state["projection"], float(state["scale"])
        wide = self.precision(state, dtype)
        tile = self.landmark_kernel(float(state["gamma"])).tile(
            state["landmarks"], scale, wide, state.get("centre")
        )
        transform = LandmarkFeatures(tile, projection, n_features_in, wide, self._is_triangle(projection))
        return transform if wide == dtype else InFloat64(transform, dtype)

    def precision(self, state: State, dtype: np.dtype[Any]) -> np.dtype[Any]:
        """Return the dtype for a transform in `dtype`: float64 where `dtype` would drown small features."""
        if drowned(float(state.get("gain", 0.0)), len(state["projection"]), dtype):
            return np.dtype(np.float64)
        return dtype

    def inverse(self, state: State, Z: Floats, n_features_in: int) -> Floats | None:
        if not self.preimages:
            return None
        rows: Floats = Z @ state["preimages"] + state["preimage_of_0"]
        return rows

    def _is_triangle(self, projection: Floats) -> bool:
        return self.root == "triangular" and len(projection) == projection.shape[1]

    def exact(self, state: State, pair: KernelInputs) -> KernelInputs:
        if self.traits.no_exact:
            raise UsageError(self.traits.no_exact)
        return self.landmark_kernel(float(state["gamma"])).gram(pair)
