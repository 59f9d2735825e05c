"""Feature maps as ONNX graphs: one input of rows, one output of features, for programs without Python.

import kafeat.onnx
kafeat.onnx.export("map.joblib", "features.onnx")

It needs the extra `onnx`, which is imported when a graph is built, and not before.
"""

from __future__ import annotations

from kafeat.onnx.model import to_model
from kafeat.onnx.saving import Exported, export

__all__ = ["Exported", "export", "to_model"]
