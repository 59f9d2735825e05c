"""kafeat in scikit-learn: transformers for pipelines, a classifier and a regressor.

from kafeat.sklearn import FeatureMap
make_pipeline(StandardScaler(), FeatureMap("fourier"), RidgeClassifier())
"""

from __future__ import annotations

try:
    from sklearn.utils.validation import validate_data as _needed  # noqa: F401  # of scikit-learn 1.6 and later
except ImportError as error:
    raise ImportError(
        f"kafeat.sklearn: expected scikit-learn 1.6 or later, got: {error}; pip install 'kafeat[sklearn]'"
    ) from error

from kafeat.sklearn.estimator import FeatureMap
from kafeat.sklearn.predictors import FeatureMapClassifier, FeatureMapRegressor
from kafeat.sklearn.tuned import TunedFeatureMap

__all__ = [
    "FeatureMap",
    "FeatureMapClassifier",
    "FeatureMapRegressor",
    "TunedFeatureMap",
]
