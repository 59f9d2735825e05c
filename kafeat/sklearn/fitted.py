"""scikit-learn's fitted maps as maps of kafeat, with equal columns."""

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
from kafeat.sklearn import maps as scalers
from kafeat.sklearn.attributes import Attributes
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
    StandardScaler: scalers.standard_scaler,
    MinMaxScaler: scalers.min_max_scaler,
    Normalizer: scalers.normalizer,
    PCA: scalers.pca,
}
SUPPORTED = {**MAPS, **SCALERS}
SPARSE = (csr_matrix, csr_array)
"""What a sparse projection's matrix is."""

# Estimators may share one array in a file, and each has its own as a step.
_MOST_PARTS = 100


def import_fitted(estimator: Any, dtype: DType = "float64", *, source: Origin | None = None) -> FeatureMap:
    """The kafeat map of a fitted estimator: column for column what its `transform` gives, up to rounding.

    `estimator` is one of `MAPS` or of `SCALERS`, or a Pipeline of some. The map has the columns of its
    `feature_names_in_`, or positions. `source` is the file that it comes from, if it comes from one. Raises `DataError`
    for other estimators, for one that is not fitted, and for parameters that kafeat has not.
    """
    parts = [Attributes(part) for part in islice(_parts(estimator, set()), _MOST_PARTS + 1)]
    if not parts:
        raise DataError("Pipeline: expected at least one step, got none")
    if len(parts) > _MOST_PARTS:
        raise DataError(f"Pipeline: steps: expected at most {_MOST_PARTS} of them, got more")
    spelled = " -> ".join(part.kind for part in parts)
    # Numbers that overflow are refused as states that are not finite.
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
    """The estimators of a pipeline of pipelines, each of a kind that is known."""
    if id(estimator) in seen:  # pipelines of one pipeline twice, thirty deep, would have 2^30 steps
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
            "of a pipeline with a model behind, import pipeline[:-1]"
        )
    yield estimator


def _columns(first: Attributes) -> Columns:
    """By name where the estimator has met names."""
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
