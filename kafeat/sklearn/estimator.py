"""A feature map as a scikit-learn transformer."""

from __future__ import annotations

import hashlib
import warnings
from dataclasses import dataclass, replace
from typing import Any, Self

from sklearn.base import TransformerMixin
from sklearn.utils import Tags

from kafeat.config import Config
from kafeat.errors import KafeatWarning, UsageError
from kafeat.io.columns.selection import match
from kafeat.jobs.fit.fit import columns_of
from kafeat.jobs.fit.labels import check_label_array
from kafeat.jobs.fit.sample import SampledFit, TrainingData
from kafeat.model.feature_map import FeatureMap as FittedMap
from kafeat.sklearn.map_estimator import MapEstimator, NamedFeatures, as_value_errors, checked_labels, hinted
from kafeat.types import Array, Floats


@hinted
@dataclass(eq=False, repr=False, kw_only=True)
class FeatureMap(NamedFeatures, TransformerMixin, MapEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Explicit kernel features z with z(x)·z(y) ≈ k(x, y), as a transformer for pipelines and searches.

    Labels `y` are used if a step needs them. Rows may be sparse: a step that cannot compute with sparse rows gets dense
    copies of a few rows at a time. Data frames may have text columns if a `one_hot` step names them.

    Parameters
    ----------
    steps : str, dict or list, optional
        A kind (`"fourier"`), a recipe (`{"kind": "fourier", "n_components": 64}`), or a list of these, first step
        first. The default is `nystroem`, with 512 features, or one feature per row if there are fewer rows. A step may
        have a name: `("map", {"kind": "fourier"})`. The default name is the kind; repeated names get numbers,
        `fourier-1` and `fourier-2`. A search sets parameters such as `fourier__n_components`.
    config : dict, str or os.PathLike, optional
        A whole config, or the path of its YAML file, in place of all other parameters except `n_jobs` and
        `random_state`. Its steps have no names.
    seed : int, default 0
        Seed of every random draw.
    dtype : {"float32", "float64"}, optional
        Type of the features. The default is float32 for float32 input and float64 for other input.
    fit_rows : int or "all", default 100_000
        Number of rows in the fit sample.
    chunk_rows : int, default 8192
        Number of rows transformed at once.
    sparse_output : bool, default False
        True gives a SciPy CSR array. The last step must be one that keeps zeros: `homogeneous`, `intersection_bins`,
        `polynomial_features`, `one_hot`, `projection` with `matrix: sparse`, a scaler that leaves 0 as it is, or a
        union of such maps.
    n_jobs : int, optional
        Number of threads (default: 1; -1: all cores). The features do not depend on it.
    random_state : int or RandomState, optional
        Seed under scikit-learn's name. It replaces `seed`, and the seed in `config`.

    Attributes
    ----------
    feature_map_ : kafeat.FeatureMap
        Fitted map, which can be saved for the command line.
    component_indices_ : ndarray of int
        Row numbers of the landmarks of a Nyström step, counted over all batches; absent if landmarks are not rows.
    n_features_in_, feature_names_in_ : int, ndarray of str
        Number of input columns, and their names if the input has names.

    Raises
    ------
    kafeat.errors.KafeatError
        If parameters or data are invalid. The error is also a ValueError.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import RidgeClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> from kafeat.sklearn import FeatureMap
    >>> X = np.random.default_rng(0).normal(size=(200, 4))
    >>> y = (X[:, 0] * X[:, 1] > 0).astype(int)
    >>> model = make_pipeline(FeatureMap({"kind": "fourier", "n_components": 64}), RidgeClassifier()).fit(X, y)
    >>> model[:-1].transform(X).shape
    (200, 64)
    """

    sparse_output: bool = False

    def fit(self, X: Any, y: Any = None, groups: Any = None) -> Self:
        """Fit the steps on rows X (n, d), with labels y (n,) if a step needs them.

        If rows are held out, rows with equal `groups` (n,) are held out together.
        """
        self._fit(X, y, groups=groups)
        self._sampled: SampledFit | None = None
        return self

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Add a batch of rows. The map equals that of a single `fit` on all batches.

        The estimator and its pickles keep a sample of `fit_rows` rows from all batches. The steps are fitted at the
        next use, such as `transform`. A batch after that use changes the map, with a warning, because a learner of the
        earlier features cannot use the later ones. So read all batches once for the map, then again for a learner.
        `fit` keeps no rows, so the first batch after a `fit` starts a new fit, with a warning.
        """
        sampled: SampledFit | None = getattr(self, "_sampled", None)
        self._warn_of_earlier(sampled)
        with as_value_errors():
            config = self._config() if sampled is None else sampled.config
        source = self._source(X, config, reset=sampled is None)
        with as_value_errors(source.rows):
            if sampled is None:
                config = self._with_dtype(config, source)
                sampled = SampledFit.empty(config, columns_of(config, source))
                sampled.place = "<partial_fit>"
            else:
                sampled = sampled.copy()
            labels = self._labels(y, config)
            if labels is not None:
                labels = check_label_array(labels, source.rows)
            sampled.read(TrainingData(source, labels), match(source, sampled.columns, ()))
        sampled.digest = hashlib.sha256(f"{sampled.digest}{source.digest()}".encode()).hexdigest()
        self._sampled = sampled
        self.__dict__.pop("_map", None)
        return self

    def _warn_of_earlier(self, sampled: SampledFit | None) -> None:
        """Warn if a new batch comes after `fit`, or after the map was used. `sampled` holds the earlier batches."""
        if sampled is None and self.__sklearn_is_fitted__():
            warnings.warn(
                "partial_fit: the rows of the previous fit are not kept, so this starts a new fit",
                stacklevel=3,
            )
        elif sampled is not None and hasattr(self, "_map"):
            warnings.warn(
                "partial_fit: expected all batches before the first use of the map, got one after it: the map changes, "
                "and what was learned from its earlier features does not fit later ones; read the batches twice, first "
                "for the map, then for the learner",
                KafeatWarning,
                stacklevel=3,
            )

    def transform(self, X: Any) -> Floats:
        """Return the features z(X), (n, n_components)."""
        if not self.sparse_output:
            return self._made(FittedMap.transform, X)
        source = self._source(X, self.feature_map_.config, reset=False)
        with as_value_errors():
            return self.feature_map_.transform_sparse(source)

    @property
    def feature_map_(self) -> FittedMap:
        """The fitted map. After `partial_fit`, it is fitted on first access."""
        self._check_fitted()
        if not hasattr(self, "_map") and self._sampled is not None:
            n_rows, config = self._sampled.chosen.n_rows, self._sampled.config
            with as_value_errors(n_rows):
                sampled = replace(self._sampled, config=self._with_landmarks_of(config, n_rows))
                self._map = sampled.learn(final=False)
        return self._map

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_map") or getattr(self, "_sampled", None) is not None

    @property
    def component_indices_(self) -> Array:
        """The row numbers of the landmarks of the first Nyström step whose landmarks are rows."""
        for fitted in self.feature_map_.chain.steps:
            numbers = fitted.state.get("rows" if "rows" in fitted.state else "landmarks")
            if fitted.step.kind == "nystroem" and numbers is not None and numbers.dtype.kind == "i":
                return numbers
        raise AttributeError(
            "component_indices_: expected a nystroem step whose landmarks are rows (uniform, rpcholesky, greedy, "
            "leverage, farthest or residual), got none"
        )

    def _labels(self, y: Any, config: Config) -> Array | None:
        takes = config.needs_label or any(step.traits.label.taken for step in config.map_steps)
        return None if not takes or (y is None and not config.needs_label) else checked_labels(y)

    def _config(self) -> Config:
        config = super()._config()
        if config.predictor is not None:
            raise UsageError(
                f"steps: expected the steps of a map, got the predictor {config.predictor.kind}: use "
                "FeatureMapClassifier or FeatureMapRegressor"
            )
        return config

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        kept = ["float64", "float32"] if self.dtype is None and self.config is None else []
        tags.transformer_tags.preserves_dtype = kept
        return tags
