"""Feature maps, and the model files that store them."""

from kafeat.model.feature_map import FeatureMap
from kafeat.model.load import load_from
from kafeat.model.predictor import FittedPredictor, PredictedLabels
