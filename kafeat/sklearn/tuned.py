"""A scikit-learn transformer that searches for the best feature map for the labels."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Self

import joblib
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from kafeat.config import load_config
from kafeat.config.model import GROUPS_BESIDE
from kafeat.errors import KafeatWarning
from kafeat.io.readers.memory import reader_of
from kafeat.model.feature_map import FeatureMap as FittedMap
from kafeat.sklearn.estimator import FeatureMap
from kafeat.sklearn.map_estimator import (
    NamedFeatures,
    as_value_errors,
    beside,
    checked_labels,
    checked_rows,
    seed_of,
)
from kafeat.study.tune.input import SearchStart
from kafeat.study.tune.problem import LEAST_ROWS
from kafeat.study.tune.result import no_data
from kafeat.study.tune.tune import tune
from kafeat.types import Floats


@dataclass(eq=False, repr=False)
class TunedFeatureMap(NamedFeatures, TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Explicit kernel features whose scaler, metric, kernel, γ, map and width are chosen by the labels.

    `fit` calls `kafeat.tune` and fits the config that it chooses. Data frames may have columns of text and times, and
    values may be missing. With fewer than 20 rows nothing can be chosen, and `standardize` and `nystroem` are used.

    Parameters
    ----------
    columns : int, optional
        Number of features (default: the knee of the score over columns).
    max_bytes_per_row : int, optional
        Largest number of bytes of the features of a row.
    time : float or str, optional
        Number of seconds, or a duration such as "10m", after which no trial begins (default: all trials, which takes
        minutes).
    trials : int, optional
        Number of trials after which the search ends. With this limit, equal data give equal features.
    task : {"auto", "classification", "regression", "soft"}, default "auto"
        Kind of prediction; "auto" decides by the labels, and "soft" reads y (n, k) as probabilities of k classes.
    scoring : str, default "auto"
        Score to maximize; "auto" is the log loss for classes, after calibration, and R² for numbers.
    base : dict, str or os.PathLike, optional
        Config to start from. Its seed, dtype and columns are kept, and its steps are one of the candidates.
    seeds : int, default 2
        Number of splits that the last candidates are scored on.
    n_jobs : int, optional
        Number of threads (default: 1; -1: all cores). The features do not depend on it.
    random_state : int or RandomState, optional
        Seed of the search and of the map. It replaces the seed of `base`.

    Attributes
    ----------
    config_ : dict
        Config that was chosen.
    tuning_ : kafeat.study.tune.result.Tuning or None
        Result of the search, with its score and its table; None if there were too few rows.
    feature_map_ : kafeat.FeatureMap
        Fitted map, which can be saved for the command line.
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
    >>> from kafeat.sklearn import TunedFeatureMap
    >>> X = np.random.default_rng(0).normal(size=(200, 4))
    >>> y = (X[:, 0] * X[:, 1] > 0).astype(int)
    >>> model = make_pipeline(TunedFeatureMap(32, trials=4), RidgeClassifier()).fit(X, y)
    >>> model[:-1].transform(X).shape
    (200, 32)
    """

    columns: int | None = None
    _: KW_ONLY
    max_bytes_per_row: int | None = None
    time: float | str | None = None
    trials: int | None = None
    task: str = "auto"
    scoring: str = "auto"
    base: Any = None
    seeds: int = 2
    n_jobs: int | None = None
    random_state: Any = None

    def fit(self, X: Any, y: Any, groups: Any = None) -> Self:
        """Choose the config on rows X (n, d) with labels y (n,), and fit it.

        With `groups` (n,), candidates are fitted on some groups and scored on the others.
        """
        X = self._checked(X, reset=True)
        jobs = joblib.effective_n_jobs(self.n_jobs)
        parameters = {**self.get_params(deep=False), "jobs": jobs, "boosting": False}
        del parameters["n_jobs"], parameters["random_state"]
        with as_value_errors():
            labels = checked_labels(y)
            parameters["base"] = self._start()
        self.tuning_ = None
        if len(X) < LEAST_ROWS:
            warnings.warn(
                f"TunedFeatureMap: expected at least {LEAST_ROWS} rows to choose a map by, got {len(X)}: standardize "
                "and nystroem are used",
                KafeatWarning,
                stacklevel=2,
            )
            nystroem = {"kind": "nystroem", "n_components": min(self.columns or len(X), len(X))}
            before = [{"kind": "impute"}, {"kind": "standardize"}]
            self.config_: dict[str, Any] = {"steps": [*before, nystroem]}
        else:
            split_by = None if groups is None else GROUPS_BESIDE
            with as_value_errors(len(X)):
                rows: Any = beside(reader_of(X), groups=groups)
                tuning = tune(rows, labels, split_by=split_by, **parameters)
            # A fitted estimator stays small without the data of the search.
            self.tuning_ = replace(tuning, _fit=no_data)
            self.config_ = tuning.config.to_plain()
            if groups is not None:
                del self.config_["split_by"]  # X has no column of groups
        self._map = FeatureMap(config=self.config_).fit(X, labels, groups)
        return self

    def _start(self) -> Any:
        """Return the config to start from, with the seed of `random_state` if it is given."""
        if self.random_state is None:
            return self.base
        seed = load_config({"seed": seed_of(self.random_state)}, SearchStart).seed
        start = load_config({} if self.base is None else self.base, SearchStart)
        return start.model_copy(update={"seed": seed})

    def transform(self, X: Any) -> Floats:
        """Return the features z(X), (n, n_components)."""
        check_is_fitted(self)
        self._checked(X, reset=False)
        return self._map.set_params(n_jobs=self.n_jobs).transform(X)

    @property
    def feature_map_(self) -> FittedMap:
        """The fitted map."""
        check_is_fitted(self)
        return self._map.feature_map_

    def _checked(self, X: Any, reset: bool) -> Any:
        """Return the rows after scikit-learn's checks. Data frames stay as they are, because they may contain text."""
        how = {"skip_check_array": True} if hasattr(X, "columns") else {"ensure_all_finite": "allow-nan"}
        return checked_rows(self, X, reset=reset, **how)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_map")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []
        tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.categorical = True
        tags.target_tags.required = True
        return tags
