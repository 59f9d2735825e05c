"""Convert fitted scikit-learn estimators to kafeat maps with the same output columns.

All attributes of an estimator are checked, because it may come from an untrusted file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sized
from itertools import islice
from numbers import Real
from typing import Any

import numpy as np
from scipy.sparse import csr_array, csr_matrix
from sklearn.decomposition import PCA
from sklearn.kernel_approximation import (
    AdditiveChi2Sampler,
    Nystroem,
    PolynomialCountSketch,
    RBFSampler,
    SkewedChi2Sampler,
)
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MinMaxScaler, Normalizer, StandardScaler
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection

from kafeat.chain.chain import Chain, leading_scalers
from kafeat.config import load_config
from kafeat.errors import ConfigError, DataError
from kafeat.io.columns.columns import Columns
from kafeat.maths.kernel import KernelParameters
from kafeat.maths.kernels.histograms import spectral_kernel
from kafeat.maths.nystroem.kernel import NamedKernel
from kafeat.maths.nystroem.transform import gain_of
from kafeat.model.feature_map import FeatureMap
from kafeat.model.provenance import Origin, Provenance
from kafeat.sklearn.map_estimator import as_value_errors
from kafeat.types import Array, DType, Floats, State

MOST_INPUTS = 2**21
"""Twice the number of a hashing vectorizer. Some estimators contain no array that proves their number of inputs."""

Learned = tuple[dict[str, Any], State]
"""A recipe and a state of kafeat, which a function below makes of a fitted estimator with d inputs."""


class Attributes:
    """The attributes of a fitted estimator by name. A missing or unexpected value raises `DataError`."""

    def __init__(self, estimator: Any) -> None:
        self._values: dict[str, Any] = vars(estimator)
        self.cls = type(estimator)
        self.kind = self.cls.__name__

    def get(self, name: str) -> Any:
        """Return the attribute, or None if it does not exist."""
        return self._values.get(name)

    def __getitem__(self, name: str) -> Any:
        if name not in self._values:
            raise DataError(f"{self.kind}: {name}: expected a fitted estimator, got one without it")
        return self._values[name]

    def refuse(self, name: str, expected: str, got: object) -> DataError:
        """Return the error to raise for an unexpected value."""
        return DataError(f"{self.kind}: {name}: expected {expected}, got {_brief(got)}")

    def width(self) -> int:
        width = self.whole("n_features_in_")
        if not 1 <= width <= MOST_INPUTS:
            raise self.refuse("n_features_in_", f"a number from 1 to {MOST_INPUTS:,}", width)
        return width

    def says(self, name: str, text: str) -> bool:
        """Return True if the attribute is this text."""
        value = self[name]
        return isinstance(value, str) and value == text

    def is_pair(self, name: str, pair: tuple[float, float]) -> bool:
        """Return True if the attribute is this pair of numbers."""
        value = self[name]
        return (
            isinstance(value, tuple | list)
            and all(isinstance(n, Real) for n in value)
            and tuple(value) == pair
        )

    def has_none(self, name: str) -> bool:
        """Return True if the attribute is None or an empty dict."""
        value = self[name]
        return value is None or (isinstance(value, dict) and not value)

    def number(self, name: str, default: float | None = None) -> float:
        """Return a finite number; `default` replaces None."""
        value = self[name]
        if value is None and default is not None:
            return float(default)
        try:
            number = float(value) if isinstance(value, Real) and not isinstance(value, bool) else np.nan
        except OverflowError:  # a whole number of some hundred digits
            number = np.nan
        if not np.isfinite(number):
            raise self.refuse(name, "a finite number", value)
        return number

    def whole(self, name: str, default: float | None = None) -> int:
        value = self.number(name, default)
        if not value.is_integer():
            raise self.refuse(name, "a whole number, which kafeat requires here", value)
        return int(value)

    def flag(self, name: str) -> bool:
        if not isinstance(self[name], bool | np.bool_):
            raise self.refuse(name, "a bool", self[name])
        return bool(self[name])

    def one_of(self, name: str, known: tuple[str, ...]) -> str:
        """Return a text, which must be one of `known`."""
        value = self[name]
        if not isinstance(value, str) or value not in known:
            raise self.refuse(name, f"one of {', '.join(known)}", value)
        return value

    def array(self, name: str, shape: tuple[int | None, ...]) -> Array:
        """Return a dense numeric array of this shape (None: any length), unchanged."""
        value = self[name]
        if type(value) is not np.ndarray or value.dtype.kind not in "fiu":
            raise self.refuse(name, "a dense array of numbers", type(value).__name__)
        if len(shape) != value.ndim or any(
            n not in (None, m) for n, m in zip(shape, value.shape, strict=True)
        ):
            spelled = ", ".join("any" if n is None else str(n) for n in shape)
            raise self.refuse(name, f"the shape ({spelled})", value.shape)
        return value

    def floats(self, name: str, shape: tuple[int | None, ...]) -> Floats:
        """Return such an array as contiguous float64."""
        return np.array(self.array(name, shape), dtype=np.float64, order="C")

    def whole_numbers(self, name: str, shape: tuple[int | None, ...]) -> Array:
        """Return such an array of whole numbers as int64."""
        value = self.array(name, shape)
        if value.dtype.kind not in "iu":
            raise self.refuse(name, "whole numbers", str(value.dtype))
        return np.array(value, dtype=np.int64, order="C")


def _brief(value: object) -> str:
    """Return a short text for a value: nested lists may be small in a file and endless when printed."""
    flat = value if isinstance(value, tuple) else (value,)
    if len(flat) <= 4 and all(one is None or isinstance(one, str | Real) for one in flat):
        return f"{value!r:.100}"
    return f"{type(value).__name__} of {len(value)}" if isinstance(value, Sized) else type(value).__name__


def rbf_sampler(of: Attributes, d: int) -> Learned:
    """√(2/D) cos(ω_j·x + b_j)."""
    gamma = of.number("_gamma" if of.says("gamma", "scale") else "gamma")
    recipe, state = _cosines(of, d)
    return {"kind": "fourier", "kernel": "rbf", "gamma": gamma, **recipe}, {"gamma": np.array(gamma), **state}


def skewed_chi2_sampler(of: Attributes, d: int) -> Learned:
    """√(2/D) cos(ω_j·log(x + c) + b_j)."""
    recipe, state = _cosines(of, d)
    return {"kind": "skewed", "skewedness": of.number("skewedness"), **recipe}, state


def _cosines(of: Attributes, d: int) -> Learned:
    frequencies = of.floats("random_weights_", (d, None)).T
    D = len(frequencies)
    recipe = {"n_components": D, "frequencies": "iid", "features": "offset", "weights": "uniform"}
    phases = of.floats("random_offset_", (D,))
    return recipe, {"frequencies": np.ascontiguousarray(frequencies), "phases": phases}


# scikit-learn's intervals for 1, 2 and 3 steps
_INTERVALS = {1: 0.8, 2: 0.5, 3: 0.4}
# as many as an order of 1000 has
_MOST_STEPS = 1001


def additive_chi2_sampler(of: Attributes, d: int) -> Learned:
    """√x [√L, √(2L sech(πjL)) cos(jL log x), … sin …]; `sample_steps` is the order plus 1."""
    steps = of.whole("sample_steps")
    if not 1 <= steps <= _MOST_STEPS:
        raise of.refuse("sample_steps", f"a number from 1 to {_MOST_STEPS}", steps)
    interval = of.number("sample_interval", _INTERVALS.get(steps))
    if not 0.0 < interval <= 2.0 * np.pi:
        raise of.refuse("sample_interval", "a number above 0, at most 2π", interval)
    frequencies = interval * np.arange(steps)
    recipe = {
        "kind": "homogeneous",
        "kernel": "chi2",
        "order": steps - 1,
        "window": "uniform",
        "period": max(1.0, 2.0 * np.pi / interval),
    }
    return recipe, {
        "frequencies": frequencies[1:],
        "coefficients": interval * spectral_kernel("chi2").spectrum(frequencies),
    }


def polynomial_count_sketch(of: Attributes, d: int) -> Learned:
    """The count sketch in the time domain."""
    gamma, coef0, degree = of.number("gamma"), of.number("coef0"), of.whole("degree")
    # With c₀ = 0 scikit-learn hashes no constant. Ours is multiplied by √c₀ = 0, so any bucket serves.
    constant = 1 if coef0 else 0
    buckets = of.whole_numbers("indexHash_", (degree, d + constant))
    signs = of.whole_numbers("bitHash_", (degree, d + constant))
    if not np.isin(signs, (-1, 1)).all():
        raise of.refuse("bitHash_", "signs", signs)
    if not constant:
        buckets = np.pad(buckets, ((0, 0), (0, 1)))
        signs = np.pad(signs, ((0, 0), (0, 1)), constant_values=1)
    recipe = {
        "kind": "tensor_sketch",
        "degree": degree,
        "gamma": gamma,
        "coef0": coef0,
        "n_components": of.whole("n_components"),
        "domain": "time",
    }
    return recipe, {"buckets": buckets, "signs": signs.astype(np.int8), "gamma": np.array(gamma)}


# Kernels by their scikit-learn names: our name, the default of γ (None: 1/d), and the parameters.
_KERNELS: dict[str, tuple[str, float | None, tuple[str, ...]]] = {
    "rbf": ("rbf", None, ("gamma",)),
    "laplacian": ("laplacian", None, ("gamma",)),
    "linear": ("linear", None, ()),
    "poly": ("polynomial", None, ("gamma", "degree", "coef0")),
    "polynomial": ("polynomial", None, ("gamma", "degree", "coef0")),
    "sigmoid": ("sigmoid", None, ("gamma", "coef0")),
    "cosine": ("cosine", None, ()),
    "chi2": ("chi2", 1.0, ("gamma",)),
}


def nystroem(of: Attributes, d: int) -> Learned:
    """k(x, L) K^{−½}, the symmetric root. scikit-learn's additive_chi2, −Σ(x − y)²/(x + y), is not kafeat's."""
    kernel, gamma, degree, coef0 = _kernel(of, d)
    landmarks = of.floats("components_", (None, d))
    m = len(landmarks)
    exact = NamedKernel(kernel, KernelParameters(gamma=gamma, degree=max(degree, 1), coef0=coef0))
    scale = exact.scale(exact.norms(landmarks))
    root: Floats = np.ascontiguousarray(of.floats("normalization_", (m, m)).T) * scale
    recipe = {
        "kind": "nystroem",
        "kernel": kernel,
        "gamma": gamma,
        "degree": degree,
        "coef0": coef0,
        "n_components": m,
        "landmarks": "uniform",
        "root": "symmetric",
        "rcond": 1e-12,
    }
    centre = exact.centre(landmarks)
    return recipe, {
        **({} if centre is None else {"centre": centre}),
        "landmarks": landmarks,
        "projection": root,
        "gain": np.array(gain_of(root) / scale),
        "gamma": np.array(gamma),
        "scale": np.array(scale),
        "rank": np.array(m),
    }


def _kernel(of: Attributes, d: int) -> tuple[str, float, int, float]:
    """Return the kernel of a Nystroem estimator, and its γ, degree and c₀."""
    kernel, default, has = _KERNELS[of.one_of("kernel", tuple(_KERNELS))]
    if not of.has_none("kernel_params"):
        raise of.refuse("kernel_params", "none: use gamma, degree and coef0 instead", of["kernel_params"])
    gamma = of.number("gamma", 1.0 / d if default is None else default) if "gamma" in has else 1.0
    degree = of.whole("degree", 3) if "degree" in has else 2
    return kernel, gamma, degree, of.number("coef0", 1.0) if "coef0" in has else 1.0


def gaussian_random_projection(of: Attributes, d: int) -> Learned:
    """A x."""
    matrix = of.floats("components_", (None, d))
    return {"kind": "projection", "matrix": "gaussian", "n_components": len(matrix)}, {"matrix": matrix}


def sparse_random_projection(of: Attributes, d: int) -> Learned:
    """A x, with A in CSR form; scikit-learn stores a dense array for density 1."""
    components, density = of["components_"], of.number("density_")
    recipe = {"kind": "projection", "matrix": "sparse", "density": density}
    if type(components) is np.ndarray:
        matrix = of.floats("components_", (None, d))
        D = len(matrix)
        return {**recipe, "n_components": D}, {
            "values": matrix.ravel(),
            "columns": np.tile(np.arange(d), D),
            "starts": np.arange(D + 1) * d,
        }
    if getattr(components, "format", None) != "csr" or components.shape[1:] != (d,):
        raise of.refuse("components_", f"a CSR matrix of {d} columns", type(components).__name__)
    # Read the arrays directly: SciPy trusts the indices, so it must not compute with them before the check.
    parts = Attributes(components)
    return {**recipe, "n_components": components.shape[0]}, {
        "values": parts.floats("data", (None,)),
        "columns": parts.whole_numbers("indices", (None,)),
        "starts": parts.whole_numbers("indptr", (None,)),
    }


def standard_scaler(of: Attributes, d: int) -> Learned:
    """(x − μ)/σ, or one of both."""
    mean = of.floats("mean_", (d,)) if of.flag("with_mean") else np.zeros(d)
    scale = of.floats("scale_", (d,)) if of.flag("with_std") else np.ones(d)
    return {"kind": "standardize"}, {"mean": mean, "scale": scale}


def min_max_scaler(of: Attributes, d: int) -> Learned:
    """(x − min)/(max − min)·(b − a) + a = (x − low)/width."""
    width = 1.0 / of.floats("scale_", (d,))
    low = -of.floats("min_", (d,)) * width
    if of.flag("clip") and not of.is_pair("feature_range", (0, 1)):
        raise of.refuse("clip", "False, as kafeat clips to (0, 1) only", of["feature_range"])
    return {"kind": "minmax", "clip": of.flag("clip")}, {"low": low, "width": width}


def normalizer(of: Attributes, d: int) -> Learned:
    """x/‖x‖."""
    return {"kind": "normalize", "norm": of.one_of("norm", ("l1", "l2", "max"))}, {}


def pca(of: Attributes, d: int) -> Learned:
    """(x − μ)V, divided by σ if whitened."""
    components = of.floats("components_", (None, d))
    k, whiten = len(components), of.flag("whiten")
    scale = np.ones(k)
    if whiten:
        variance = of.array("explained_variance_", (k,))
        scale = np.maximum(np.sqrt(variance.astype(np.float64)), np.finfo(variance.dtype).eps)
    recipe = {"kind": "pca", "n_components": k, "whiten": whiten}
    return recipe, {"mean": of.floats("mean_", (d,)), "components": components, "scale": scale}


Convert = Callable[[Attributes, int], Learned]
MAPS: dict[type, Convert] = {
    RBFSampler: rbf_sampler,
    Nystroem: nystroem,
    AdditiveChi2Sampler: additive_chi2_sampler,
    SkewedChi2Sampler: skewed_chi2_sampler,
    PolynomialCountSketch: polynomial_count_sketch,
    GaussianRandomProjection: gaussian_random_projection,
    SparseRandomProjection: sparse_random_projection,
}
SCALERS: dict[type, Convert] = {
    StandardScaler: standard_scaler,
    MinMaxScaler: min_max_scaler,
    Normalizer: normalizer,
    PCA: pca,
}
SUPPORTED = {**MAPS, **SCALERS}
SPARSE = (csr_matrix, csr_array)
"""The types of the matrix of a sparse projection."""

# Estimators may share one array in a file, but every step gets its own copy.
_MOST_PARTS = 100


@as_value_errors()
def import_fitted(estimator: Any, dtype: DType = "float64", *, source: Origin | None = None) -> FeatureMap:
    """Convert a fitted scikit-learn estimator to a kafeat map with the same output columns, up to rounding.

    Parameters
    ----------
    estimator : estimator
        Fitted RBFSampler, Nystroem, AdditiveChi2Sampler, SkewedChi2Sampler, PolynomialCountSketch,
        GaussianRandomProjection or SparseRandomProjection, or a Pipeline of these with StandardScaler, MinMaxScaler,
        Normalizer and PCA. The input columns of the map are its `feature_names_in_`, or else positions.
    dtype : {"float64", "float32"}, default "float64"
        Precision of the map.
    source : Origin, optional
        Name and hash of the file that the estimator was read from.

    Returns
    -------
    kafeat.FeatureMap
        Fitted map, which can be saved for the command line.

    Raises
    ------
    DataError
        If the estimator is of another type, is not fitted, or has parameters that kafeat does not support. The error is
        also a ValueError.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.kernel_approximation import RBFSampler
    >>> from kafeat.sklearn import import_fitted
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> sampler = RBFSampler(n_components=8, random_state=0).fit(X)
    >>> np.allclose(import_fitted(sampler).transform(X), sampler.transform(X))
    True
    """
    parts = [Attributes(part) for part in islice(_parts(estimator, set()), _MOST_PARTS + 1)]
    if not parts:
        raise DataError("Pipeline: expected at least one step, got none")
    if len(parts) > _MOST_PARTS:
        raise DataError(f"Pipeline: steps: expected at most {_MOST_PARTS} of them, got more")
    spelled = " -> ".join(part.kind for part in parts)
    # Overflows give states that are not finite, which are refused below.
    with np.errstate(all="ignore"):
        learned = [SUPPORTED[part.cls](part, part.width()) for part in parts]
    recipe: dict[str, Any] = {"dtype": dtype, "steps": [one for one, _ in learned]}
    try:
        columns = _columns(parts[0])
        if not columns.positional:
            recipe["columns"] = {"include": list(columns.names)}
        config = load_config(recipe)
        states = [state for _, state in learned]
        chain = Chain.checked(config.steps, states, columns.n_features, leading_scalers(config.steps))
    except (ConfigError, ValueError) as error:
        raise DataError(f"{spelled}: {error}") from None
    provenance = Provenance(
        sources=[] if source is None else [source],
        rows_fitted=0,
        label=None,
        config_sha256=config.digest(),
        imported=f"scikit-learn: {spelled}",
    )
    return FeatureMap(chain, columns, config.dtype, config.chunk_rows, config, provenance)


def _parts(estimator: Any, seen: set[int]) -> Iterator[Any]:
    """Yield the estimators of nested pipelines; refuse unsupported types."""
    # thirty nested pipelines that each contain one pipeline twice would have 2^30 steps
    if id(estimator) in seen:
        raise DataError("Pipeline: steps: expected each estimator once, got one of them twice")
    seen.add(id(estimator))
    if type(estimator) is Pipeline:
        steps = vars(estimator).get("steps")
        if not isinstance(steps, list) or not all(isinstance(s, tuple) and len(s) == 2 for s in steps):
            raise DataError("Pipeline: steps: expected pairs of a name and an estimator")
        for _, step in steps:
            if step is not None and not (isinstance(step, str) and step == "passthrough"):
                yield from _parts(step, seen)
        return
    if type(estimator) not in SUPPORTED:
        known = ", ".join(sorted(kind.__name__ for kind in SUPPORTED))
        raise DataError(
            f"{type(estimator).__name__}: expected one of {known}, or a Pipeline of them, got another; "
            "of a pipeline that ends in a model, import pipeline[:-1]"
        )
    yield estimator


def _columns(first: Attributes) -> Columns:
    """Return the input columns, by name if the estimator was fitted with names."""
    d, names = first.width(), first.get("feature_names_in_")
    positional = names is None
    if positional:
        features = [[f"c{i}", None] for i in range(d)]
    elif (
        isinstance(names, list | np.ndarray)
        and np.shape(names) == (d,)
        and all(isinstance(n, str) for n in names)
    ):
        features = [[str(name), None] for name in names]
    else:
        raise first.refuse("feature_names_in_", f"{d} names", names)
    return Columns.from_plain(
        {
            "features": features,
            "positional": positional,
            "input_width": d if positional else None,
            "missing": False,
        }
    )
