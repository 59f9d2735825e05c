"""A feature map as an ONNX model: its inputs, the operators of its steps one after the other, and its predictor.

A function in `steps/` adds the operators of each kind. For a category, the input is a number: the category itself if
all categories of the column are whole numbers, otherwise its position in the list of categories in the metadata. The
graph turns it into a code.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import numpy as np
import onnx
from onnx import helper

import kafeat.onnx.steps
from kafeat._version import __version__
from kafeat.chain.bound_chain import PREDICTION_DTYPE
from kafeat.chain.chain import Chain, FittedStep
from kafeat.contract.step import DOUBLE
from kafeat.errors import UsageError
from kafeat.io.columns.categories import Categories
from kafeat.io.columns.columns import Columns
from kafeat.model.feature_map import FeatureMap
from kafeat.model.load import load
from kafeat.onnx.elementary import product
from kafeat.onnx.graph import Graph, Value, beside, where
from kafeat.types import Array

_WHOLE = re.compile(r"-?[0-9]+")
# float32 can represent all whole numbers up to here.
_LARGEST = 1 << 24

Emit = Callable[[FittedStep, Value], Value]
"""Adds the operators of a fitted step for x (n, d) and returns its outputs, or raises an error if ONNX has none."""


def coded(columns: Columns) -> dict[int, Categories]:
    """Return the categories of each feature that is a code, by the position of the feature."""
    categories, at = {}, 0
    for column in columns.features:
        if isinstance(column.categories, Categories):
            categories[at] = column.categories
        at += column.n_features
    return categories


def takes_numbers(categories: Categories) -> bool:
    """Return True if all categories are whole numbers. The graph's input is then the category itself, not its code."""
    whole = [int(value) for value in categories.values if _WHOLE.fullmatch(value)]
    return len(set(whole)) == len(categories.values) and max(map(abs, whole)) <= _LARGEST


def numbers_of(categories: Categories) -> Array:
    """Return the number that stands for each category in the graph's input, in the order of codes."""
    if takes_numbers(categories):
        return np.array([float(value) for value in categories.values])
    return np.arange(len(categories.values), dtype=np.float64)


def category_metadata(columns: Columns) -> dict[str, Any]:
    """Return each column's categories, whether inputs are categories or codes, and how unknown categories count."""
    names = columns.names
    return {
        names[j]: {
            "categories": list(column.values),
            "input": "number" if takes_numbers(column) else "code",
            "unknown": "rare" if column.rest else "zeros" if column.lenient else "refused",
        }
        for j, column in coded(columns).items()
    }


def emit_columns(columns: Columns, x: Value, dtype: np.dtype[Any]) -> Value:
    """Return the rows as the first step reads them, in `dtype`. A row that a reader would reject gets NaN features."""
    categories, graph = coded(columns), x.graph
    with graph.computing_in(dtype), graph.inside("columns"):
        bad = ~_finite(x)
        if columns.missing:
            bad = bad & ~x.op("IsNaN")
        if not categories:
            graph.refuse(bad)
            return x
        plain = np.array([j not in categories for j in range(columns.n_features)])
        graph.refuse(bad & plain[None, :])
        parts, start = [], 0
        for j, column in [*categories.items(), (columns.n_features, None)]:
            if start < j:
                parts.append(x.span(start, j))
            if column is not None:
                parts.append(_code(x.span(j, j + 1), column))
            start = j + 1
        return beside(parts)


def _code(x: Value, categories: Categories) -> Value:
    """Return the code of each number (n, 1). Unknown categories get −1, the last code or NaN features."""
    numbers, graph = numbers_of(categories), x.graph
    # A one-hot row times 1, 2, 3, … is the position of the category, counted from 1.
    hits = x.op("Equal", numbers[None, :]).cast(graph.dtype)
    code = hits.matmul(np.arange(1.0, len(numbers) + 1)[:, None]) - 1.0
    if categories.rest:
        code = where((code < 0.0) & _finite(x), float(len(numbers)), code)
    if not categories.lenient:
        graph.refuse(code < 0.0)
        return code
    known = x.op("Equal", x.op("Round")) & _finite(x)
    graph.refuse(~(x.op("IsNaN") | known))
    return code


def _finite(x: Value) -> Value:
    """Return True where an entry is a finite number."""
    return abs(x) <= float(np.finfo(x.graph.dtype).max)


def convertible() -> tuple[str, ...]:
    """Return the kinds of steps that can be exported, in alphabetical order."""
    return tuple(sorted(_emitters()))


def emit_chain(chain: Chain, x: Value, dtype: np.dtype[Any]) -> Value:
    """Return the outputs (n, D) of a chain for x (n, d), which has `dtype`. The outputs have the dtype of the graph.

    As in `transform`, steps before the cast compute in float64.
    """
    graph = x.graph
    for i, fitted in enumerate(chain.steps):
        kind = fitted.step.kind
        computes = DOUBLE if i < chain.cast_after else graph.dtype
        with graph.inside(f"steps[{i}]/{kind}"):
            try:
                x = _cast(x, dtype, fitted.bind(computes).reads(computes))
                with graph.computing_in(computes):
                    x, dtype = _emitter(kind)(fitted, x), computes
            except UsageError as error:
                raise UsageError(f"steps[{i}].{error}") from None
    if dtype != graph.dtype:
        x = x.cast(graph.dtype)
    return x


def _cast(x: Value, dtype: np.dtype[Any], wanted: np.dtype[Any]) -> Value:
    """Cast x from `dtype` to `wanted`, which a step reads. Rows with numbers that `wanted` cannot hold are refused."""
    if dtype == wanted:
        return x
    if wanted != DOUBLE:
        with x.graph.computing_in(dtype):
            x.graph.refuse(~(abs(x) <= float(np.finfo(wanted).max)))
    return x.cast(wanted)


@cache
def _emitters() -> dict[str, Emit]:
    """Return the functions `emit_<kind>` that the modules in `steps/` define, by kind."""
    emitters = {}
    for module in iter_modules(kafeat.onnx.steps.__path__, "kafeat.onnx.steps."):
        for name, member in vars(import_module(module.name)).items():
            if name.startswith("emit_") and member.__module__ == module.name:
                emitters[name.removeprefix("emit_")] = member
    return emitters


def _emitter(kind: str) -> Emit:
    if kind not in _emitters():
        raise UsageError(
            f"kind: expected a step that ONNX has operators for, got {kind}; these can be exported: "
            f"{', '.join(convertible())}"
        )
    return _emitters()[kind]


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
        A graph with the input `X`, (N, d) in the dtype that the map reads, and the output `Z`, (N, D) in the map's
        dtype; N may be 0. A map that ends in a predictor also has the output `P`, (N, k) in float64: numbers or
        probabilities. A row that `transform` refuses gives NaN.

    Raises
    ------
    kafeat.errors.UsageError
        If a step has no ONNX operators, or the opset is not supported.
    """
    highest = onnx.defs.onnx_opset_version()
    if not LOWEST_OPSET <= opset <= highest:
        raise UsageError(f"opset: expected {LOWEST_OPSET} to {highest}, got {opset}")
    fm = model if isinstance(model, FeatureMap) else load(model)
    # This comes first, because it checks that the map's dtype can hold the numbers of the steps.
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
        # the lowest version that the operators allow, so that old programs can read the file
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
    """Return Wᵀz + b or, for classes, its softmax, (n, k) in float64. Wᵀz has the same dtype as in the map."""
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
