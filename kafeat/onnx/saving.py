"""A map to an ONNX file, checked before it is there."""

from __future__ import annotations

import os
from dataclasses import dataclass

import onnx

from kafeat.errors import GateError
from kafeat.io.storage.atomic import write_bytes
from kafeat.model.feature_map import FeatureMap
from kafeat.model.load import load
from kafeat.onnx.agreement import Agreement, compare
from kafeat.onnx.model import OPSET, to_model


@dataclass(frozen=True)
class Exported:
    """What was written; `agreement` is None if nothing was compared."""

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
    """Write the map as an ONNX model of that opset, whole or not at all.

    It goes through ONNX's checker first. With `check` onnxruntime then runs it on rows within the range that the fit
    has seen, and the features must agree with those of `transform` but for rounding. Raises `kafeat.errors.UsageError`
    for a map that no graph can be, and `GateError` where the two do not agree; nothing is written then.
    """
    fm = model if isinstance(model, FeatureMap) else load(model)
    proto = to_model(fm, opset)
    data: bytes = proto.SerializeToString(deterministic=True)
    del proto
    onnx.checker.check_model(data, full_check=True)
    found = compare(fm, data) if check else None
    if found and not found.agrees:
        raise GateError(
            f"{os.fspath(path)}: expected features that differ from kafeat's by at most {found.allowed:.1e}, "
            f"got {found.largest:.1e}: nothing was written"
        )
    write_bytes(os.fspath(path), data, clobber=overwrite, fsync=fsync)
    return Exported(len(data), opset, found)
