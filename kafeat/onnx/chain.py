"""Steps to operators, one after the other: how each kind does it is in the file of its name in `steps/`."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pkgutil import iter_modules

import kafeat.onnx.steps
from kafeat.chain import Chain, FittedStep
from kafeat.errors import UsageError
from kafeat.onnx.graph import Graph, Value

Emit = Callable[[Graph, FittedStep, Value], Value]
"""Adds the operators of one fitted step that turn x (n, d) into its image; it refuses what no operator computes."""


def convertible() -> tuple[str, ...]:
    """The kinds that a graph can have, in alphabetical order."""
    found = (module.name for module in iter_modules(kafeat.onnx.steps.__path__))
    return tuple(sorted(found))


def emit_chain(graph: Graph, chain: Chain, x: Value) -> Value:
    """The outputs of a chain that are kept, (n, D)."""
    for i, fitted in enumerate(chain.steps):
        kind = fitted.step.kind
        with graph.inside(f"steps[{i}]/{kind}"):
            try:
                x = _emitter(kind)(graph, fitted, x)
            except UsageError as error:
                raise UsageError(f"steps[{i}].{error}") from None
    return x if chain.outputs is None else graph.columns(x, chain.outputs)


def _emitter(kind: str) -> Emit:
    if kind not in convertible():
        raise UsageError(
            f"kind: expected a step that ONNX has operators for, got {kind}; these have a form: "
            f"{', '.join(convertible())}"
        )
    found: Emit = import_module(f"kafeat.onnx.steps.{kind}").emit
    return found
