"""A feature map as an ONNX model."""

from __future__ import annotations

import json
import os

import numpy as np
import onnx
from onnx import helper

from kafeat._version import __version__
from kafeat.chain.bound_chain import PREDICTION_DTYPE
from kafeat.errors import UsageError
from kafeat.model.feature_map import FeatureMap
from kafeat.model.load import load
from kafeat.onnx.chain import emit_chain
from kafeat.onnx.columns import category_metadata, emit_columns
from kafeat.onnx.graph import Graph
from kafeat.onnx.predictor import emit_predictor, predictor_metadata

INPUT, OUTPUT, PREDICTIONS = "X", "Z", "P"
LOWEST_OPSET, OPSET = 13, 17


def to_model(model: str | os.PathLike[str] | FeatureMap, opset: int = OPSET) -> onnx.ModelProto:
    """Return a map as an ONNX model; the same map gives the same model.

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
    # Bound first: numbers that the map's dtype cannot hold are refused there.
    reads = fm.input_dtype
    d, D, dtype = fm.n_features_in, fm.n_components, np.dtype(fm.dtype)
    graph = Graph(opset, dtype)
    x = emit_columns(graph, fm.columns, INPUT, reads)
    z = graph.features(emit_chain(graph, fm.chain, x, reads))
    inputs = helper.make_tensor_value_info(INPUT, helper.np_dtype_to_tensor_dtype(reads), ["N", d])
    made = helper.make_tensor_value_info(OUTPUT, helper.np_dtype_to_tensor_dtype(dtype), ["N", D])
    opsets = [helper.make_opsetid("", opset)]
    outputs = {z: made}
    if fm.predictor is not None:
        shape: list[str | int | None] = ["N", fm.predictor.n_outputs]
        outputs[emit_predictor(graph, fm, z)] = helper.make_tensor_value_info(
            PREDICTIONS, helper.np_dtype_to_tensor_dtype(PREDICTION_DTYPE), shape
        )
    proto = helper.make_model(
        graph.proto("kafeat", [inputs], outputs),
        opset_imports=opsets,
        # The lowest that goes with the operators, for the sake of old programs.
        ir_version=helper.find_min_ir_version_for(opsets),
        producer_name="kafeat",
        producer_version=__version__,
        doc_string=_description(fm),
    )
    helper.set_model_props(proto, _metadata(fm))
    return proto


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
        **predictor_metadata(fm),
    }
    special = {"categories": category_metadata(fm.columns), "times": sorted(fm.columns.times)}
    return {**metadata, **{f"kafeat.{key}": json.dumps(values) for key, values in special.items() if values}}
