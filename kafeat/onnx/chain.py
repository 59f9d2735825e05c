"""Steps to operators, one after the other; the operators of each kind are a function in `steps/`."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import numpy as np

import kafeat.onnx.steps
from kafeat.chain.chain import Chain, FittedStep
from kafeat.contract.step import DOUBLE
from kafeat.errors import UsageError
from kafeat.onnx.graph import Value

Emit = Callable[[FittedStep, Value], Value]
"""Adds the operators of one fitted step that turn x (n, d) into its image; it refuses what no operator computes."""


def convertible() -> tuple[str, ...]:
    """The kinds that a graph can have, in alphabetical order."""
    return tuple(sorted(_emitters()))


def emit_chain(chain: Chain, x: Value, dtype: np.dtype[Any]) -> Value:
    """The outputs of a chain that are kept, (n, D), in the dtype of the graph; x is of `dtype`.

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
    return x if chain.outputs is None else x.columns(chain.outputs)


def _cast(x: Value, dtype: np.dtype[Any], wanted: np.dtype[Any]) -> Value:
    """x of `dtype` as a step wants it; a row with a number that this cannot hold is refused."""
    if dtype == wanted:
        return x
    if wanted != DOUBLE:
        with x.graph.computing_in(dtype):
            x.graph.refuse(~(abs(x) <= float(np.finfo(wanted).max)))
    return x.cast(wanted)


@cache
def _emitters() -> dict[str, Emit]:
    """The functions `emit_<kind>` that the modules in `steps/` define, by kind."""
    emitters = {}
    for module in iter_modules(kafeat.onnx.steps.__path__, "kafeat.onnx.steps."):
        for name, member in vars(import_module(module.name)).items():
            if name.startswith("emit_") and member.__module__ == module.name:
                emitters[name.removeprefix("emit_")] = member
    return emitters


def _emitter(kind: str) -> Emit:
    if kind not in _emitters():
        raise UsageError(
            f"kind: expected a step that ONNX has operators for, got {kind}; these have a form: "
            f"{', '.join(convertible())}"
        )
    return _emitters()[kind]
