"""Aliases for the arrays that go through kafeat."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.floating[Any]]
"""A real array in the dtype of the map."""

Array: TypeAlias = npt.NDArray[Any]
"""Any array of plain numbers."""

Mask: TypeAlias = npt.NDArray[np.bool_]
"""True or false for every row, or every entry."""

State: TypeAlias = Mapping[str, Array]
"""What a step learned: names and numeric arrays, nothing else."""

Shape: TypeAlias = tuple[int, ...]

DType: TypeAlias = Literal["float32", "float64"]

Scratch: TypeAlias = tuple[Any, ...]
"""Buffers that one worker owns: arrays, or tuples of them."""
