"""A feature map as an ONNX model."""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np
import onnx
from onnx import helper

from kafeat._version import __version__
from kafeat.chain.bound_chain import PREDICTION_DTYPE
from kafeat.contract.step import DOUBLE
from kafeat.errors import UsageError
from kafeat.model.feature_map import FeatureMap
from kafeat.model.load import load
from kafeat.onnx.chain import category_metadata, emit_chain, emit_columns
from kafeat.onnx.elementary import product
from kafeat.onnx.graph import Graph, Value

INPUT, OUTPUT, PREDICTIONS = "X", "Z", "P"
LOWEST_OPSET, OPSET = 13, 17


def to_model(model: str | os.PathLike[str] | FeatureMap, opset: int = OPSET) -> onnx.ModelProto:
    """Return a map as an ONNX model. The same map gives the same model.

    Parameters
    ----------
    model : str, path or FeatureMap
        Map to convert, or the location of its model file.
    opset : int, default 17
        ONNX operator set of the graph, at least 13.

    Returns
    -------
    onnx.ModelProto
        A graph with the input `X`, (N, d) in the dtype that the map reads, and the output `Z`, (N, D) in the map's own;
        N may be 0. A map that ends in a predictor also has the output `P`, (N, k) in float64: numbers or probabilities.
        A row that `transform` refuses gives NaN.

    Raises
    ------
    kafeat.errors.UsageError
        If a step has no ONNX operators, or the opset is not supported.
    """
    highest = onnx.defs.onnx_opset_version()
    if not LOWEST_OPSET <= opset <= highest:
        raise UsageError(f"opset: expected {LOWEST_OPSET} to {highest}, got {opset}")
    fm = model if isinstance(model, FeatureMap) else load(model)
    # Bound first, because this refuses numbers that the map's dtype cannot hold.
    reads = fm.input_dtype
    d, D, dtype = fm.n_features_in, fm.n_components, np.dtype(fm.dtype)
    graph = Graph(opset, dtype)
    x = emit_columns(fm.columns, Value(graph, INPUT), reads)
    z = graph.features(emit_chain(fm.chain, x, reads))
    outputs = {z: _info(OUTPUT, dtype, D)}
    if fm.predictor is not None:
        outputs[emit_predictor(fm, z)] = _info(PREDICTIONS, PREDICTION_DTYPE, fm.predictor.n_outputs)
    opsets = [helper.make_opsetid("", opset)]
    proto = helper.make_model(
        graph.proto(_info(INPUT, reads, d), outputs),
        opset_imports=opsets,
        # The lowest that the operators allow, for the sake of old programs.
        ir_version=helper.find_min_ir_version_for(opsets),
        producer_name="kafeat",
        producer_version=__version__,
        doc_string=_description(fm),
    )
    helper.set_model_props(proto, _metadata(fm))
    return proto


def _info(name: str, dtype: np.dtype[Any], width: int) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(dtype), ["N", width])


def emit_predictor(fm: FeatureMap, z: Value) -> Value:
    """Return Wᵀz + b, or its softmax for classes, (n, k) in float64. The product has the same dtype as in the map."""
    state, graph = fm.needed_predictor().fitted.state, z.graph
    dtype = DOUBLE if state["wide"] else graph.dtype
    with graph.inside("predictor"):
        x = z if dtype == graph.dtype else z.cast(dtype)
        with graph.computing_in(dtype):
            x = product(x, state["weights"].T)
        x = x if dtype == DOUBLE else x.cast(DOUBLE)
        with graph.computing_in(DOUBLE):
            scores = x + state["intercept"]
            if "temperature" not in state:
                return scores
            scores = scores - scores.row_max()
            shares = (scores / state["temperature"]).op("Exp")
            return shares / shares.row_sum()


def _description(fm: FeatureMap) -> str:
    kinds = " -> ".join(fitted.step.kind for fitted in fm.chain.steps)
    predicts = ""
    if fm.predictor is not None:
        what = "numbers" if fm.classes is None else "probabilities of the classes in kafeat.labels"
        predicts = f"{PREDICTIONS} (N, {fm.predictor.n_outputs}) float64: {what}. "
    return (
        f"Explicit kernel features by kafeat {fm.version}: {kinds}. {INPUT} (N, {fm.n_features_in}) "
        f"{fm.input_dtype}, in the order of kafeat.columns; {OUTPUT} (N, {fm.n_components}) {fm.dtype}. "
        f"{predicts}A row that the map refuses gives NaN."
    )


def _metadata(fm: FeatureMap) -> dict[str, str]:
    metadata = {
        "kafeat.version": fm.version,
        "kafeat.map_sha256": fm.digest or "",
        "kafeat.columns": json.dumps(fm.columns.names),
    }
    if fm.predictor is not None:
        metadata["kafeat.labels"] = json.dumps(fm.predictor.labels.to_plain())
    special = {"categories": category_metadata(fm.columns), "times": sorted(fm.columns.times)}
    return {**metadata, **{f"kafeat.{key}": json.dumps(values) for key, values in special.items() if values}}
