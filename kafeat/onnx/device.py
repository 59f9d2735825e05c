"""A device that computes features and predictions: a graph that an execution provider of onnxruntime runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kafeat.chain.program import What, Worker
from kafeat.chain.tiles import Made
from kafeat.contract.checks import all_finite, round_to
from kafeat.contract.tile import InputRows, dense
from kafeat.errors import SystemRefusedError, first_line
from kafeat.io.columns.columns import Columns
from kafeat.model.feature_map import FeatureMap
from kafeat.onnx.model import INPUT, OUTPUT, PREDICTIONS, to_model
from kafeat.onnx.saving import as_given
from kafeat.runtime.environment import count_jobs
from kafeat.types import Floats

_SUFFIX = "ExecutionProvider"
_CPU = "cpu"
_GPU = "pip install 'kafeat[gpu]' in an environment without onnxruntime brings cuda, and needs NVIDIA's libraries"


@dataclass(frozen=True)
class OnnxDevice:
    """A session of onnxruntime, and the columns of its input."""

    session: Any
    columns: Columns

    def worker(self, processor: Callable[[], Worker], what: What, factor: float | None, sums: bool) -> Worker:
        """Return a worker; chunks with a row that the graph has nothing for go to the processor."""
        names = [OUTPUT] if what == "features" else [PREDICTIONS, *([OUTPUT] if sums else [])]
        return _Worker(self, processor(), names, factor)


class _Worker:
    """Chunks go through the graph. It counts no values that a step clips."""

    def __init__(self, device: OnnxDevice, processor: Worker, names: list[str], factor: float | None) -> None:
        self._device, self._processor, self._names, self._factor = device, processor, names, factor
        self.rows = processor.rows

    def __call__(self, X: InputRows, out: Floats, above: int = 0) -> Made:
        given = np.ascontiguousarray(as_given(self._device.columns, dense(X)))
        made = self._device.session.run(self._names, {INPUT: given})
        if all(map(all_finite, made)):
            Z = made[0] if len(made) == 1 else np.concatenate(made, axis=1)
            if self._factor is not None:
                with np.errstate(over="ignore"):
                    Z = Z * self._factor
            if round_to(Z, out) is None:
                return Made(out, None)
        return self._processor(X, out, above)


def on_device(fm: FeatureMap, device: str, jobs: int | None = None) -> FeatureMap:
    """Return the map with features that a device computes.

    They differ from those of `transform` by rounding, as `export` tests it. Values that a step clips are not counted.

    Parameters
    ----------
    fm : FeatureMap
        The map.
    device : str
        The name of an execution provider of onnxruntime without its ending, such as `cpu`, `cuda`, `rocm` or `coreml`.
    jobs : int or None, default None
        Number of threads of the device `cpu`; None takes all cores.

    Returns
    -------
    FeatureMap
        The same map on the device.

    Raises
    ------
    kafeat.errors.SystemRefusedError
        There is no onnxruntime, or none with this provider, or the provider does not start.
    kafeat.errors.UsageError
        If a step has no ONNX operators.
    """
    runtime, provider = _provider(device)
    options = runtime.SessionOptions()
    # What is wrong comes as an exception, or shows in the providers of the session.
    options.log_severity_level = 4
    options.intra_op_num_threads = count_jobs(jobs)
    names = list(dict.fromkeys((provider, f"CPU{_SUFFIX}")))  # the processor does what the device cannot
    graph = to_model(fm).SerializeToString()
    try:
        session = runtime.InferenceSession(graph, options, providers=names)
    except Exception as error:  # of classes that onnxruntime does not name
        raise SystemRefusedError(
            f"--device {device}: expected a device that runs the map, got: {first_line(error)}; leave --device out"
        ) from None
    if provider not in session.get_providers():
        raise SystemRefusedError(
            f"--device {device}: expected {provider} to start, got an onnxruntime that left it out: is there such a "
            f"device, and are its libraries? {_GPU}"
        )
    return replace(fm, device=OnnxDevice(session, fm.columns))


def _provider(device: str) -> tuple[Any, str]:
    """Return onnxruntime, and the full name of its provider."""
    try:
        import onnxruntime
    except ImportError as error:
        raise SystemRefusedError(
            f"--device {device}: expected onnxruntime, got: {error}; pip install 'kafeat[onnx]'. {_GPU}"
        ) from None
    known = {name.removesuffix(_SUFFIX).lower(): name for name in onnxruntime.get_available_providers()}
    if device.lower() not in known:
        there = ", ".join(sorted(known, key=lambda name: (name != _CPU, name)))
        raise SystemRefusedError(
            f"--device {device}: expected a provider of this onnxruntime, which are: {there}; {_GPU}"
        )
    return onnxruntime, known[device.lower()]
