"""Random Fourier features: the frequencies written out, one matrix product, cosines."""

from __future__ import annotations

from typing import cast

from kafeat.chain.chain import FittedStep
from kafeat.maths.fourier.features import length_scales
from kafeat.onnx.elementary import emit_cosines
from kafeat.onnx.graph import Graph, Value
from kafeat.samplers.fourier import Fourier


def emit(graph: Graph, fitted: FittedStep, x: Value) -> Value:
    step = cast(Fourier, fitted.step)
    scales = length_scales(step.length_scale, fitted.n_features_in)
    return emit_cosines(graph, fitted.state, fitted.n_features_in, x, scales)
