"""Write a map as an ONNX file, checked before it is there."""

from __future__ import annotations

import os
from dataclasses import dataclass

import onnx

from kafeat.errors import GateError
from kafeat.io.storage.location import write_file
from kafeat.model.feature_map import FeatureMap
from kafeat.model.load import load
from kafeat.onnx.agreement import Agreement, compare
from kafeat.onnx.model import OPSET, to_model


@dataclass(frozen=True)
class Exported:
    """A written ONNX file.

    Attributes
    ----------
    bytes : int
        Size of the file.
    opset : int
        Operator set of the graph.
    agreement : Agreement or None
        Comparison of the graph's features with the map's; None with `check=False`.
    """

    bytes: int
    opset: int
    agreement: Agreement | None


def export(
    model: str | os.PathLike[str] | FeatureMap,
    path: str | os.PathLike[str],
    *,
    opset: int = OPSET,
    check: bool = True,
    overwrite: bool = True,
    fsync: bool = True,
) -> Exported:
    """Write a map as an ONNX model, whole or not at all. ONNX's checker tests the model first.

    Parameters
    ----------
    model : str, path or FeatureMap
        Map to export, or the location of its model file.
    path : str or path
        File to write.
    opset : int, default 17
        ONNX operator set of the graph, at least 13.
    check : bool, default True
        Run the graph by onnxruntime on rows within the range that the fit has seen. The features must agree with those
        of `transform` but for rounding.
    overwrite : bool, default True
        Replace an existing file.
    fsync : bool, default True
        Wait until the file is on the disk.

    Returns
    -------
    Exported
        Size, opset and agreement.

    Raises
    ------
    kafeat.errors.UsageError
        If a step has no ONNX operators, or the opset is not supported.
    kafeat.errors.GateError
        If the features do not agree; nothing is written.
    """
    fm = model if isinstance(model, FeatureMap) else load(model)
    proto = to_model(fm, opset)
    data: bytes = proto.SerializeToString(deterministic=True)
    del proto
    onnx.checker.check_model(data, full_check=True)
    agreement = compare(fm, data) if check else None
    if agreement and not agreement.agrees:
        raise GateError(
            f"{os.fspath(path)}: expected features that differ from kafeat's by at most {agreement.allowed:.1e}, "
            f"got {agreement.largest:.1e}: nothing was written"
        )
    write_file(path, data, overwrite, fsync=fsync)
    return Exported(len(data), opset, agreement)
