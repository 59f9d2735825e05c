"""The maps that are compared in memory."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.kernel_approximation import (
    AdditiveChi2Sampler,
    Nystroem,
    PolynomialCountSketch,
    RBFSampler,
    SkewedChi2Sampler,
)
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection

import kafeat
from speed import references as ref

Maker = Callable[[np.ndarray], Any]
PLAIN = {"frequencies": "iid", "weights": "uniform"}
"""The choice of frequencies does not change the time of a dense transform, and these take no time to fit."""


@dataclass(frozen=True)
class Case:
    """A map, its peers, and what both should compute. Ours takes some 0.1 s or more for `rows` rows."""

    name: str
    target: float
    d: int
    rows: int
    step: Mapping[str, object]
    peers: Mapping[str, Maker]
    reference: ref.Reference
    tolerance: float
    positive: bool = False
    dtype: str = "float32"
    closer: float | None = None
    """The tolerance of our side, where it is known to be nearer."""


def sklearn(estimator: Any) -> dict[str, Maker]:
    return {f"{type(estimator).__name__}": estimator.fit}


def fourier(
    d: int, D: int, rows: int, target: float, *, dtype: str = "float32", structured: bool = False
) -> Case:
    gamma = 0.5 / d
    step = {"kind": "fourier", "gamma": gamma, "n_components": D, **PLAIN}
    name = f"fourier d = {d:,}, D = {D:,}"
    peers = sklearn(RBFSampler(gamma=gamma, n_components=D, random_state=0))
    if structured:
        name += ", structured"
        if d >= 4096:
            dense = step
            peers = {"our own dense form": lambda X: kafeat.fit({"steps": [dict(dense)]}, X)}
        step = {**step, "frequencies": "structured"}
    if dtype == "float64":
        name = f"{name}, float64"
    # Var 2cos(ω·x + b)cos(ω·y + b) ≤ 3/2, and that of paired features is lower: twice the standard error.
    tolerance = 2.0 * np.sqrt(1.5 / D)
    return Case(name, target, d, rows, step, peers, ref.kernel(ref.rbf(gamma)), tolerance, dtype=dtype)


def nystroem(kernel: str, d: int, m: int, rows: int, target: float) -> Case:
    gamma = {"rbf": 0.5, "chi2": 1.0, "laplacian": 0.5}[kernel] / d
    step = {"kind": "nystroem", "kernel": kernel, "gamma": gamma, "n_components": m, "landmarks": "uniform"}
    peer = Nystroem(kernel=kernel, gamma=gamma, n_components=m, random_state=0)
    peers = sklearn(peer)
    if kernel != "rbf":  # products have all threads anyway
        peers["Nystroem, n_jobs = -1"] = Nystroem(**(peer.get_params() | {"n_jobs": -1})).fit
    exact = {"rbf": ref.rbf, "chi2": ref.chi2, "laplacian": ref.laplacian}[kernel](gamma)
    name = f"nystroem {kernel} m = {m:,}, d = {d}"
    # The same formula on both sides: what differs is rounding, enlarged by the inverse.
    return Case(name, target, d, rows, step, peers, ref.of_landmarks(exact), 0.01, positive=kernel == "chi2")


def tensor_sketch(d: int, rows: int, target: float, D: int = 1024) -> Case:
    step = {"kind": "tensor_sketch", "degree": 3, "gamma": 1.0 / d, "coef0": 1.0, "n_components": D}
    peer = PolynomialCountSketch(degree=3, gamma=1.0 / d, coef0=1.0, n_components=D, random_state=0)
    tolerance = np.sqrt((3**3 - 1) / D)  # Pham & Pagh's bound of the variance
    exact = ref.kernel(ref.polynomial(1.0 / d, 3))
    name = f"tensor_sketch degree 3, D = {D:,}, d = {d}"
    return Case(name, target, d, rows, step, sklearn(peer), exact, tolerance)


def homogeneous(d: int, rows: int, target: float) -> Case:
    step = {"kind": "homogeneous", "order": 1}
    exact = ref.kernel(ref.additive_chi2)
    peers = sklearn(AdditiveChi2Sampler(sample_steps=2))
    name = f"homogeneous chi2 order 1, d = {d}"
    # Ours is off by 0.001 on these rows, the sampled spectrum by 0.056.
    return Case(name, target, d, rows, step, peers, exact, 0.07, positive=True, closer=0.005)


def skewed(d: int, rows: int, target: float, D: int = 1024) -> Case:
    step = {"kind": "skewed", "skewedness": 1.0, "n_components": D, **PLAIN}
    peers = sklearn(SkewedChi2Sampler(skewedness=1.0, n_components=D, random_state=0))
    tolerance = 2.0 * np.sqrt(1.5 / D)
    exact = ref.kernel(ref.skewed_chi2)
    name = f"skewed chi2 D = {D:,}, d = {d}"
    return Case(name, target, d, rows, step, peers, exact, tolerance, positive=True)


def projection(matrix: str, d: int, rows: int, target: float, D: int = 1024) -> Case:
    step = {"kind": "projection", "matrix": matrix, "n_components": D}
    peer = {"gaussian": GaussianRandomProjection, "sparse": SparseRandomProjection}[matrix]
    tolerance = 2.0 * np.sqrt(2.0 / D)  # Var z(x)·z(y) ≤ 2‖x‖²‖y‖²/D
    name = f"projection {matrix} D = {D:,}, d = {d}"
    peers = sklearn(peer(n_components=D, random_state=0))
    return Case(name, target, d, rows, step, peers, ref.kernel(ref.linear), tolerance)


CASES = (
    fourier(54, 1024, 200_000, 4.5),
    fourier(54, 4096, 100_000, 4.5),
    fourier(784, 1024, 100_000, 2.5),
    fourier(784, 4096, 60_000, 6.0, structured=True),
    fourier(54, 1024, 150_000, 15.0, dtype="float64"),
    nystroem("rbf", 54, 1024, 100_000, 2.5),
    nystroem("rbf", 784, 1024, 60_000, 3.0),
    nystroem("chi2", 54, 256, 100_000, 10.0),
    nystroem("chi2", 784, 256, 4_096, 10.0),
    nystroem("laplacian", 54, 256, 100_000, 5.0),
    nystroem("laplacian", 784, 256, 8_192, 5.0),
    tensor_sketch(54, 100_000, 14.0),
    tensor_sketch(784, 10_000, 25.0),
    homogeneous(54, 500_000, 10.0),
    homogeneous(784, 40_000, 15.0),
    skewed(54, 200_000, 4.5),
    projection("gaussian", 784, 100_000, 0.98),
    projection("sparse", 784, 80_000, 10.0),
    fourier(4096, 8192, 20_000, 6.0, structured=True),
)
