"""Nyström landmarks: selectors by name, and rows that the user supplies.

A selector gets the sample as a `FitSample`. It returns m different row numbers, or m new points.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, PlainSerializer, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from kafeat.contract.describe import Described, spell
from kafeat.contract.step import Sample
from kafeat.errors import DataError, UsageError
from kafeat.maths.nystroem.landmarks.fit_sample import FitSample, Indices, Profile
from kafeat.maths.nystroem.landmarks.kmeans import kmeans, learned
from kafeat.maths.nystroem.landmarks.of_label import dual_kmeans, dual_weighted, residual
from kafeat.maths.nystroem.landmarks.pivots import farthest, greedy, leverage, rpcholesky, uniform
from kafeat.types import Array, Floats

__all__ = [
    "OF_LABEL", "POINTS", "SELECTORS", "WITH_TOLERANCE", "FitSample", "Given", "Indices", "Profile", "select",
]  # fmt: skip

_SELECTORS: tuple[Callable[[FitSample, int, np.random.Generator], Array], ...] = (
    uniform, kmeans, learned, rpcholesky, greedy, leverage, farthest, residual, dual_weighted, dual_kmeans,
)  # fmt: skip
SELECTORS = {selector.__name__: selector for selector in _SELECTORS}
"""The functions that select landmarks, by name."""
POINTS = ("kmeans", "learned", "dual_kmeans")
"""Selectors that compute new points, so inputs must be coordinates. Others choose rows."""
OF_LABEL = ("residual", "dual_weighted", "dual_kmeans")
WITH_TOLERANCE = ("rpcholesky", "greedy")


def select(name: str, view: FitSample, m: int, rng: np.random.Generator) -> Array:
    """Return m landmarks by the selector with this name: row numbers (m,), or points (m, d)."""
    if len(view.X) < m:
        raise DataError(
            f"nystroem: expected at least as many rows as landmarks ({m}), got {len(view.X)}: "
            "lower n_landmarks or n_components"
        )
    try:
        return SELECTORS[name](view, m, rng)
    except UsageError as error:
        raise UsageError(f"nystroem: landmarks: {name}: {error}") from None


_ROWS = "the path of a file, or rows as a 2-D array"


def _path_or_rows(value: object) -> object:
    if isinstance(value, str) and value:
        return value
    if isinstance(value, np.ndarray) and value.ndim == 2:
        rows = value.copy()
        rows.flags.writeable = False
        return rows
    got = f"an array of shape {value.shape}" if isinstance(value, np.ndarray) else spell(value)
    raise PydanticCustomError("parameter", "{text}", {"text": f"expected {_ROWS}, got {got}"})


def key_of(rows: str | Array) -> str:
    """Return a recipe's name for rows that the user supplies: their path, or a digest of the array."""
    if isinstance(rows, str):
        return rows
    return f"<array {sha256(np.ascontiguousarray(rows).tobytes()).hexdigest()[:16]}>"


class Given(BaseModel):
    """Rows with the data's columns that the user gives as landmarks. Previous steps transform them like the sample."""

    model_config = ConfigDict(
        defer_build=True, frozen=True, strict=True, extra="forbid", arbitrary_types_allowed=True
    )

    given: Annotated[
        Any,
        PlainValidator(_path_or_rows),
        PlainSerializer(key_of, return_type=str, when_used="json"),
        Described(_ROWS, "rows"),
        WithJsonSchema({"type": "string", "minLength": 1}),
    ] = Field(description=f"the landmarks: {_ROWS}")

    @property
    def key(self) -> str:
        """The name of the rows in a recipe: their path, or a digest of the array."""
        return key_of(self.given)

    def rows_of(self, sample: Sample, name: str, least: int, exactly: bool, non_negative: bool) -> Floats:
        """Return the rows after the previous steps. They must be at least `least` rows, or exactly `least`."""
        rows = sample.given.get(self.key)
        if rows is None:
            raise UsageError(f"nystroem: landmarks: given: expected the rows of {self.key}, got none")
        if len(rows) < least or (exactly and len(rows) != least):
            wanted = f"{name} = {least}" if exactly else f"at least {name} = {least}"
            raise DataError(f"nystroem: landmarks: {self.key}: expected {wanted} rows, got {len(rows)}")
        if non_negative and rows.min() < 0.0:
            raise DataError(
                f"nystroem: landmarks: {self.key}: expected values of at least 0, got {rows.min():g}"
            )
        return rows
