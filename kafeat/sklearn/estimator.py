"""A feature map as a scikit-learn transformer."""

from __future__ import annotations

import hashlib
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Self

import joblib
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_array, check_is_fitted, column_or_1d, validate_data

from kafeat.config import Config
from kafeat.contract.step import takes_missing
from kafeat.errors import DataError, KafeatError, KafeatWarning, UsageError
from kafeat.io.columns.selection import match
from kafeat.io.readers.base import Reader
from kafeat.io.readers.memory import NamedReader, reader_of
from kafeat.jobs.fit.fit import columns_of, fit_reader
from kafeat.jobs.fit.sample import SampledFit
from kafeat.model.feature_map import FeatureMap as FittedMap
from kafeat.model.load import loads
from kafeat.sklearn.named_steps import DEFAULT_STEPS, changed, config_of, parameters
from kafeat.types import Array, Floats

# The name of the rows of several batches in errors.
_PLACE = "<partial_fit>"
_NEGATIVE = re.compile(r": expected a value (of at least 0|above -[^,]*), got -")


class FeatureMap(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Explicit kernel features z with z(x)·z(y) ≈ k(x, y), as a transformer for pipelines and searches.

    Labels `y` are used if a step needs them. Rows may be sparse: a step that does not compute with sparse rows gets a
    few of them at a time with their zeros. Data frames may have text columns if a `one_hot` step names them.

    Parameters
    ----------
    steps : str, dict or list, optional
        A kind (`"fourier"`), a recipe (`{"kind": "fourier", "n_components": 64}`), or a list of these, first step
        first. The default is `fourier`, with 512 features. A step may have a name: `("map", {"kind": "fourier"})`. The
        default name is the kind; repeated names get numbers, `fourier-1` and `fourier-2`. A search sets parameters
        such as `fourier__n_components`.
    config : dict, str or os.PathLike, optional
        A whole config, or the path of its YAML file, in place of all other parameters except `n_jobs`. Its steps have
        no names.
    seed : int, default 0
        Seed of every random draw.
    dtype : {"float32", "float64"}, optional
        Type of the features. The default is float32 for float32 input and float64 for other input.
    fit_rows : int or "all", default 100_000
        Number of rows in the fit sample.
    chunk_rows : int, default 8192
        Number of rows transformed at once.
    sparse_output : bool, default False
        True gives a SciPy CSR array, for steps that end with `intersection_bins`, or with `projection` and
        `matrix: sparse`. No dense features are made on the way.
    n_jobs : int, optional
        Number of threads (default: 1; -1: all cores). The features do not depend on it.

    Attributes
    ----------
    feature_map_ : kafeat.FeatureMap
        Fitted map, which can be saved for the command line.
    component_indices_ : ndarray of int
        Row numbers of the landmarks of a Nyström step, counted over all batches; only where landmarks are rows.
    n_features_in_ : int
        Number of input columns.
    feature_names_in_ : ndarray of str
        Names of the input columns, if the input has names.

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

    def __init__(
        self,
        steps: Any = None,
        *,
        config: Any = None,
        seed: int = 0,
        dtype: str | None = None,
        fit_rows: int | str = 100_000,
        chunk_rows: int = 8192,
        n_jobs: int | None = None,
        sparse_output: bool = False,
    ) -> None:
        self.steps = steps
        self.config = config
        self.seed = seed
        self.dtype = dtype
        self.fit_rows = fit_rows
        self.chunk_rows = chunk_rows
        self.n_jobs = n_jobs
        self.sparse_output = sparse_output

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters; with `deep`, also `name` and `name__parameter` of every step."""
        own: dict[str, Any] = super().get_params(deep=False)
        return {**parameters(self._steps), **own} if deep and self.config is None else own

    def set_params(self, **params: Any) -> Self:
        """Set parameters: `name` sets a whole step, `name__parameter` one of its parameters."""
        own = set(self._get_param_names())
        super().set_params(**{name: value for name, value in params.items() if name in own})
        of_steps = {name: value for name, value in params.items() if name not in own}
        known = self.get_params()
        for name in of_steps:
            step, _, parameter = name.partition("__")
            # a step that is set together with its parameters may be of a kind that has other parameters
            if name not in known and not (parameter and step in known and step in of_steps):
                raise ValueError(
                    f"Invalid parameter {name!r} for {self}. Valid parameters are: {sorted(known)}."
                )
        if of_steps:
            self.steps = changed(self._steps, of_steps)
        return self

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the steps on rows X (n, d), with labels y (n,) if a step needs them."""
        with as_value_errors():
            config = self._config()
        source = self._source(X, config, reset=True)
        with as_value_errors(source.rows):
            self._map: FittedMap | None = fit_reader(
                self._with_dtype(config, source), source, self._labels(y, config)
            )
        self._sampled: SampledFit | None = None
        for fitted in self._map.chain.steps:
            wide = fitted.step.width_warning(fitted.n_features_in)
            if wide is not None:
                warnings.warn(wide, KafeatWarning, stacklevel=2)
        return self

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Add a batch of rows; the map equals that of a single `fit` on all batches.

        The estimator keeps a sample of `fit_rows` rows among all batches, also when it is pickled. The steps are fitted
        at the next use, such as `transform`. A `fit` keeps no rows, so the first batch after one starts a new fit, with
        a warning.
        """
        sampled: SampledFit | None = getattr(self, "_sampled", None)
        if sampled is None and self.__sklearn_is_fitted__():
            warnings.warn(
                "partial_fit: the rows of the previous fit are not kept, so this starts a new fit",
                stacklevel=2,
            )
        with as_value_errors():
            config = self._config() if sampled is None else sampled.config
        source = self._source(X, config, reset=sampled is None)
        with as_value_errors(source.rows):
            if sampled is None:
                config = self._with_dtype(config, source)
                sampled, before = SampledFit.empty(config, columns_of(config, source)), ""
            else:
                sampled, before = sampled.copy(), self._digest
            sampled.read(source, match(source, sampled.columns, ()), given_labels=self._labels(y, config))
        self._digest: str = hashlib.sha256(f"{before}{source.digest()}".encode()).hexdigest()
        self._sampled, self._map = sampled, None
        return self

    def transform(self, X: Any) -> Floats:
        """Return the features z(X), (n, n_components)."""
        check_is_fitted(self)
        fm = self.feature_map_
        source = self._source(X, fm.config, reset=False)
        with as_value_errors():
            if self.sparse_output:
                features: Floats = fm.transform_sparse(source)
                return features
            return fm.transform(source, jobs=joblib.effective_n_jobs(self.n_jobs))

    def inverse_transform(self, X: Any) -> Floats:
        """Return rows (n, d) with the features X (n, n_components), of least norm, if all steps have an inverse."""
        check_is_fitted(self)
        with as_value_errors():
            return self.feature_map_.inverse_transform(check_array(X))

    @property
    def feature_map_(self) -> FittedMap:
        """Return the fitted map."""
        check_is_fitted(self)
        if self._map is None and self._sampled is not None:
            with as_value_errors(self._sampled.chosen.n_rows):
                self._map = self._sampled.learn(_PLACE, self._digest, final=False)
        if self._map is None:
            raise TypeError("a fitted estimator has a map, or rows to learn it from")
        return self._map

    @property
    def component_indices_(self) -> Array:
        """Return the row numbers of the landmarks of the first Nyström step whose landmarks are rows."""
        for fitted in self.feature_map_.chain.steps:
            numbers = fitted.state.get("rows" if "rows" in fitted.state else "landmarks")
            if fitted.step.kind == "nystroem" and numbers is not None and numbers.dtype.kind == "i":
                return numbers
        raise AttributeError(
            "component_indices_: expected a nystroem step with landmarks that are rows, got none; landmarks: "
            "uniform, rpcholesky, greedy, leverage, farthest and residual are"
        )

    @property
    def _n_features_out(self) -> int:
        return self.feature_map_.n_components

    @property
    def _steps(self) -> Any:
        return DEFAULT_STEPS if self.steps is None else self.steps

    def _config(self) -> Config:
        """Return the recipe; its dtype is float64 if it depends on the rows."""
        parameters = self.get_params(deep=False)
        return config_of(parameters, type(self)().get_params(deep=False))

    def _with_dtype(self, config: Config, source: Reader) -> Config:
        """Set the dtype to that of the rows if no dtype was given."""
        single = source.fields[0].spelled.endswith("float32")
        kept = self.config is None and self.dtype is None and single
        return config.model_copy(update={"dtype": "float32"}) if kept else config

    def _source(self, X: Any, config: Config, reset: bool) -> Reader:
        """Return a reader of the rows, after scikit-learn's checks of shape, names and values."""
        reads_columns = any(step.reads_columns for step in config.steps)
        if reads_columns and hasattr(X, "__arrow_c_stream__"):
            validate_data(self, X, reset=reset, skip_check_array=True)
            with as_value_errors():
                return reader_of(X)
        finite = "allow-nan" if takes_missing(config.steps) else True
        sparse = False if reads_columns else "csr"
        X = validate_data(self, X, reset=reset, ensure_all_finite=finite, accept_sparse=sparse)
        if issparse(X):
            return reader_of(X)
        names = getattr(self, "feature_names_in_", None)
        return reader_of(X) if names is None else NamedReader(X, [str(name) for name in names])

    def _labels(self, y: Any, config: Config) -> Array | None:
        """Return `y` if a step learns from labels: one a row, or several numbers."""
        if y is None and config.needs_label:
            raise UsageError("y: expected labels (requires y to be passed, but the target y is None)")
        if y is None or not (config.needs_label or any(step.takes_label for step in config.steps)):
            return None
        labels: Array = check_array(y, ensure_2d=False, dtype=None, input_name="y")
        return labels if labels.ndim > 1 and labels.shape[1] > 1 else column_or_1d(labels)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_map")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        kept = ["float64", "float32"] if self.dtype is None and self.config is None else []
        tags.transformer_tags.preserves_dtype = kept
        try:
            config = self._config()
        except KafeatError:  # reported by `fit`
            return tags
        tags.input_tags.allow_nan = takes_missing(config.steps)
        reads_columns = any(step.reads_columns for step in config.steps)
        tags.input_tags.string = tags.input_tags.categorical = reads_columns
        tags.input_tags.sparse = not reads_columns
        tags.input_tags.positive_only = config.steps[0].refuses_negative
        tags.target_tags.required = config.needs_label
        return tags

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        fm = state.get("_map")
        if fm is not None:
            # Pickle the bytes of the model file: the guard checks them when they are read, and the same fit gives the
            # same bytes. A map that no file can hold is pickled without its caches.
            state["_map"] = replace(fm) if fm.digest is None else fm.dumps()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if isinstance(state.get("_map"), bytes):
            self._map = loads(state["_map"], "<pickle>")


class ValuesRefusedError(DataError, ValueError):
    """Rows that a map cannot be fitted on or cannot transform."""


class ParametersRefusedError(UsageError, ValueError):
    """Parameters that do not define a map."""


@contextmanager
def as_value_errors(rows: int | None = None) -> Iterator[None]:
    """Convert the errors of kafeat to errors that are ValueErrors, too. Mention it if there was only one row."""
    try:
        yield
    except UsageError as error:
        raise ParametersRefusedError(str(error)) from error
    except DataError as error:
        alone = " (n_samples = 1)" if rows == 1 else ""
        # the words that scikit-learn's checks look for
        negative = "Negative values in data: " if _NEGATIVE.search(str(error)) else ""
        raise ValuesRefusedError(f"{negative}{error}{alone}") from error
