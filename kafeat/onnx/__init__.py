"""Feature maps as ONNX graphs: one input of rows, one output of features, for programs without Python.

import kafeat.onnx
kafeat.onnx.export("map.joblib", "features.onnx")

It needs the extra `onnx`.
"""

from __future__ import annotations

try:
    import onnx as _needed  # noqa: F401
except ImportError as error:
    raise ImportError(f"kafeat.onnx: expected onnx, got: {error}; pip install 'kafeat[onnx]'") from error

from kafeat.onnx.model import to_model
from kafeat.onnx.saving import Exported, export

__all__ = ["Exported", "export", "to_model"]
