"""Convert fitted scikit-learn estimators to kafeat maps with the same output columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
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
from kafeat.model.feature_map import FeatureMap
from kafeat.model.provenance import Origin, Provenance
from kafeat.sklearn import maps
from kafeat.sklearn.attributes import Attributes
from kafeat.sklearn.map_estimator import as_value_errors
from kafeat.sklearn.maps import Learned
from kafeat.types import DType

MAPS: dict[type, Callable[[Attributes, int], Learned]] = {
    RBFSampler: maps.rbf_sampler,
    Nystroem: maps.nystroem,
    AdditiveChi2Sampler: maps.additive_chi2_sampler,
    SkewedChi2Sampler: maps.skewed_chi2_sampler,
    PolynomialCountSketch: maps.polynomial_count_sketch,
    GaussianRandomProjection: maps.gaussian_random_projection,
    SparseRandomProjection: maps.sparse_random_projection,
}
SCALERS: dict[type, Callable[[Attributes, int], Learned]] = {
    StandardScaler: maps.standard_scaler,
    MinMaxScaler: maps.min_max_scaler,
    Normalizer: maps.normalizer,
    PCA: maps.pca,
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
    if (
        id(estimator) in seen
    ):  # thirty nested pipelines that each contain one pipeline twice would have 2^30 steps
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
