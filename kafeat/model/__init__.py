"""The feature map and its file."""

from kafeat.model.feature_map import FeatureMap
from kafeat.model.load import load_from
from kafeat.model.predictor import FittedPredictor, PredictedLabels
