"""The least cost of a job in memory on this machine: its parts timed alone, on all cores, and added.

A part is an operation on a tile, made once for every thread with buffers of its own. Products take the better of two
ways: row tiles on threads of ours with one BLAS thread each, or one product on all threads of BLAS. Filling includes
the pages that the system hands out for the output.
"""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from threadpoolctl import threadpool_limits

TILE = 256
_TILES = 16
"""Tiles of input that a product goes around: more than the cache holds."""
Operation = Callable[[int], object]
Part = Callable[[np.dtype], Operation]
"""dtype → the work on tile number i."""


@dataclass(frozen=True)
class Limit:
    """The parts of a job, and the width of its output."""

    parts: Sequence[Part]
    width: int

    def seconds(self, rows: int, dtype: np.dtype, cores: int) -> dict[str, float]:
        """Seconds of all parts, and of each."""
        found: dict[str, float] = {}
        with threadpool_limits(1, user_api="blas"):
            for part in self.parts:
                tiled = in_tiles(part, rows, dtype, cores)
                found[str(part)] = min(tiled, part.whole(rows, dtype)) if isinstance(part, Product) else tiled
        found["filling"] = filling(rows, self.width, dtype, cores)
        return {"seconds": sum(found.values()), **found}


def in_tiles(part: Part, rows: int, dtype: np.dtype, cores: int) -> float:
    """Seconds of `cores` threads that share the tiles."""
    return _together(lambda _: part(dtype), range(-(-rows // TILE)), cores)


def filling(rows: int, width: int, dtype: np.dtype, cores: int) -> float:
    """Seconds to write every number of a fresh array, tile by tile."""
    out: list[np.ndarray] = []

    def make(which: int) -> Operation:
        if which == 0:
            out.append(np.empty((rows, width), dtype=dtype))
        return lambda i: out[0][i * TILE : (i + 1) * TILE].fill(1.0)

    return _together(make, range(-(-rows // TILE)), cores)


def _together(make: Callable[[int], Operation], tiles: range, cores: int) -> float:
    operations = [make(which) for which in range(cores)]

    def work(which: int) -> None:
        barrier.wait()
        for i in tiles[which::cores]:
            operations[which](i)

    barrier = threading.Barrier(cores + 1)
    threads = [threading.Thread(target=work, args=(which,)) for which in range(cores)]
    for thread in threads:
        thread.start()
    barrier.wait()
    started = time.perf_counter()
    for thread in threads:
        thread.join()
    return time.perf_counter() - started


@dataclass(frozen=True)
class Product:
    """(rows, k) times (k, n)."""

    k: int
    n: int

    def __call__(self, dtype: np.dtype) -> Operation:
        X, W, out = self._arrays(dtype, TILE)
        return lambda i: np.matmul(X[i % _TILES * TILE :][:TILE], W, out=out)

    def whole(self, rows: int, dtype: np.dtype) -> float:
        """Seconds in slabs of many tiles, all threads on each."""
        X, W, out = self._arrays(dtype, TILE * _TILES)
        with threadpool_limits(None, user_api="blas"):
            started = time.perf_counter()
            for start in range(0, rows, len(X)):
                np.matmul(X[: rows - start], W, out=out[: rows - start])
            return time.perf_counter() - started

    def _arrays(self, dtype: np.dtype, height: int) -> tuple[np.ndarray, ...]:
        return (
            np.ones((TILE * _TILES, self.k), dtype),
            np.ones((self.n, self.k), dtype).T,
            np.empty((height, self.n), dtype),
        )
