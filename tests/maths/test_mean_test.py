"""The test of two means against laws that are known, and traces against the covariance that they are of."""

from itertools import permutations

import numpy as np
import pytest
from scipy.stats import binomtest, chi2

from kafeat.runtime.column_ranges import p_value, statistic, traces

EPS = np.finfo(float).eps


@pytest.mark.parametrize(("scale", "degrees"), [(1.0, 1), (0.3, 1), (2.0, 7)])
def test_equal_eigenvalues_give_a_chi_squared_law(scale: float, degrees: int) -> None:
    """Σ λ χ²₁ over equal λ is λχ² with as many degrees: three cumulants leave no choice."""
    of_covariance = degrees * scale ** np.arange(1, 4)
    for value in (0.1, 1.0, 5.0, 30.0):
        want = chi2.sf(value / scale, degrees)
        # the difference from the least value is rounded to eps of it, times the slope of the law's logarithm
        assert p_value(value, of_covariance) == pytest.approx(want, rel=1e-12)


def test_a_mixture_is_near_its_law() -> None:
    spectrum = 0.7 ** np.arange(12)
    of_covariance = np.array([(spectrum**k).sum() for k in (1, 2, 3)])
    rng = np.random.default_rng(0)
    draws = np.sort((rng.standard_normal((200_000, 12)) ** 2) @ spectrum)
    for p in (0.2, 0.05, 0.01, 0.001):
        got = p_value(draws[int(len(draws) * (1.0 - p))], of_covariance)
        # 5 standard errors of a share of the draws, and a twentieth that three cumulants may leave
        assert got == pytest.approx(p, rel=5 * np.sqrt((1 - p) / (p * len(draws))) + 0.05)


def test_traces_are_sums_over_all_different_pairs() -> None:
    X = np.random.default_rng(0).standard_normal((8, 3))
    rng = np.random.default_rng(1)
    order = np.random.default_rng(1).permutation(8)
    U = (X[order[:4]] - X[order[4:]]) / np.sqrt(2.0)
    want = [
        np.mean([u @ u for u in U]),
        np.mean([(u @ v) ** 2 for u, v in permutations(U, 2)]),
        np.mean([(u @ v) * (v @ w) * (w @ u) for u, v, w in permutations(U, 3)]),
    ]
    got = traces(X, rng)
    assert got[:2] == pytest.approx(want[:2], rel=64 * EPS)
    # a covariance has tr² Σ²/tr Σ ≤ tr Σ³ ≤ (tr Σ²)^{3/2}
    least, most = want[1] ** 2 / want[0], want[1] ** 1.5
    assert got[2] == pytest.approx(min(max(want[2], least), most), rel=64 * EPS)


@pytest.mark.parametrize("rows", [1, 2, 3, 5])
def test_few_rows_and_constant_features_are_fine(rows: int) -> None:
    rng = np.random.default_rng(0)
    of_few = traces(rng.standard_normal((rows, 3)), rng)
    assert 0.0 <= p_value(1.0, of_few) <= 1.0
    constant = traces(np.ones((rows, 3)), rng)
    assert p_value(0.0, constant) == 1.0
    assert p_value(1.0, constant) == 0.0


def test_p_values_are_uniform_under_the_null() -> None:
    rng = np.random.default_rng(3)
    spectrum = 1.0 / np.arange(1, 9)

    def one(shift: float) -> float:
        x, y = (rng.standard_normal((n, 8)) * np.sqrt(spectrum) for n in (300, 200))
        return p_value(statistic(x.mean(axis=0) - y.mean(axis=0) - shift, 300, 200), traces(x, rng))

    p = np.array([one(0.0) for _ in range(400)])
    for level in (0.05, 0.2, 0.5, 0.8):
        # a fair coin of that level: this happens by chance once in 10⁴ seeds, and the seed is fixed
        assert binomtest(int((p < level).sum()), len(p), level).pvalue > 1e-4
    assert max(one(0.3) for _ in range(20)) < 0.01
