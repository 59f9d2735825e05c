"""TensorSketch against its definition: a count sketch of the outer product."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.metrics.pairwise import polynomial_kernel

import kafeat
from kafeat.chain.chain import FittedStep
from kafeat.contract.step import Sample
from kafeat.errors import ConfigError, DataError
from kafeat.samplers.tensor_sketch import TensorSketch, fast_length

EPS = np.finfo(float).eps


def rows(n: int, d: int) -> np.ndarray:
    return np.random.default_rng(7).standard_normal((n, d))


def real_fourier_basis(D: int) -> np.ndarray:
    """Rows 1, then √2 cos and −√2 sin of 2πkt/D in turn, over √D: an orthonormal basis."""
    angles = 2 * np.pi * np.outer(np.arange(1, D // 2 + 1), np.arange(D)) / D
    waves = np.sqrt(2) * np.stack([np.cos(angles), -np.sin(angles)], axis=1).reshape(-1, D)
    if D % 2 == 0:  # the last cosine alternates between 1 and −1, and its sine is 0
        waves = np.vstack([waves[:-2], waves[-2:-1] / np.sqrt(2)])
    return np.vstack([np.ones((1, D)), waves]) / np.sqrt(D)


@pytest.mark.parametrize("D", [1, 2, 7, 16])
def test_the_basis_of_the_next_test_is_orthonormal(D: int) -> None:
    basis = real_fourier_basis(D)
    assert basis.shape == (D, D)
    np.testing.assert_allclose(basis @ basis.T, np.eye(D), atol=D * 8 * EPS)


@pytest.mark.parametrize("domain", ["frequency", "time"])
@pytest.mark.parametrize("coef0", [0.0, 0.7])
@pytest.mark.parametrize("D", [1, 2, 7, 16])
@pytest.mark.parametrize("degree", [1, 2, 3])
def test_is_the_hashed_outer_product(features, degree: int, D: int, coef0: float, domain: str) -> None:
    """Of the entries that no other output carries: those of the constant alone, and perhaps of one input."""
    X, gamma = rows(5, 3), 0.4
    step = TensorSketch(degree=degree, gamma=gamma, coef0=coef0, n_components=D, domain=domain)
    state = step.fit(Sample(X, None, 5), np.random.default_rng(3))
    buckets, signs = state["buckets"], state["signs"]
    assert buckets.shape == signs.shape == (degree, 4)
    u = np.hstack([np.sqrt(gamma) * X, np.full((5, 1), np.sqrt(coef0))])
    carried, linear = np.empty((5, 0)), False
    if coef0 > 0 and D > 1:
        carried, linear = np.full((5, 1), coef0 ** (degree / 2)), bool(state["linear"])
        if linear:
            carried = np.hstack([carried, np.sqrt(degree * coef0 ** (degree - 1) * gamma) * X])
    assert linear == (coef0 > 0 and D > 4)  # small rows: the linear part is most of the kernel
    least, D = carried.shape[1] and 1 + linear, D - carried.shape[1]
    # In frequency, D numbers of the spectrum of a power of two of buckets, without frequency 0 if possible.
    length = D if domain == "time" else int(state["length"])
    without_0 = D % 2 == 0 and length > D
    assert domain == "time" or (length >= D + without_0 and length in (8, 16))
    want = np.zeros((5, length))
    for index in product(range(4), repeat=degree):
        if sum(i < 3 for i in index) < least:
            continue
        bucket = sum(int(buckets[q, i]) for q, i in enumerate(index)) % length
        sign = np.prod([int(signs[q, i]) for q, i in enumerate(index)])
        want[:, bucket] += sign * np.prod([u[:, i] for i in index], axis=0)
    if domain == "frequency":
        # each frequency is a mean of D numbers instead of `length`
        taken = real_fourier_basis(length)[without_0 : D + without_0]
        want = want @ taken.T * np.sqrt(length / D)
    want = np.hstack([carried, want])
    # Fourier transforms keep rounding at eps log D of the norm of what they transform: Π‖sketch‖ ≤ (√4‖u‖)^p, twice
    scale = (2 * np.linalg.norm(u, axis=1).max()) ** degree
    np.testing.assert_allclose(features(step, X, 3), want, rtol=0, atol=8 * degree * EPS * scale)


@pytest.mark.one_core
@pytest.mark.parametrize("coef0", [0.0, 1.0])
@pytest.mark.parametrize("degree", [2, 3])
def test_unbiased(features, degree: int, coef0: float) -> None:
    X, seeds = rows(5, 4), 800
    step = TensorSketch(degree=degree, gamma=0.5, coef0=coef0, n_components=32)
    Z = np.stack([features(step, X, seed) for seed in range(seeds)])
    K = Z @ Z.transpose(0, 2, 1)
    exact = polynomial_kernel(X, degree=degree, gamma=0.5, coef0=coef0)
    # 5 standard errors of the mean of 800 draws, in each of 15 entries
    assert (np.abs(K.mean(axis=0) - exact) <= 5 * K.std(axis=0, ddof=1) / np.sqrt(seeds)).all()


@pytest.mark.one_core
@pytest.mark.parametrize("degree", [2, 3])
def test_variance_is_within_the_bound(features, degree: int) -> None:
    X, seeds, D = rows(2, 4), 800, 32
    Z = np.stack(
        [features(TensorSketch(degree=degree, gamma=0.5, n_components=D), X, s) for s in range(seeds)]
    )
    k = np.einsum("sd,sd->s", Z[:, 0], Z[:, 1])
    norms = np.prod(0.5 * (X**2).sum(axis=1) + 1.0)
    # Pham & Pagh 2013 by way of Avron et al. 2014, lemma 2: Var ≤ (3^p − 1)/2·(‖u‖‖v‖)^{2p}·2/D
    assert k.var(ddof=1) <= (3**degree - 1) / 2 * norms**degree * 2 / D


def test_error_halves_when_outputs_quadruple(features) -> None:
    X, seeds = rows(8, 6), 200
    exact = polynomial_kernel(X, degree=2, gamma=0.2, coef0=1.0)
    few, many = (
        np.sqrt(
            np.mean(
                [
                    ((Z := features(TensorSketch(gamma=0.2, n_components=D), X, s)) @ Z.T - exact) ** 2
                    for s in range(seeds)
                ]
            )
        )
        for D in (64, 256)
    )
    # The variance of collisions is proportional to 1/D. A mean square over S draws, kurtosis at most 9 (products
    # of two sketches), has the relative standard error √(8/S) = 0.2, its root 0.1, the ratio 0.14: 4 of them.
    assert few / many == pytest.approx(2.0, rel=4 * 0.14)


def test_gamma_auto_is_one_over_d_of_the_input() -> None:
    X = rows(10, 5)
    for rule, want in (("auto", 1 / 5), ("scale", 1 / (5 * X.var())), (0.25, 0.25)):
        step = {"kind": "tensor_sketch", "gamma": rule, "n_components": 4}
        fm = kafeat.fit({"dtype": "float64", "steps": [step]}, X)
        np.testing.assert_allclose(
            fm.exact_kernel(X), polynomial_kernel(X, degree=2, gamma=want, coef0=1), rtol=1e-13
        )


def test_float32_stays_float32(features) -> None:
    # peers compute it in float64 and return that
    Z = features(TensorSketch(n_components=16, degree=3), rows(4, 3).astype(np.float32))
    assert Z.dtype == np.float32


@pytest.mark.parametrize(
    ("name", "value"), [("coef0", -0.1), ("gamma", 0.0), ("gamma", "median"), ("degree", 0), ("degree", 2.0)]
)
def test_bounds(name: str, value: object) -> None:
    # a negative c₀ gives NaN elsewhere
    with pytest.raises(ConfigError, match=rf"steps\[0\]\.{name}: expected "):
        kafeat.fit({"steps": [{"kind": "tensor_sketch", name: value}]}, rows(4, 2))


@pytest.mark.slow
def test_variance_of_degree_1_is_that_of_a_count_sketch(features) -> None:
    X, D, seeds = np.random.default_rng(7).standard_normal((2, 5)), 16, 4000
    step = TensorSketch(degree=1, gamma=1.0, coef0=0.0, n_components=D)
    Z = np.stack([features(step, X, seed) for seed in range(seeds)])
    squares = np.einsum("ij,ij->i", Z[:, 0], Z[:, 1])
    u, v = X
    # Two entries meet with probability 1/D: Σ_{i≠j} (u_i²v_j² + u_i v_i u_j v_j)/D (Weinberger et al. 2009, lemma 2)
    want = ((u @ u) * (v @ v) + (u @ v) ** 2 - 2 * (u**2 @ v**2)) / D
    squares = (squares - u @ v) ** 2
    # 5 standard errors of a mean
    assert abs(squares.mean() - want) <= 5 * squares.std() / np.sqrt(seeds)


def test_sketches_that_no_machine_could_hold_are_refused() -> None:
    with pytest.raises(
        ConfigError, match=r"n_components: expected at most 156,250 for the degree 64, got 1000000"
    ):
        kafeat.fit(
            {"steps": [{"kind": "tensor_sketch", "degree": 64, "n_components": 10**6}]}, np.ones((5, 3))
        )


@pytest.mark.parametrize("domain", ["frequency", "time"])
@pytest.mark.parametrize("form", ["dense", "sparse rows"])
def test_transforms_that_overflow_are_refused(domain: str, form: str) -> None:
    step = {"kind": "tensor_sketch", "n_components": 8, "degree": 1, "gamma": 1.0, "domain": domain}
    X = np.zeros((5, 300))
    X[:, 0] = 1.0
    fm = kafeat.fit({"steps": [step]}, X)
    X[3, :8] = 3e38
    with pytest.raises(DataError, match=r"row 4 \(index 3\): expected features that float32 can hold, got "):
        fm.transform(csr_array(X) if form == "sparse rows" else X)


@pytest.mark.parametrize("kind", ["tensor_sketch", "tensor_srht"])
@pytest.mark.parametrize("coef0", [0.5, 2.0])
def test_a_kernel_that_is_nearly_linear_is_nearly_exact(kind: str, coef0: float) -> None:
    """With small rows what is drawn is the rest, of which x and y each have a share of (γ x·y)² and less."""
    X = rows(50, 6)
    X *= 0.1 / np.linalg.norm(X, axis=1, keepdims=True)
    step = {"kind": kind, "degree": 3, "gamma": 1.0, "coef0": coef0, "n_components": 64}
    fm = kafeat.fit({"dtype": "float64", "steps": [step]}, X)
    assert fm.chain.steps[0].state["linear"]
    K, Z = fm.exact_kernel(X), fm.transform(X)
    dots = X @ X.T
    np.testing.assert_allclose(Z[:, :7] @ Z[:, :7].T, coef0**3 + 3 * coef0**2 * dots, rtol=1e-12)
    rest = np.diag(3 * coef0 * dots**2 + dots**3)
    # the bound of the variance above, for the rest alone, and five deviations
    most = 5 * np.sqrt((3**3 - 1) / 2 * np.outer(rest, rest) * 2 / 56)
    assert (np.abs(K - Z @ Z.T) <= most).all()
    assert most.max() < 0.05 * K.min()


def test_the_linear_part_is_drawn_where_it_is_little() -> None:
    step = {"kind": "tensor_sketch", "gamma": 1.0, "n_components": 16}
    for size, linear in ((0.1, True), (10.0, False)):
        assert kafeat.fit({"steps": [step]}, size * rows(50, 6)).chain.steps[0].state["linear"] == linear
    # without c₀ there is nothing to carry, and with 7 outputs nothing would be left for the rest
    assert "linear" not in kafeat.fit({"steps": [{**step, "coef0": 0.0}]}, rows(50, 6)).chain.steps[0].state
    few = kafeat.fit({"steps": [{**step, "n_components": 7}]}, 0.1 * rows(50, 6))
    assert not few.chain.steps[0].state["linear"]


def test_sketches_have_lengths_with_fast_transforms() -> None:
    assert [fast_length(n) for n in (1, 2, 11, 13, 57, 959, 1024, 1023, 1009)] == [
        1, 2, 11, 12, 56, 945, 1024, 1008, 1008
    ]  # fmt: skip
    step = {"kind": "tensor_sketch", "n_components": 64, "gamma": 1.0}
    for domain, outputs in (("time", 63), ("frequency", 64)):
        Z = kafeat.fit({"steps": [{**step, "domain": domain}]}, 0.1 * rows(50, 6)).transform(
            0.1 * rows(50, 6)
        )
        assert np.abs(Z).max(axis=0).nonzero()[0].tolist() == list(range(outputs))


@pytest.mark.parametrize("kind", ["tensor_sketch", "tensor_srht"])
def test_a_state_that_carries_more_than_there_are_outputs_is_refused(kind: str) -> None:
    fm = kafeat.fit({"steps": [{"kind": kind, "n_components": 6}]}, rows(9, 6))
    step, state = fm.chain.steps[0].step, {**fm.chain.steps[0].state, "linear": np.array(True)}
    with pytest.raises(ValueError, match=r"state\.(linear|turns|rows): expected"):
        FittedStep.checked(step, state, 6)
