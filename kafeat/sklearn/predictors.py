"""A map with a predictor as a scikit-learn classifier, and as a regressor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils import Tags

from kafeat.config import Config
from kafeat.errors import UsageError
from kafeat.model.feature_map import FeatureMap as FittedMap
from kafeat.registry import build_step
from kafeat.sklearn.map_estimator import MapEstimator, as_value_errors, checked_labels, hinted
from kafeat.types import Array, Floats


@hinted
@dataclass(eq=False, repr=False, kw_only=True)
class _PredictingEstimator(MapEstimator):
    """The base of the classifier and the regressor."""

    _default_steps: ClassVar[Any] = ["standardize", "nystroem", "ridge"]
    _task: ClassVar[Literal["classification", "regression"]]

    intervals: bool = False

    def _config(self) -> Config:
        """Return the config with the task of this estimator. If its steps have no predictor, ridge is added."""
        config = super()._config()
        last, task = config.predictor, self._task
        if last is not None and last.classes_only and task == "regression":
            raise UsageError(f"steps: expected ridge, which predicts numbers, got {last.kind} for classes")
        recipe = {"kind": "ridge", "task": "auto"} if last is None else last.recipe()
        if recipe["task"] not in ("auto", task):
            raise UsageError(f"{recipe['kind']}: task: expected auto or {task}, got {recipe['task']}")
        return config.model_copy(update={"steps": (*config.map_steps, build_step({**recipe, "task": task}))})

    def predict_interval(self, X: Any, level: float = 0.9) -> Array:
        """Return intervals, or sets of classes, that contain the labels of rows X (n, d) with a probability of `level`.

        For numbers, return lower and upper ends, (n, 2) or (n, k, 2). For classes, return a mask (n, n_classes).
        """
        return self._made(FittedMap.predict_interval, X, level=level)

    def predict(self, X: Any) -> Array:
        """Return the prediction for each row of X (n, d)."""
        return self._made(FittedMap.predict, X)


class FeatureMapClassifier(ClassifierMixin, _PredictingEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A linear classifier on explicit kernel features, with probabilities.

    Parameters
    ----------
    steps : str, dict or list, optional
        Steps as for `FeatureMap`, with a predictor last: `ridge` or `logistic`. Without one, `ridge` is added. The
        default is `standardize`, `nystroem` with 512 features (at most one for each row), and `ridge`.
    fit_rows : int or "all", default 100_000
        Number of rows that the map is fitted on; the predictor is fitted on all.
    config, seed, dtype, chunk_rows, n_jobs, random_state : optional
        As for `FeatureMap`; predictions do not depend on `n_jobs`.
    intervals : bool, default False
        True keeps the errors of rows held out, for `predict_interval`. A fit takes longer.

    Attributes
    ----------
    classes_ : ndarray
        Classes, in the order of the probabilities.
    feature_map_ : kafeat.FeatureMap
        Fitted map with its predictor, which can be saved for `kafeat predict`.
    n_features_in_, feature_names_in_ : int, ndarray of str
        Number of input columns, and their names if the input has names.

    Raises
    ------
    kafeat.errors.KafeatError
        If parameters or data are invalid. The error is also a ValueError.

    Examples
    --------
    >>> import numpy as np
    >>> from kafeat.sklearn import FeatureMapClassifier
    >>> X = np.random.default_rng(0).normal(size=(400, 2))
    >>> y = np.where(X[:, 0] * X[:, 1] > 0, "same", "other")
    >>> model = FeatureMapClassifier().fit(X, y)
    >>> model.predict([[2.0, 1.0], [2.0, -1.0]]).tolist()
    ['same', 'other']
    """

    _task: ClassVar[Literal["classification", "regression"]] = "classification"

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Fit on rows X (n, d) with classes y (n,). Weights and groups are those of `FeatureMapRegressor.fit`."""
        with as_value_errors():
            labels = checked_labels(y, classes=True)
        self._fit(X, labels, sample_weight, groups)
        counted = slice(None) if sample_weight is None else np.asarray(sample_weight) > 0.0
        self.classes_ = np.unique(labels[counted])
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Return the probabilities (n, n_classes) of the classes for rows X (n, d), in the order of `classes_`."""
        return self._made(FittedMap.predict_proba, X)


class FeatureMapRegressor(RegressorMixin, _PredictingEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Ridge regression on explicit kernel features, of one label or several.

    Parameters
    ----------
    steps : str, dict or list, optional
        Steps as for `FeatureMap`, with the predictor `ridge` last. A missing `ridge` is added. The default is
        `standardize`, `nystroem` with 512 features (at most one for each row), and `ridge`.
    fit_rows : int or "all", default 100_000
        Number of rows that the map is fitted on; the predictor is fitted on all.
    config, seed, dtype, chunk_rows, n_jobs, random_state : optional
        As for `FeatureMap`; predictions do not depend on `n_jobs`.
    intervals : bool, default False
        True keeps the errors of rows held out, for `predict_interval`. A fit takes longer.

    Attributes
    ----------
    feature_map_ : kafeat.FeatureMap
        Fitted map with its predictor, which can be saved for `kafeat predict`.
    n_features_in_, feature_names_in_ : int, ndarray of str
        Number of input columns, and their names if the input has names.

    Raises
    ------
    kafeat.errors.KafeatError
        If parameters or data are invalid. The error is also a ValueError.

    Examples
    --------
    >>> import numpy as np
    >>> from kafeat.sklearn import FeatureMapRegressor
    >>> X = np.random.default_rng(0).normal(size=(400, 2))
    >>> bool(FeatureMapRegressor().fit(X, X[:, 0] * X[:, 1]).score(X, X[:, 0] * X[:, 1]) > 0.9)
    True
    """

    _task: ClassVar[Literal["classification", "regression"]] = "regression"

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Fit map and predictor on rows X (n, d) with numbers y (n,) or (n, k).

        For the predictor, a row counts as often as its `sample_weight` (n,). If rows are held out, rows with equal
        `groups` (n,) are held out together.
        """
        with as_value_errors():
            labels = checked_labels(y)
        return self._fit(X, labels, sample_weight, groups)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
