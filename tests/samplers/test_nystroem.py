"""Nyström features: what they are exact about, and where peers go wrong."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.kernel_approximation import Nystroem as Peer
from sklearn.metrics import pairwise

import kafeat
from kafeat.errors import ConfigError, DataError
from kafeat.feature_map import FeatureMap

EPS = np.finfo(float).eps
KERNELS = ["rbf", "laplacian", "polynomial", "linear", "cosine", "chi2", "additive_chi2"]
GAMMA = 0.3


def rows(n: int, d: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).exponential(size=(n, d))


def fit(X: np.ndarray, dtype: str = "float64", **parameters: object) -> FeatureMap:
    step = {"kind": "nystroem", "gamma": GAMMA, **parameters}
    return kafeat.fit({"dtype": dtype, "seed": 1, "steps": [step]}, X)


def rounding(K: np.ndarray, eps: float = EPS) -> float:
    """A bound on the rounding of an entry of ZZᵀ = K_n K⁺ K_nᵀ, K the kernel of m landmarks.

    Entries of K_n are off by η ≤ 16 eps max K (a product, a sum of d ≤ 20 terms, an exponential); each is met by a
    column of K⁺K_nᵀ, of norm 1 or less on the landmarks, twice: 2√m·max(norm)·η. The second product is off by
    √m eps times |K_n||P|, P = VΛ^{−½} of norm λ_min^{−½}, and meets features of norm √max K.
    """
    values = np.linalg.eigvalsh(K)
    m, top = len(K), np.abs(K).max()
    kept = values[values > 1e-10 * values[-1]]
    return float(eps * top * (32 * np.sqrt(m) + 4 * m * np.sqrt(top / kept[0])))


@pytest.mark.parametrize("kernel", KERNELS)
def test_exact_on_the_landmarks(kernel: str) -> None:
    X = rows(40, 6)
    fm = fit(X, kernel=kernel, n_components=40)
    Z, K = fm.transform(X), fm.exact_kernel(X)
    np.testing.assert_allclose(Z @ Z.T, K, rtol=0, atol=rounding(K))


@pytest.mark.parametrize("kernel", KERNELS)
def test_what_is_left_of_the_kernel_is_positive_semidefinite(kernel: str) -> None:
    X = rows(120, 6)
    fm = fit(X, kernel=kernel, n_components=20)
    Z, K = fm.transform(X), fm.exact_kernel(X)
    L = fm.chain.steps[0].state["landmarks"]
    # K − ZZᵀ is a Schur complement; n entries off by `rounding` move an eigenvalue by n times that at most
    assert np.linalg.eigvalsh(K - Z @ Z.T)[0] >= -120 * rounding(fm.exact_kernel(L)) - 120 * EPS * K.max() * 8


def peers_kernel(kernel: str, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    match kernel:
        case "additive_chi2":
            # theirs is −Σ(x − y)²/(x + y), and (x − y)² = (x + y)² − 4xy
            total = X.sum(axis=1)[:, None] + Y.sum(axis=1)[None, :]
            return (total + pairwise.additive_chi2_kernel(X, Y)) / 2
        case "cosine" | "linear":
            return pairwise.pairwise_kernels(X, Y, metric=kernel)
        case "polynomial":
            return pairwise.polynomial_kernel(X, Y, degree=3, gamma=GAMMA, coef0=0.5)
        case "sigmoid":
            return pairwise.sigmoid_kernel(X, Y, gamma=GAMMA, coef0=0.5)
    return pairwise.pairwise_kernels(X, Y, metric=kernel, gamma=GAMMA)


@pytest.mark.parametrize("kernel", [*KERNELS, "sigmoid"])
def test_exact_kernel_is_scikit_learns(kernel: str) -> None:
    X, Y = rows(20, 6), rows(30, 6, 1)
    fm = fit(X, kernel=kernel, n_components=2, degree=3, coef0=0.5, clip_negative=True)
    want = peers_kernel(kernel, X, Y)
    # d = 6 terms, their sum and a power: some 30 roundings of the largest term
    np.testing.assert_allclose(fm.exact_kernel(X, Y), want, rtol=0, atol=30 * EPS * np.abs(want).max())


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "chi2", "polynomial", "linear", "cosine"])
def test_agrees_with_scikit_learn_on_the_same_landmarks(kernel: str) -> None:
    X, d = rows(60, 8), 8
    peer = Peer(
        kernel=kernel,
        gamma=None if kernel in ("linear", "cosine") else GAMMA,
        degree=2 if kernel == "polynomial" else None,
        coef0=1.0 if kernel == "polynomial" else None,
        n_components=d - 2,
        random_state=0,
    ).fit(X)
    fm = fit(peer.components_, kernel=kernel, n_components=d - 2)
    ours, theirs = fm.transform(X), peer.transform(X)
    K = fm.exact_kernel(X)
    # both within their rounding of K_n K⁺ K_nᵀ, entries of which are at most max K
    landmarks = fm.exact_kernel(peer.components_)
    tolerance = 2 * rounding(landmarks) * K.max() / landmarks.max() * np.sqrt(np.linalg.cond(landmarks))
    np.testing.assert_allclose(ours @ ours.T, theirs @ theirs.T, rtol=0, atol=tolerance)


def test_duplicated_landmarks_are_harmless_in_float32() -> None:
    # scikit-learn is off by 0.54 here: its eigenvalue floor of 1e-12 is absolute, below float32's noise
    X = np.repeat(rows(20, 5).astype(np.float32), 3, axis=0)
    for kernel in ("rbf", "laplacian", "chi2", "additive_chi2"):
        fm = fit(X, "float32", kernel=kernel, n_components=60)
        Z, K = fm.transform(X).astype(float), fm.exact_kernel(X)
        assert fm.chain.steps[0].state["rank"] == 20
        assert not Z[:, 20:].any()
        tolerance = rounding(K, float(np.finfo(np.float32).eps))
        assert tolerance < 0.05 * K.max()
        np.testing.assert_allclose(Z @ Z.T, K, rtol=0, atol=tolerance)


def test_fewer_components_keep_the_leading_ones() -> None:
    X = rows(50, 6)
    fm = fit(X, n_landmarks=50, n_components=7)
    Z, K = fm.transform(X), fm.exact_kernel(X)
    values, vectors = np.linalg.eigh(K)
    best = (vectors[:, -7:] * values[-7:]) @ vectors[:, -7:].T
    assert Z.shape == (50, 7)
    np.testing.assert_allclose(Z @ Z.T, best, rtol=0, atol=rounding(best + 1e-3 * np.eye(50)) * 50)
    # Eckart & Young: the error in the Frobenius norm is that of the eigenvalues left out
    left = np.sqrt((values[:-7] ** 2).sum())
    assert np.linalg.norm(K - Z @ Z.T) == pytest.approx(left, rel=1e-9)
    # and the columns come in the order of their eigenvalues
    np.testing.assert_allclose((Z**2).sum(axis=0), values[::-1][:7], rtol=1e-9)


def test_more_landmarks_than_components_are_more_accurate() -> None:
    X = rows(300, 6)
    error = [
        np.linalg.norm(fm.exact_kernel(X) - (Z := fm.transform(X)) @ Z.T)
        for fm in (fit(X, n_landmarks=m, n_components=20) for m in (20, 200))
    ]
    assert error[1] < error[0]


def test_columns_beyond_the_rank_are_zero() -> None:
    fm = fit(rows(60, 5), kernel="linear", n_components=20)
    Z = fm.transform(rows(30, 5, 1))
    assert fm.chain.steps[0].state["rank"] == 5
    assert Z.shape == (30, 20)
    assert (np.abs(Z[:, :5]).max(axis=0) > 0).all()
    assert not Z[:, 5:].any()


def test_rcond_cuts_small_eigenvalues() -> None:
    X = rows(60, 5)
    values = np.linalg.eigvalsh(pairwise.rbf_kernel(X, gamma=GAMMA))
    fm = fit(X, n_components=60, rcond=1e-2)
    assert fm.chain.steps[0].state["rank"] == np.count_nonzero(values > 1e-2 * values[-1])


def test_landmarks_are_different_rows_of_the_sample() -> None:
    X = rows(30, 4)
    landmarks = fit(X, n_components=12, landmarks="uniform").chain.steps[0].state["landmarks"]
    found = {row.tobytes() for row in landmarks}
    assert len(found) == 12
    assert found <= {row.tobytes() for row in X}


def test_too_few_rows_are_refused() -> None:
    with pytest.raises(
        DataError, match=r"nystroem: expected at least as many rows as landmarks \(11\), got 10: lower"
    ):
        fit(rows(10, 3), n_components=5, n_landmarks=11)


def test_fewer_landmarks_than_components_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"n_landmarks: expected at least n_components = 5, got 4"):
        fit(rows(10, 3), n_components=5, n_landmarks=4)


def test_an_indefinite_kernel_is_refused_and_clip_negative_overrides() -> None:
    X = rows(40, 4) * 3 - 3
    with pytest.raises(
        DataError, match=r"kernel sigmoid: expected a positive semi-definite .* clip_negative: true"
    ):
        fit(X, kernel="sigmoid", n_components=40)
    fm = fit(X, kernel="sigmoid", n_components=40, clip_negative=True)
    Z, K = fm.transform(X), fm.exact_kernel(X)
    values, vectors = np.linalg.eigh(K)
    kept = values > 1e-10 * values[-1]
    positive = (vectors[:, kept] * values[kept]) @ vectors[:, kept].T
    # on the landmarks the map is the positive part of the kernel matrix
    small = values[kept].min()
    np.testing.assert_allclose(Z @ Z.T, positive, rtol=0, atol=EPS * 40 * 40 * np.sqrt(values[-1] / small))


def test_negative_values_are_refused_by_histogram_kernels() -> None:
    X = rows(20, 4)
    for kernel in ("chi2", "additive_chi2"):
        fm = fit(X, kernel=kernel, n_components=5)
        bad = X.copy()
        bad[3, 1] = -1.0
        with pytest.raises(
            DataError, match=r"row 4 \(index 3\), column 'c1': expected a value of at least 0, got -1"
        ):
            fm.transform(bad)
        with pytest.raises(DataError, match=r"column 'c1': expected a value of at least 0, got -1"):
            fit(bad, kernel=kernel, n_components=5)


def test_overflow_is_an_error_and_no_warning() -> None:
    fm = fit(rows(20, 4).astype(np.float32), "float32", kernel="polynomial", n_components=5)
    X = rows(300, 4).astype(np.float32)
    X[280] = 1e30
    with pytest.raises(
        DataError,
        match=r"row 281 \(index 280\): expected features that float32 can hold, got .*dtype: float64",
    ):
        fm.transform(X)


def test_a_kernel_matrix_that_overflows_is_an_error() -> None:
    X = rows(20, 4) * 1e200
    with pytest.raises(
        DataError, match=r"nystroem: kernel polynomial: expected .*, got inf: scale the input"
    ):
        fit(X, kernel="polynomial", n_components=5)
