"""The arc-cosine kernels of orders 0 and 1."""

from __future__ import annotations

import numpy as np

from kafeat.contract.kernel_inputs import Gram, KernelInputs
from kafeat.maths.kernel import Kernel, KernelParameters


class ArcCosineKernel(Kernel):
    """Order 0: 1 − θ/π; order 1: ‖x‖‖y‖(sin θ + (π − θ) cos θ)/π; θ the angle, π/2 where a row is 0."""

    def gram(self, inputs: KernelInputs, p: KernelParameters) -> Gram:
        x, y = (np.sqrt(norms) for norms in inputs.squared_norms)
        lengths = x[:, None] * y[None, :]
        # sin²(θ/2) from distances: an arc cosine would lose half of the digits of a small angle.
        chords = inputs.squared_distances - (x[:, None] - y[None, :]) ** 2
        half = np.divide(chords, 4.0 * lengths, out=np.full_like(lengths, 0.5), where=lengths > 0)
        half = np.clip(half, 0.0, 1.0)
        angles = 2.0 * np.arctan2(np.sqrt(half), np.sqrt(1.0 - half))
        if p.order == 0:
            diagonals = tuple(np.where(norms > 0, 1.0, 0.5) for norms in (x, y))
            return Gram(1.0 - angles / np.pi, (diagonals[0], diagonals[1]))
        values = lengths * (np.sin(angles) + (np.pi - angles) * np.cos(angles)) / np.pi
        return Gram(values, inputs.squared_norms)
