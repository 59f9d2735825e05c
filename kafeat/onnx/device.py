"""A map whose features and predictions a device computes: its graph, run by an execution provider of onnxruntime."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from kafeat.contract.casts import all_finite
from kafeat.contract.checks import round_to
from kafeat.contract.tile import Rows, dense
from kafeat.errors import SystemRefusedError, first_line
from kafeat.io.readers.base import Chunk
from kafeat.model.feature_map import FeatureMap
from kafeat.onnx.agreement import as_given
from kafeat.onnx.model import INPUT, OUTPUT, PREDICTIONS, to_model
from kafeat.runtime.environment import count_jobs
from kafeat.runtime.ordered_map import prefetch
from kafeat.runtime.threads import REFUSE_BAD_ROWS, FeatureTarget, InMemory, RowPolicy, Transformed
from kafeat.types import Floats

_SUFFIX = "ExecutionProvider"
_CPU = "cpu"
_GPU = "pip install 'kafeat[gpu]' in an environment without onnxruntime brings cuda, and needs NVIDIA's libraries"


@dataclass(frozen=True, repr=False)
class DeviceMap(FeatureMap):
    """A feature map whose features and predictions come from a session of onnxruntime, chunk after chunk.

    A chunk with a row that the graph has none for is computed by the processor, which refuses or accepts it.
    """

    session: Any = None

    def _height(self, rows: int, jobs: int) -> int:
        return self.chunk_rows

    def _fill(self, chunks: Iterator[Chunk], out: Floats, jobs: int, unit_variance: bool) -> None:
        for _ in self.run(chunks, InMemory(out), jobs, unit_variance=unit_variance):
            pass

    def run(
        self,
        chunks: Iterator[Chunk],
        target: FeatureTarget,
        jobs: int | None,
        policy: RowPolicy = REFUSE_BAD_ROWS,
        *,
        unit_variance: bool = False,
    ) -> Iterator[Transformed]:
        """Transform chunks on the device, read ahead by a thread, and yield them in order."""
        scale = self.needed_unit_scale() if unit_variance else 1.0
        for chunk in prefetch(chunks, 2):
            done = self._on_device(scale, chunk, target, policy)
            if done is None:
                one = iter([chunk])
                yield from super().run(one, target, jobs, policy, unit_variance=unit_variance)
            else:
                yield done

    def run_predictions(
        self, chunks: Iterator[Chunk], jobs: int | None, policy: RowPolicy = REFUSE_BAD_ROWS
    ) -> Iterator[Transformed]:
        """Predict chunks on the device, read ahead by a thread, and yield them in order."""
        for chunk in prefetch(chunks, 2):
            done = self._predicted(chunk, policy)
            if done is None:
                yield from super().run_predictions(iter([chunk]), jobs, policy)
            else:
                yield done

    def _on_device(
        self, scale: float, chunk: Chunk, target: FeatureTarget, policy: RowPolicy
    ) -> Transformed | None:
        """Return None if a row has no features."""
        made = self._outputs_of_graph(chunk, OUTPUT)
        if made is None:
            return None
        rows, (Z,) = made
        if scale != 1.0:
            with np.errstate(over="ignore"):
                Z = Z * scale
        out = target.buffer(chunk.start, chunk.rows)
        if round_to(Z, out) is not None:
            return None
        target.filled(chunk.start, out)
        return policy.observe(Transformed(chunk=chunk, features=out, clipped=0), rows)

    def _predicted(self, chunk: Chunk, policy: RowPolicy) -> Transformed | None:
        """Return None if a row has no predictions."""
        made = self._outputs_of_graph(chunk, PREDICTIONS, *([OUTPUT] if policy.sums else []))
        if made is None:
            return None
        rows, (P, *features) = made
        done = replace(policy, sums=False).observe(Transformed(chunk=chunk, features=P, clipped=0), rows)
        return replace(done, total=features[0].sum(axis=0, dtype=np.float64)) if features else done

    def _outputs_of_graph(self, chunk: Chunk, *names: str) -> tuple[Rows, list[Floats]] | None:
        """Return the rows of a chunk and outputs of the graph; None if one is not finite."""
        rows, sound = chunk.decode(self.input_dtype)
        if not sound:
            return None
        X = np.ascontiguousarray(as_given(self.columns, dense(rows)))
        made = self.session.run(list(names), {INPUT: X})
        return (rows, made) if all(map(all_finite, made)) else None


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
