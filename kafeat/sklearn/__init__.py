"""kafeat in scikit-learn: a transformer for pipelines, and the conversion of fitted estimators to kafeat maps.

from kafeat.sklearn import FeatureMap, import_fitted
make_pipeline(StandardScaler(), FeatureMap("fourier"), RidgeClassifier())
import_fitted(rbf_sampler).save("map.joblib")
"""

from __future__ import annotations

try:
    from sklearn.utils.validation import validate_data as _needed  # noqa: F401  # of scikit-learn 1.6 and later
except ImportError as error:
    raise ImportError(
        f"kafeat.sklearn: expected scikit-learn 1.6 or later, got: {error}; pip install 'kafeat[sklearn]'"
    ) from error

from kafeat.sklearn.estimator import FeatureMap
from kafeat.sklearn.fitted import import_fitted
from kafeat.sklearn.predictors import FeatureMapClassifier, FeatureMapRegressor
from kafeat.sklearn.skops_file import import_skops
from kafeat.sklearn.tuned import TunedFeatureMap

__all__ = [
    "FeatureMap",
    "FeatureMapClassifier",
    "FeatureMapRegressor",
    "TunedFeatureMap",
    "import_fitted",
    "import_skops",
]
