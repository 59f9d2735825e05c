"""The other parts of jobs: functions of every entry, transforms, sparse products, distances."""

from dataclasses import dataclass

import numpy as np
import scipy.fft
import scipy.sparse
from scipy.spatial.distance import cdist

from speed.limits import TILE, Operation

_CACHED = 1 << 14
"""Numbers that a pass works on at a time: they stay in the second-level cache."""
_STRIP = 128
"""Rows of a transform or of a sparse product, which make their own output."""


@dataclass(frozen=True)
class Passes:
    """NumPy functions of `count` numbers a row, in cache."""

    names: tuple[str, ...]
    count: int

    def __call__(self, dtype: np.dtype) -> Operation:
        total = TILE * self.count
        size = min(total, _CACHED)
        x = np.random.default_rng(0).uniform(0.1, 6.0, size).astype(dtype)
        out, other = np.empty_like(x), np.ones_like(x)
        functions = [getattr(np, name) for name in self.names]

        def operation(_: int) -> None:
            for start in range(0, total, size):
                n = min(size, total - start)
                for function in functions:
                    if function.nin == 1:
                        function(x[:n], out=out[:n])
                    else:
                        function(x[:n], other[:n], out=out[:n])

        return operation


@dataclass(frozen=True)
class Cosines64:
    """Cosine and sine of `count` doubles a row, by the passes of kafeat/cosines.py: two polynomials of nine terms."""

    count: int

    def __call__(self, dtype: np.dtype) -> Operation:
        return Passes(("rint", *["multiply", "add"] * 18, *["multiply"] * 5), self.count)(dtype)


@dataclass(frozen=True)
class Hadamard:
    """`count` Walsh–Hadamard transforms of width p, each two products of the Kronecker factors."""

    p: int
    count: int

    def __call__(self, dtype: np.dtype) -> Operation:
        a = 1 << (self.p.bit_length() - 1) // 2
        b = self.p // a
        A, B = np.ones((a, a), dtype), np.ones((b, b), dtype)
        x, out = np.ones((a, b, TILE), dtype), np.empty((a, b, TILE), dtype)

        def operation(_: int) -> None:
            for _ in range(self.count):
                np.matmul(A, x.reshape(a, -1), out=out.reshape(a, -1))
                np.matmul(B, x, out=out)

        return operation


@dataclass(frozen=True)
class Transforms:
    """`count` real Fourier transforms of width D, some rows at a time."""

    D: int
    count: int

    def __call__(self, dtype: np.dtype) -> Operation:
        x = np.ones((_STRIP, self.D), dtype)

        def operation(_: int) -> None:
            for _ in range(self.count * (TILE // _STRIP)):
                scipy.fft.rfft(x, axis=1)

        return operation


@dataclass(frozen=True)
class Sparse:
    """A product of a sparse matrix (D, d) with `entries` entries and strips of rows."""

    D: int
    d: int
    entries: int
    times: int = 1

    def __call__(self, dtype: np.dtype) -> Operation:
        rng = np.random.default_rng(0)
        places = rng.integers(self.D, size=self.entries), np.arange(self.entries) % self.d
        matrix = scipy.sparse.csr_array((np.ones(self.entries, dtype), places), shape=(self.D, self.d))
        x = np.ones((self.d, _STRIP), dtype)

        def operation(_: int) -> None:
            for _ in range(self.times * (TILE // _STRIP)):
                matrix @ x

        return operation


@dataclass(frozen=True)
class Cityblock:
    """ℓ1 distances to m rows by SciPy's loop, in float64."""

    d: int
    m: int

    def __call__(self, dtype: np.dtype) -> Operation:
        x, L, out = np.ones((TILE, self.d)), np.ones((self.m, self.d)), np.empty((TILE, self.m))
        return lambda _: cdist(x, L, "cityblock", out=out)
