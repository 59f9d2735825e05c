"""Cosines and sines of tiles by passes: NumPy's in float32; in float64 two polynomials, several times as fast."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from kafeat.contract.tile import is_feature_major, shaped
from kafeat.types import Floats

# Numbers that one pass works on: with its buffers it stays in the second-level cache.
_PASS = 16_384
# sin(πt)/t and cos(πt) in powers of t², |t| ≤ ½: the polynomials through Chebyshev's points, computed with 50 digits.
# They are off by less than 5e-18.
_SINE = (
    3.141592653589793, -5.167712780049969, 2.5501640398773007, -0.5992645293189447, 0.0821458865731029,
    -0.007370430505916944, 0.0004662998161898394, -2.1903497074626018e-05, 7.697826768224191e-07,
)  # fmt: skip
_COSINE = (
    1.0, -4.934802200544676, 4.058712126416497, -1.335262768843447, 0.23533063012953284,
    -0.025806888737002202, 0.0019295562724817132, -0.00010456655338748738, 4.149564353942586e-06,
)  # fmt: skip


class CosineBuffers(NamedTuple):
    """Flat buffers of `_PASS` numbers: whole turns that become the rest t, t², and two for sine and cosine."""

    turns: Floats
    square: Floats
    sine: Floats
    cosine: Floats


class CosinePasses:
    """cos and sin of 2-D tiles in `dtype`, written to their places.

    In float64, x/2π less the nearest whole number is t, |t| ≤ ½; with c = cos πt and s = sin πt by polynomials in t²,
    sin x = 2sc and cos x = 1 − 2s². The error is that of x/2π, eps·|x|, which x itself has, and some 10⁻¹⁵. A number
    beyond 2⁵³ has no fraction left: its cosine is 1, as good as any.
    """

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self._by_numpy = dtype != np.float64

    def scratch(self) -> CosineBuffers | None:
        """The buffers of one worker; none where NumPy computes."""
        return None if self._by_numpy else CosineBuffers(*(np.empty(_PASS) for _ in range(4)))

    def pair(self, angles: Floats, cos: Floats, sin: Floats, scratch: CosineBuffers | None) -> None:
        """Both, of angles (rows, m) in one memory order."""
        if scratch is None:
            np.cos(angles, out=cos)
            np.sin(angles, out=sin)
            return
        for part in _parts(angles):
            turns, square, s, c = _reduced(angles[part], scratch)
            _horner(_SINE, square, s)
            s *= turns
            _horner(_COSINE, square, c)
            np.multiply(c, s, out=sin[part])
            sin[part] *= 2.0
            np.multiply(s, s, out=s)
            s *= -2.0
            np.add(s, 1.0, out=cos[part])

    def cosine(self, angles: Floats, cos: Floats, scratch: CosineBuffers | None) -> None:
        """The cosine alone."""
        if scratch is None:
            np.cos(angles, out=cos)
            return
        for part in _parts(angles):
            turns, square, s, _ = _reduced(angles[part], scratch)
            _horner(_SINE, square, s)
            s *= turns
            np.multiply(s, s, out=s)
            s *= -2.0
            np.add(s, 1.0, out=cos[part])


def _parts(angles: Floats) -> list[tuple[slice, ...]]:
    """Slices of at most `_PASS` numbers that lie together in memory."""
    outer = int(is_feature_major(angles))
    length, width = angles.shape[outer], angles.shape[1 - outer]
    height, wide = max(1, _PASS // max(1, width)), min(width, _PASS)
    return [
        (slice(j, j + wide), slice(i, i + height)) if outer else (slice(i, i + height), slice(j, j + wide))
        for i in range(0, length, height)
        for j in range(0, width, wide)
    ]


def _reduced(angles: Floats, scratch: CosineBuffers) -> CosineBuffers:
    """t and t², and two free buffers, in the memory order of the angles."""
    feature_major = is_feature_major(angles)
    buffers = CosineBuffers(*(shaped(flat, angles.shape, feature_major) for flat in scratch))
    turns, square = buffers.turns, buffers.square
    np.multiply(angles, 0.5 / np.pi, out=turns)
    np.rint(turns, out=square)
    np.subtract(turns, square, out=turns)
    np.multiply(turns, turns, out=square)
    return buffers


def _horner(coefficients: tuple[float, ...], x: Floats, out: Floats) -> None:
    np.multiply(x, coefficients[-1], out=out)
    for coefficient in coefficients[-2:0:-1]:
        out += coefficient
        out *= x
    out += coefficients[0]
