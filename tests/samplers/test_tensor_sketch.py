"""TensorSketch against its definition: a count sketch of the outer product."""

from itertools import product

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.metrics.pairwise import polynomial_kernel

import kafeat
from kafeat.contract.step import Sample
from kafeat.errors import DataError
from kafeat.samplers.tensor_sketch import TensorSketch
from tests.recipes import normal_rows as rows

EPS = np.finfo(float).eps


def real_fourier_basis(D: int) -> np.ndarray:
    """Rows 1, then √2 cos and −√2 sin of 2πkt/D in turn, over √D: an orthonormal basis."""
    angles = 2 * np.pi * np.outer(np.arange(1, D // 2 + 1), np.arange(D)) / D
    waves = np.sqrt(2) * np.stack([np.cos(angles), -np.sin(angles)], axis=1).reshape(-1, D)
    if D % 2 == 0:  # the last cosine alternates between 1 and −1, and its sine is 0
        waves = np.vstack([waves[:-2], waves[-2:-1] / np.sqrt(2)])
    return np.vstack([np.ones((1, D)), waves]) / np.sqrt(D)


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
@pytest.mark.parametrize("degree", [2, 3])
def test_variance_is_within_the_bound(features, degree: int) -> None:
    X, seeds, D = rows(2, 4), 200, 32
    step = TensorSketch(degree=degree, gamma=0.5, n_components=D)
    Z = np.stack([features(step, X, seed) for seed in range(seeds)])
    k = np.einsum("sd,sd->s", Z[:, 0], Z[:, 1])
    norms = np.prod(0.5 * (X**2).sum(axis=1) + 1.0)
    # Pham & Pagh 2013 by way of Avron et al. 2014, lemma 2: Var ≤ (3^p − 1)/2·(‖u‖‖v‖)^{2p}·2/D
    assert k.var(ddof=1) <= (3**degree - 1) / 2 * norms**degree * 2 / D


def test_gamma_auto_is_one_over_d_of_the_input() -> None:
    X = rows(10, 5)
    for rule, want in (("auto", 1 / 5), ("scale", 1 / (5 * X.var())), (0.25, 0.25)):
        step = {"kind": "tensor_sketch", "gamma": rule, "n_components": 4}
        fm = kafeat.fit({"dtype": "float64", "steps": [step]}, X)
        exact = polynomial_kernel(X, degree=2, gamma=want, coef0=1)
        np.testing.assert_allclose(fm.exact_kernel(X), exact, rtol=1e-13)


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
