"""The predictor of a map as operators behind its features, and the comparison of its predictions."""

from __future__ import annotations

import json

import numpy as np

from kafeat.contract.step import DOUBLE
from kafeat.model.feature_map import FeatureMap
from kafeat.onnx.elementary import product
from kafeat.onnx.graph import Graph, Value
from kafeat.types import Floats


def emit_predictor(graph: Graph, fm: FeatureMap, z: Value) -> Value:
    """Wᵀz + b, or its softmax for classes, (n, k) in float64; the product is in the dtype that the map has it in."""
    state = fm.needed_predictor().fitted.state
    dtype = DOUBLE if state["wide"] else graph.dtype
    with graph.inside("predictor"):
        x = z if dtype == graph.dtype else graph.cast(z, dtype)
        with graph.computing_in(dtype):
            x = product(graph, x, state["weights"].T)
        x = x if dtype == DOUBLE else graph.cast(x, DOUBLE)
        with graph.computing_in(DOUBLE):
            scores = graph.op("Add", x, state["intercept"])
            if "temperature" not in state:
                return scores
            scores = graph.op("Sub", scores, graph.along_rows("ReduceMax", scores))
            shares = graph.op("Exp", graph.op("Div", scores, state["temperature"]))
            return graph.op("Div", shares, graph.along_rows("ReduceSum", shares))


def predictor_metadata(fm: FeatureMap) -> dict[str, str]:
    """Return the labels of a map that ends in a predictor, as JSON: names, type and classes."""
    return {} if fm.predictor is None else {"kafeat.labels": json.dumps(fm.predictor.labels.to_plain())}


def prediction_rounding(fm: FeatureMap, Z: Floats, allowed: Floats) -> Floats:
    """Bound the movement of predicted numbers, (n,), if the features Z (n, D) of a row move by `allowed` (n,).

    A score moves by Σ|w| times as much, and by the rounding of its product, √D times ε of Σ|wz| as a random walk. A
    probability moves by at most twice the largest move of a score, divided by the temperature.
    """
    state = fm.needed_predictor().fitted.state
    w, eps = np.abs(state["weights"]), float(np.finfo(DOUBLE if state["wide"] else fm.dtype).eps)
    rounding = eps * np.sqrt(len(w)) * (np.abs(Z.astype(DOUBLE)) @ w)
    moved: Floats = (allowed[:, None] * w.sum(axis=0) + rounding).max(axis=1)
    size = np.abs(state["intercept"]).max()
    if "temperature" in state:
        moved, size = 2.0 * moved / float(state["temperature"]), 1.0
    bound: Floats = moved + 16.0 * float(np.finfo(DOUBLE).eps) * size
    return bound
