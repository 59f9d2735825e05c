"""Cosine features of random frequencies, tile by tile: product, cosine, scaling, straight into the output."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from kafeat.errors import ValueRefused
from kafeat.step import Transform, refuse_parameter
from kafeat.types import Array, Floats, State

Features = Literal["paired", "offset"]
Warp = Callable[[Floats, Floats], None]


def draw_state(frequencies: Floats, n_components: int, features: Features, rng: np.random.Generator) -> State:
    """What a cosine map learned: frequencies (m, d), and phases (m,) for offset features."""
    state: dict[str, Array] = {"frequencies": frequencies}
    if features == "offset":
        state["phases"] = rng.uniform(0.0, 2.0 * np.pi, size=n_components)
    return state


def count_frequencies(n_components: int, features: Features) -> int:
    """m of D outputs: half of them for paired features."""
    return n_components // 2 if features == "paired" else n_components


def refuse_odd(n_components: int, features: Features) -> None:
    """Paired features come in twos: refuse an odd n_components."""
    if features == "paired" and n_components % 2:
        neighbours = f"{n_components - 1} or {n_components + 1}" if n_components > 1 else "2"
        refuse_parameter("n_components", f"an even number for paired features ({neighbours})", n_components)


class CosineTransform(Transform):
    """paired: √(1/m) [cos ω_j·x, sin ω_j·x]; offset: √(2/m) cos(ω_j·x + b_j); x warped first if asked."""

    def __init__(self, state: State, dtype: np.dtype[Any], warp: Warp | None = None) -> None:
        self._frequencies = np.ascontiguousarray(state["frequencies"], dtype=dtype)
        m, self.n_features_in = self._frequencies.shape
        phases = state.get("phases")
        self._phases = None if phases is None else phases.astype(dtype)
        self.n_features_out = 2 * m if phases is None else m
        self._scale = dtype.type(np.sqrt((1.0 if phases is None else 2.0) / m))
        self._dtype = dtype
        self._warp = warp

    def scratch(self, rows: int) -> tuple[Array, ...]:
        m, d = self._frequencies.shape
        warped = np.empty((rows, d if self._warp else 0), dtype=self._dtype)
        return np.empty(rows * m, dtype=self._dtype), warped

    def apply(self, X: Floats, out: Floats, scratch: tuple[Array, ...]) -> None:
        flat, warped = scratch
        if self._warp is not None:
            self._warp(X, warped)
            X = warped
        m = len(self._frequencies)
        # The angles take the memory order of the output, so that no pass over memory transposes.
        feature_major = out.strides[0] < out.strides[1]
        angles = flat.reshape(m, len(X)).T if feature_major else flat.reshape(len(X), m)
        np.matmul(X, self._frequencies.T, out=angles)
        if self._phases is None:
            np.cos(angles, out=out[:, :m])
            np.sin(angles, out=out[:, m:])
        else:
            angles += self._phases
            np.cos(angles, out=out)
        out *= self._scale


def log_warp(skewedness: float) -> Warp:
    """log(x + c); an entry at or below −c is refused."""

    def warp(X: Floats, out: Floats) -> None:
        np.add(X, X.dtype.type(skewedness), out=out)
        if out.min() <= 0.0:
            row, column = (int(i) for i in np.argwhere(out <= 0.0)[0])
            raise ValueRefused(
                row, column, f"expected a value above -skewedness = {-skewedness:g}, got {X[row, column]:g}"
            )
        np.log(out, out=out)

    return warp
