"""The attributes of a fitted estimator, all checked, because the estimator may come from an untrusted file."""

from __future__ import annotations

from collections.abc import Sized
from numbers import Real
from typing import Any

import numpy as np

from kafeat.errors import DataError
from kafeat.types import Array, Floats

MOST_INPUTS = 2**21
"""Twice the number of a hashing vectorizer. Some estimators contain no array that proves their number of inputs."""


class Attributes:
    """The attributes of a fitted estimator by name. A missing or unexpected value raises `DataError`."""

    def __init__(self, estimator: Any) -> None:
        self._values: dict[str, Any] = vars(estimator)
        self.cls = type(estimator)
        self.kind = self.cls.__name__

    def get(self, name: str) -> Any:
        """Return the attribute, or None if it does not exist."""
        return self._values.get(name)

    def __getitem__(self, name: str) -> Any:
        if name not in self._values:
            raise DataError(f"{self.kind}: {name}: expected a fitted estimator, got one without it")
        return self._values[name]

    def refuse(self, name: str, expected: str, got: object) -> DataError:
        """Return the error to raise for an unexpected value."""
        return DataError(f"{self.kind}: {name}: expected {expected}, got {_brief(got)}")

    def width(self) -> int:
        width = self.whole("n_features_in_")
        if not 1 <= width <= MOST_INPUTS:
            raise self.refuse("n_features_in_", f"a number from 1 to {MOST_INPUTS:,}", width)
        return width

    def says(self, name: str, text: str) -> bool:
        """Return True if the attribute is this text."""
        value = self[name]
        return isinstance(value, str) and value == text

    def is_pair(self, name: str, pair: tuple[float, float]) -> bool:
        """Return True if the attribute is this pair of numbers."""
        value = self[name]
        return (
            isinstance(value, tuple | list)
            and all(isinstance(n, Real) for n in value)
            and tuple(value) == pair
        )

    def has_none(self, name: str) -> bool:
        """Return True if the attribute is None or an empty dict."""
        value = self[name]
        return value is None or (isinstance(value, dict) and not value)

    def number(self, name: str, default: float | None = None) -> float:
        """Return a finite number; `default` replaces None."""
        value = self[name]
        if value is None and default is not None:
            return float(default)
        try:
            number = float(value) if isinstance(value, Real) and not isinstance(value, bool) else np.nan
        except OverflowError:  # a whole number of some hundred digits
            number = np.nan
        if not np.isfinite(number):
            raise self.refuse(name, "a finite number", value)
        return number

    def whole(self, name: str, default: float | None = None) -> int:
        value = self.number(name, default)
        if not value.is_integer():
            raise self.refuse(name, "a whole number, which kafeat requires here", value)
        return int(value)

    def flag(self, name: str) -> bool:
        if not isinstance(self[name], bool | np.bool_):
            raise self.refuse(name, "a bool", self[name])
        return bool(self[name])

    def one_of(self, name: str, known: tuple[str, ...]) -> str:
        """Return a text, which must be one of `known`."""
        value = self[name]
        if not isinstance(value, str) or value not in known:
            raise self.refuse(name, f"one of {', '.join(known)}", value)
        return value

    def array(self, name: str, shape: tuple[int | None, ...]) -> Array:
        """Return a dense numeric array of this shape (None: any length), unchanged."""
        value = self[name]
        if type(value) is not np.ndarray or value.dtype.kind not in "fiu":
            raise self.refuse(name, "a dense array of numbers", type(value).__name__)
        if len(shape) != value.ndim or any(
            n not in (None, m) for n, m in zip(shape, value.shape, strict=True)
        ):
            spelled = ", ".join("any" if n is None else str(n) for n in shape)
            raise self.refuse(name, f"the shape ({spelled})", value.shape)
        return value

    def floats(self, name: str, shape: tuple[int | None, ...]) -> Floats:
        """Return such an array as contiguous float64."""
        return np.array(self.array(name, shape), dtype=np.float64, order="C")

    def whole_numbers(self, name: str, shape: tuple[int | None, ...]) -> Array:
        """Return such an array of whole numbers as int64."""
        value = self.array(name, shape)
        if value.dtype.kind not in "iu":
            raise self.refuse(name, "whole numbers", str(value.dtype))
        return np.array(value, dtype=np.int64, order="C")


def _brief(value: object) -> str:
    """Return a short text for a value: nested lists may be small in a file and endless when printed."""
    flat = value if isinstance(value, tuple) else (value,)
    if len(flat) <= 4 and all(one is None or isinstance(one, str | Real) for one in flat):
        return f"{value!r:.100}"
    return f"{type(value).__name__} of {len(value)}" if isinstance(value, Sized) else type(value).__name__
