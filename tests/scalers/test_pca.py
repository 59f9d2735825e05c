"""Principal components against scikit-learn's, and kernel PCA behind a map."""

import numpy as np
import pytest
from sklearn.decomposition import PCA, KernelPCA

import kafeat
from kafeat.contract.kernel_inputs import Coordinates
from kafeat.contract.step import Sample
from kafeat.errors import DataError
from kafeat.maths.kernel import KernelParameters
from kafeat.maths.kernels.histograms import HellingerKernel
from kafeat.scalers.pca import Pca
from tests.recipes import fit_step

EPS = np.finfo(float).eps


def aligned(Z: np.ndarray, W: np.ndarray) -> np.ndarray:
    """W with the signs of its columns as in Z."""
    return W * np.sign((Z * W).sum(axis=0))


@pytest.mark.parametrize("whiten", [False, True])
@pytest.mark.parametrize("k", [1, 5, 20])
def test_is_scikit_learns(features, digits: np.ndarray, k: int, whiten: bool) -> None:
    Z = features(Pca(n_components=k, whiten=whiten), digits)
    peer = PCA(n_components=k, whiten=whiten, svd_solver="full").fit_transform(digits)
    # A vector moves by the rounding of the sample over the gap of the squared singular values, which is above
    # 1e-3 of the largest among the first 21 of the digits: some 1e4 eps relative to the largest entry.
    np.testing.assert_allclose(Z, aligned(Z, peer), rtol=0, atol=1e5 * EPS * np.abs(peer).max())


def test_all_components_keep_distances(features) -> None:
    X = np.random.default_rng(0).normal(size=(50, 7)) + 1e6
    Z = features(Pca(), X)
    assert Z.shape == (50, 7)
    for one, other in ((0, 1), (3, 40)):
        # a rotation of numbers that are stored to 1e6 eps
        want = np.linalg.norm(X[one] - X[other])
        assert np.linalg.norm(Z[one] - Z[other]) == pytest.approx(want, abs=100 * 1e6 * EPS)


def test_behind_an_exact_map_it_is_kernel_pca(digits: np.ndarray) -> None:
    """√x is the exact map of the Hellinger kernel, so its components are those of kernel PCA."""
    X = digits[:300]
    steps = [{"kind": "homogeneous", "kernel": "hellinger"}, {"kind": "pca", "n_components": 6}]
    Z = kafeat.fit({"dtype": "float64", "steps": steps}, X).transform(X)
    K = HellingerKernel().gram(Coordinates(X, X), KernelParameters()).dots
    peer = KernelPCA(n_components=6, kernel="precomputed").fit_transform(K)
    # eigenvalue gaps here are above 1e-2 of the largest; K is a sum of 64 rounded terms
    np.testing.assert_allclose(Z, aligned(Z, peer), rtol=0, atol=1e6 * EPS * np.abs(peer).max())


def test_behind_an_approximate_map_it_comes_near_kernel_pca(digits: np.ndarray) -> None:
    X, gamma = digits[:200] / 16.0, 0.05
    fourier = {"kind": "fourier", "n_components": 8192, "frequencies": "iid", "weights": "uniform"}
    steps = [{**fourier, "gamma": gamma}, {"kind": "pca", "n_components": 3}]
    fm = kafeat.fit({"dtype": "float64", "steps": steps}, X)
    Z = fm.transform(X)
    peer = KernelPCA(n_components=3, kernel="rbf", gamma=gamma).fit_transform(X)
    # Davis-Kahan: the sine of the angle is at most ‖K̂ − K‖₂/gap. Entries of K̂ have standard error √(1/2m) ≤ 1/90 for
    # m = 4,096 frequencies, so ‖K̂ − K‖_F ≲ 200/90 ≈ 2.2, while the first eigenvalues lie more than 8 apart.
    for z, w in zip(Z.T, aligned(Z, peer).T, strict=True):
        assert z @ w / (np.linalg.norm(z) * np.linalg.norm(w)) > np.sqrt(1 - (2.2 / 8) ** 2)
    assert "steps[1] (pca) needs coordinates" in fm.chain.exact_kernel_note()


def test_more_components_than_there_are_is_refused() -> None:
    with pytest.raises(DataError, match="pca: n_components: expected at most 3, the smaller of 5 rows and 3"):
        fit_step(np.random.default_rng(0).normal(size=(5, 3)), "pca", dtype="float32", n_components=4)


def test_the_largest_entry_of_a_component_is_positive() -> None:
    X = np.random.default_rng(0).standard_normal((50, 6)) * np.arange(1.0, 7.0)
    for rows in (X, -X):
        V = Pca().fit(Sample(rows, None, 50), np.random.default_rng(0))["components"]
        assert (V[np.arange(6), np.abs(V).argmax(axis=1)] > 0).all()


@pytest.mark.parametrize(("n", "offset"), [(40, 0.0), (40, 1e6), (5000, 0.0)])
@pytest.mark.parametrize("whiten", [False, True])
def test_directions_that_are_rounding_alone_are_0(features, n: int, offset: float, whiten: bool) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 3)) @ rng.standard_normal((3, 9)) + offset
    Z = features(Pca(whiten=whiten), X)
    assert not Z[:, 3:].any()
    # and one that is small beside the others, but far above their rounding, is not
    X += 1e-3 * np.outer(rng.standard_normal(n), rng.standard_normal(9))
    assert np.ptp(features(Pca(whiten=whiten), X)[:, 3]) > 1e-3
