"""What every kernel between a tile of rows and fixed landmarks is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from kafeat.maths.kernels.exact import KernelParameters
from kafeat.types import Array, Floats


class KernelTile(ABC):
    """k(x, l_j) of every row x of a tile with every landmark l_j."""

    def __init__(self, landmarks: Floats, parameters: KernelParameters, dtype: np.dtype[Any]) -> None:
        self._landmarks = np.ascontiguousarray(landmarks, dtype=dtype)
        self._parameters = parameters
        self._dtype = self.dtype = dtype

    def scratch(self, rows: int) -> tuple[Array, ...]:
        """Buffers for tiles of `rows` rows."""
        return (np.empty((rows, self._landmarks.shape[1]), dtype=self._dtype),)

    @abstractmethod
    def evaluate(self, X: Floats, out: Floats, scratch: tuple[Array, ...]) -> None:
        """Write the kernel of `X` (rows, d) with the landmarks (m, d) into `out` (rows, m), C order."""
