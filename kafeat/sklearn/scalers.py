"""scikit-learn's fitted scalers as recipes and states of kafeat, for the maps that stand behind them."""

from __future__ import annotations

import numpy as np

from kafeat.sklearn.attributes import Attributes
from kafeat.sklearn.maps import Learned


def standard_scaler(of: Attributes, d: int) -> Learned:
    """(x − μ)/σ, or one of both."""
    mean = of.floats("mean_", (d,)) if of.flag("with_mean") else np.zeros(d)
    scale = of.floats("scale_", (d,)) if of.flag("with_std") else np.ones(d)
    return {"kind": "standardize"}, {"mean": mean, "scale": scale}


def min_max_scaler(of: Attributes, d: int) -> Learned:
    """(x − min)/(max − min)·(b − a) + a = (x − low)/width."""
    width = 1.0 / of.floats("scale_", (d,))
    low = -of.floats("min_", (d,)) * width
    if of.flag("clip") and not of.is_pair("feature_range", (0, 1)):
        raise of.refuse("clip", "False, as kafeat clips to (0, 1) only", of["feature_range"])
    return {"kind": "minmax", "clip": of.flag("clip")}, {"low": low, "width": width}


def normalizer(of: Attributes, d: int) -> Learned:
    """x/‖x‖."""
    return {"kind": "normalize", "norm": of.one_of("norm", ("l1", "l2", "max"))}, {}


def pca(of: Attributes, d: int) -> Learned:
    """(x − μ)V, divided by σ if whitened."""
    components = of.floats("components_", (None, d))
    k, whiten = len(components), of.flag("whiten")
    scale = np.ones(k)
    if whiten:
        variance = of.array("explained_variance_", (k,))
        scale = np.maximum(np.sqrt(variance.astype(np.float64)), np.finfo(variance.dtype).eps)
    recipe = {"kind": "pca", "n_components": k, "whiten": whiten}
    return recipe, {"mean": of.floats("mean_", (d,)), "components": components, "scale": scale}
