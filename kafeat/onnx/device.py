"""A map whose features a device computes: its graph, run by one of onnxruntime's execution providers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from kafeat.contract.casts import all_finite
from kafeat.contract.checks import round_to
from kafeat.contract.tile import dense
from kafeat.errors import SystemRefusedError, first_line
from kafeat.io.readers.base import Chunk
from kafeat.model.feature_map import FeatureMap
from kafeat.onnx.agreement import as_given
from kafeat.onnx.model import INPUT, OUTPUT, to_model
from kafeat.runtime.environment import count_jobs
from kafeat.runtime.ordered_map import prefetch
from kafeat.runtime.threads import REFUSE_BAD_ROWS, FeatureTarget, InMemory, RowPolicy, Transformed
from kafeat.types import Floats

_SUFFIX = "ExecutionProvider"
_CPU = "cpu"
_GPU = "pip install 'kafeat[gpu]' in an environment without onnxruntime brings cuda, and needs NVIDIA's libraries"


@dataclass(frozen=True, repr=False)
class DeviceMap(FeatureMap):
    """A feature map whose features come from a session of onnxruntime, chunk after chunk.

    A chunk with a row that the graph has no features for is computed by the processor, which refuses or accepts it.
    """

    session: Any = None

    def _height(self, rows: int, jobs: int) -> int:
        return self.chunk_rows

    def _fill(self, chunks: Iterator[Chunk], out: Floats, jobs: int) -> None:
        for _ in self.run(chunks, InMemory(out), jobs):
            pass

    def run(
        self,
        chunks: Iterator[Chunk],
        target: FeatureTarget,
        jobs: int | None,
        policy: RowPolicy = REFUSE_BAD_ROWS,
    ) -> Iterator[Transformed]:
        """Transform chunks on the device, read ahead by a thread, and yield them in order."""
        for chunk in prefetch(chunks, 2):
            done = self._on_device(chunk, target, policy)
            if done is None:
                yield from super().run(iter([chunk]), target, jobs, policy)
            else:
                yield done

    def _on_device(self, chunk: Chunk, target: FeatureTarget, policy: RowPolicy) -> Transformed | None:
        """Return None if a row has no features."""
        rows, sound = chunk.decode(self.input_dtype)
        if not sound:
            return None
        X = dense(rows)
        (Z,) = self.session.run([OUTPUT], {INPUT: np.ascontiguousarray(as_given(self.columns, X))})
        if not all_finite(Z):
            return None
        out = target.buffer(chunk.start, chunk.rows)
        if round_to(Z, out) is not None:
            return None
        target.filled(chunk.start, out)
        return policy.observe(Transformed(chunk=chunk, features=out, clipped=0), rows)


def on_device(fm: FeatureMap, device: str, jobs: int | None = None) -> DeviceMap:
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
    DeviceMap
        A feature map.

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
    return DeviceMap(**{one.name: getattr(fm, one.name) for one in fields(FeatureMap)}, session=session)


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
