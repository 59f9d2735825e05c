"""Frequency laws against SciPy's distributions and against the kernels that they belong to (Bochner)."""

import numpy as np
import pytest
from scipy import stats

from kafeat.contract.kernel_inputs import Coordinates
from kafeat.errors import DataError
from kafeat.maths.fourier import spectra
from kafeat.maths.kernel import KernelParameters, ShiftInvariantKernel
from kafeat.maths.kernels import find_kernel, kernel_names
from kafeat.maths.kernels.shift_invariant import SkewedChi2Kernel, SkewedIntersectionKernel

EPS = np.finfo(float).eps
U = np.concatenate([[2.0**-54, 1e-12, 1e-3], np.linspace(0.01, 0.99, 99), [1 - 1e-3, 1 - 2.0**-53]])

INVERSES = {
    "cauchy": (spectra.inverse_cauchy, stats.cauchy.ppf),
    "laplace": (spectra.inverse_laplace, stats.laplace.ppf),
    # the density sech(πω) is that of SciPy's sech(x)/π at x = πω
    "sech": (spectra.inverse_sech, lambda u: stats.hypsecant.ppf(u) / np.pi),
}


@pytest.mark.parametrize("name", INVERSES)
def test_inverse_cdfs_are_scipys(name: str) -> None:
    ours, theirs = INVERSES[name]
    got = ours(U)
    assert np.isfinite(got).all()
    assert (np.diff(got) > 0).all()
    # near its ends an inverse turns an eps of u into eps/(1 − u) of itself: compared where u has digits to give
    inner = slice(2, -1)
    np.testing.assert_allclose(got[inner], theirs(U)[inner], rtol=1e-12, atol=4 * EPS)


GAMMA = 0.4
CASES = {
    **{name: (name, KernelParameters(gamma=GAMMA)) for name in kernel_names(ShiftInvariantKernel)},
    "matern 1/2": ("matern", KernelParameters(gamma=GAMMA, nu=0.5)),
    "matern 4": ("matern", KernelParameters(gamma=GAMMA, nu=4.0)),
    "rational_quadratic 1/2": ("rational_quadratic", KernelParameters(gamma=GAMMA, alpha=0.5)),
    "rational_quadratic 3": ("rational_quadratic", KernelParameters(gamma=GAMMA, alpha=3.0)),
}
LAWS = {case: find_kernel(name).frequencies(p) for case, (name, p) in CASES.items()}
ISOTROPIC = [name for name, law in LAWS.items() if isinstance(law, spectra.IsotropicDistribution)]


def differences() -> np.ndarray:
    rng = np.random.default_rng(5)
    return rng.standard_normal((12, 3)) * np.linspace(0.1, 3, 12)[:, None]


def exact(name: str, delta: np.ndarray) -> np.ndarray:
    kernel, p = CASES[name]
    return find_kernel(kernel).gram(Coordinates(delta, np.zeros((1, 3))), p).dots[:, 0]


@pytest.mark.parametrize("name", LAWS)
def test_characteristic_function_is_the_kernel(name: str) -> None:
    law, delta = LAWS[name], differences()
    waves = np.cos(delta @ law.iid(100_000, 3, np.random.default_rng(1)).T)
    # 5 standard errors of a mean of 100,000 cosines: at most 0.016, and missed with probability 6e-7 in each of 12
    error = np.abs(waves.mean(axis=1) - exact(name, delta))
    assert (error <= 5 * waves.std(axis=1) / np.sqrt(waves.shape[1])).all()


@pytest.mark.sampled
@pytest.mark.parametrize("m", [2, 3])
@pytest.mark.parametrize("name", ISOTROPIC)
def test_orthogonal_draws_have_the_same_characteristic_function(name: str, m: int) -> None:
    law, delta, rng = LAWS[name], differences(), np.random.default_rng(2)
    # draws are independent of each other: the standard error is that of their means
    blocks = np.stack([np.cos(delta @ law.orthogonal(m, 3, rng).T).mean(axis=1) for _ in range(500)])
    error = np.abs(blocks.mean(axis=0) - exact(name, delta))
    assert (error <= 5 * blocks.std(axis=0) / np.sqrt(len(blocks))).all()


@pytest.mark.parametrize("kernel", [SkewedChi2Kernel(), SkewedIntersectionKernel()])
def test_skewed_laws_on_logarithms(kernel: SkewedChi2Kernel | SkewedIntersectionKernel) -> None:
    law = kernel.log_frequencies()
    rng, c = np.random.default_rng(3), 0.5
    x, y = rng.exponential(size=(10, 3)), np.ones((1, 3))
    delta = np.log(x + c) - np.log(y + c)
    waves = np.cos(delta @ law.iid(100_000, 3, rng).T)
    want = kernel.gram(Coordinates(x, y), KernelParameters(skewedness=c)).dots[:, 0]
    np.testing.assert_allclose(law.kernel(delta), want, rtol=1e-10)
    assert (np.abs(waves.mean(axis=1) - want) <= 5 * waves.std(axis=1) / np.sqrt(waves.shape[1])).all()


@pytest.mark.parametrize("name", ISOTROPIC)
def test_fewer_orthogonal_frequencies_are_the_first_of_more(name: str) -> None:
    law, d = LAWS[name], 300
    few, many = (law.orthogonal(m, d, np.random.default_rng(4)) for m in (7, 200))
    # LAPACK rounds products of 300 numbers in another order where there are more columns
    np.testing.assert_allclose(few, many[:7], rtol=0, atol=d * EPS * np.abs(few).max())
    unit = many / np.linalg.norm(many, axis=1, keepdims=True)
    np.testing.assert_allclose(unit @ unit.T, np.eye(200), rtol=0, atol=10 * d * EPS)


def test_radii_of_wide_rows_are_as_even_as_strata() -> None:
    law, d, m = LAWS["rbf"], 1000, 64
    squares = np.linalg.norm(law.orthogonal(m, d, np.random.default_rng(0)), axis=1) ** 2
    # one in each m-th of the law, as m is a power of two
    places = np.floor(m * stats.chi2.cdf(squares / (2.0 * GAMMA), d))
    np.testing.assert_array_equal(np.sort(places), np.arange(m))


@pytest.mark.parametrize("name", ISOTROPIC)
def test_radii_have_the_law_of_the_norms(name: str) -> None:
    law, m = LAWS[name], 4000
    radii = law.radii(m, 3, np.random.default_rng(0))
    norms = np.linalg.norm(law.iid(m, 3, np.random.default_rng(1)), axis=1)
    assert stats.ks_2samp(radii, norms).pvalue > 1e-6


def test_haar_matrices() -> None:
    rng, d, draws = np.random.default_rng(0), 4, 4000
    Q = np.stack([spectra.haar(d, rng) for _ in range(draws)])
    np.testing.assert_allclose(
        Q @ Q.transpose(0, 2, 1), np.broadcast_to(np.eye(d), Q.shape), rtol=0, atol=40 * EPS
    )
    # Of a Haar orthogonal matrix, E Q_ij = 0, E Q_ij² = 1/d and E (tr Q)² = 1; without the signs of R undone, Q_11
    # would have one sign. 5 standard errors each.
    for values, want in (
        (Q.reshape(draws, -1), 0.0),
        (Q.reshape(draws, -1) ** 2, 1 / d),
        (np.trace(Q, axis1=1, axis2=2)[:, None] ** 2, 1.0),
    ):
        assert (np.abs(values.mean(axis=0) - want) <= 5 * values.std(axis=0) / np.sqrt(draws)).all()
    # determinants of both signs, evenly
    assert abs(np.linalg.det(Q).mean()) <= 5 / np.sqrt(draws)


def test_uniform_numbers_at_both_ends_give_finite_frequencies() -> None:
    class Ends:
        def random(self, shape: tuple[int, int]) -> np.ndarray:
            return np.tile([0.0, 1 - 2.0**-53], shape)[:, : shape[1]]

    for law in (LAWS["laplacian"], LAWS["cauchy"], SkewedChi2Kernel().log_frequencies()):
        assert np.isfinite(law.iid(2, 2, Ends())).all()


@pytest.mark.parametrize("name", LAWS)
def test_the_kernel_of_a_law_is_the_exact_kernel(name: str) -> None:
    delta = differences()
    np.testing.assert_allclose(LAWS[name].kernel(delta), exact(name, delta), rtol=1e-10)


@pytest.mark.sampled
@pytest.mark.parametrize("name", LAWS)
def test_qmc_draws_have_the_same_characteristic_function(name: str) -> None:
    law, delta = LAWS[name], differences()
    # Independent scramblings of 64 points: the standard error is that of their means.
    runs = [np.cos(delta @ law.qmc(64, 3, np.random.default_rng(s)).T).mean(axis=1) for s in range(100)]
    error = np.abs(np.mean(runs, axis=0) - exact(name, delta))
    assert (error <= 5 * np.std(runs, axis=0) / np.sqrt(len(runs))).all()


def test_qmc_errs_less_than_independent_draws() -> None:
    law, delta = LAWS["rbf"], differences()
    want = law.kernel(delta)

    def error(draw) -> float:
        runs = [np.cos(delta @ draw(64, 3, np.random.default_rng(s)).T).mean(axis=1) for s in range(50)]
        return float(np.mean((np.array(runs) - want) ** 2))

    assert error(law.qmc) < 0.5 * error(law.iid)


def test_sobol_has_its_limit() -> None:
    with pytest.raises(DataError, match="frequencies: qmc: expected at most 21,201 inputs, got 30,000"):
        spectra.sobol(4, 30_000, np.random.default_rng(0))
