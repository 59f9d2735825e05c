"""Types of the arrays and tables that kafeat processes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.floating[Any]]
"""An array of floats. Its dtype is that of the map where no other dtype is stated."""

Array: TypeAlias = npt.NDArray[Any]
"""Any array of plain numbers."""

Mask: TypeAlias = npt.NDArray[np.bool_]
"""True or false for every row, or every entry."""

State: TypeAlias = Mapping[str, Array]
"""The state of a fitted step: numeric arrays by name, and nothing else."""

Shape: TypeAlias = tuple[int, ...]


class ArrayOf(NamedTuple):
    """The declaration of one array of a state: its shape, and how it differs from a required array of floats."""

    shape: Shape
    dtype: str | None = None
    """The dtype, if the array does not hold floats."""
    optional: bool = False
    """True if a state may lack the array, as in older model files."""
    below: int | None = None
    """For indices, which are whole numbers from 0 to `below` − 1: a wrong index would access other memory."""
    sign: Literal["", "above 0", "of at least 0", "of at most 0"] = ""
    """The sign that all numbers of the array must have, as words for messages; "" if any sign is valid."""
    missing: bool = False
    """True if numbers may be NaN."""


Shapes: TypeAlias = Mapping[str, Shape | ArrayOf]
"""The arrays of a state by name. A shape without `ArrayOf` stands for a required array of floats."""

DType: TypeAlias = Literal["float32", "float64"]

Scratch: TypeAlias = Any
"""Buffers that one worker owns: an array, or a tuple of arrays and of the buffers of inner transforms."""


class ArrowTable(Protocol):
    """A table of pyarrow, pandas or polars, or any other table with the Arrow PyCapsule interface."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the table as an Arrow stream."""


class SparseMatrix(Protocol):
    """A sparse matrix or array of SciPy."""

    def tocsr(self) -> Any:
        """Return the matrix in CSR format."""


TableLike: TypeAlias = npt.ArrayLike | ArrowTable | SparseMatrix
"""Rows in memory: an array (n_rows, n_columns), a sparse matrix, or a table with named columns."""
