"""A fitted step, and the check of one that comes from a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kafeat.contract.checks import remedy
from kafeat.contract.step import MOST_FEATURES, Step, Transform
from kafeat.errors import DataError
from kafeat.types import Array, Shape, State

_FLOATS = ("float32", "float64")


@dataclass(frozen=True)
class FittedStep:
    """A recipe, what it learned, and the width that it learned it on."""

    step: Step
    state: State
    n_features_in: int

    @classmethod
    def checked(cls, step: Step, state: State, n_features_in: int) -> FittedStep:
        """Build a step from an untrusted recipe and state; raise ValueError if they disagree."""
        _check_arrays(state, step.state_shapes(state, n_features_in), step.state_dtypes)
        step.check_state(state, n_features_in)
        fitted = cls(step, state, n_features_in)
        fitted.check_width()
        return fitted

    @property
    def n_features_out(self) -> int:
        """The width of the output."""
        return self.step.n_features_out(self.state, self.n_features_in)

    def check_width(self) -> None:
        """ValueError for an output that nobody could hold: some kinds multiply their inputs."""
        if not 1 <= self.n_features_out <= MOST_FEATURES:
            raise ValueError(
                f"{self.step.kind}: expected from 1 to {MOST_FEATURES:,} outputs, got {self.n_features_out:,}"
            )

    def bind(self, dtype: np.dtype[Any]) -> Transform:
        """The transform in `dtype`."""
        try:
            with np.errstate(over="raise", divide="raise", invalid="raise"):
                return self.step.bind(self.state, self.n_features_in, dtype)
        except FloatingPointError as error:
            raise DataError(
                f"{self.step.kind}: expected a state that {dtype} can hold, got one that cannot be cast ({error}): "
                f"{remedy(dtype)}"
            ) from None


def sources_of(steps: Sequence[FittedStep]) -> Array | None:
    """Return the number of the first step's input that each output of the last belongs to; None if there is no one."""
    sources: Array | None = None
    for one in steps:
        found = one.step.sources(one.state, one.n_features_in)
        if found is None:
            return None
        sources = found if sources is None else sources[found]
    return sources


def _check_arrays(state: State, shapes: Mapping[str, Shape], dtypes: Mapping[str, str]) -> None:
    if set(state) != set(shapes):
        raise ValueError(f"state: expected {sorted(shapes)}, got {sorted(state)!s:.200}")
    for name, shape in shapes.items():
        allowed = (dtypes[name],) if name in dtypes else _FLOATS
        if state[name].dtype not in allowed:
            raise ValueError(
                f"state.{name}: expected numbers of {' or '.join(allowed)}, got {state[name].dtype}"
            )
        if state[name].shape != tuple(shape):
            raise ValueError(f"state.{name}: expected the shape {tuple(shape)}, got {state[name].shape}")
        if not np.isfinite(state[name]).all():
            raise ValueError(f"state.{name}: expected finite numbers")
