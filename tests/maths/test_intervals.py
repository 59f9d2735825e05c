"""Quantiles of the scores of held-out rows, and the coverage that follows from them."""

import numpy as np
import pytest
from scipy.stats import mannwhitneyu, norm

from kafeat.errors import UsageError
from kafeat.maths.calibration import binned, calibration_p_value
from kafeat.maths.intervals import Intervals, compared_errors, compared_scores, coverage_p_value, thinned
from kafeat.maths.ridge import NormalEquations

LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99)


def scores(n, seed=0, k=1):
    return np.random.default_rng(seed).exponential(size=(n, k))


def of(kept):
    return Intervals(kept, np.array([0.1, 0.01]))


@pytest.mark.parametrize("n", [99, 100, 1234])
def test_the_quantile_is_the_one_that_a_hand_would_count(n):
    found = of(thinned(scores(n, k=2)))
    for level in LEVELS:
        by_hand = np.sort(scores(n, k=2), axis=0)[-(-(n + 1) * round(100 * level) // 100) - 1]
        np.testing.assert_array_equal(found.quantiles(level), by_hand)


@pytest.mark.parametrize(("n", "most"), [(10_001, 10_000), (25_000, 10_000), (500, 37), (40, 40), (3, 2)])
def test_thinned_scores_cover_as_much_as_all_of_them_and_hardly_more(n, most):
    every = np.sort(scores(n)[:, 0])
    kept = of(thinned(scores(n), most=most))
    assert len(kept.scores) == min(n, most)
    for level in LEVELS:
        wanted = int(np.ceil((n + 1) * level - 1e-9))
        if level <= len(kept.scores) / (len(kept.scores) + 1):
            rank = np.searchsorted(every, kept.quantiles(level)[0]) + 1
            assert wanted <= rank <= wanted + (n + 1) / (most + 1) + 1


def test_a_weight_of_two_counts_as_the_row_twice():
    once, weights = scores(300), np.random.default_rng(1).integers(1, 4, 300)
    weighted = thinned(once, weights.astype(float))[:, 0]
    repeated = np.sort(np.repeat(once[:, 0], weights))
    # both have the same distribution function; the effective number of rows rounds it to one of its steps
    for level in LEVELS:
        rank = np.searchsorted(repeated, weighted[int(np.ceil(len(weighted) * level)) - 1], side="right")
        assert abs(rank / len(repeated) - level) <= 2.0 / len(weighted) + 3.0 / len(repeated)


@pytest.mark.parametrize("level", LEVELS)
def test_exchangeable_rows_are_covered_as_often_as_is_said(level):
    # The rank of a new score among n + 1 is uniform, so its coverage is ⌈(n+1)·level⌉/(n+1): 1,000 draws of it.
    n, draws = 60, 1_000
    rng = np.random.default_rng(2)
    every = rng.exponential(size=(draws, n + 1))
    q = np.array([of(thinned(row[:-1, None])).quantiles(min(level, n / (n + 1)))[0] for row in every])
    expected = np.ceil((n + 1) * min(level, n / (n + 1)) - 1e-9) / (n + 1)
    error = np.sqrt(expected * (1.0 - expected) / draws)
    assert abs((every[:, -1] <= q).mean() - expected) <= 4.0 * error + 1e-12


def test_a_level_that_the_rows_cannot_tell_is_refused():
    found = of(thinned(scores(20)))
    assert found.quantiles(20 / 21) == scores(20).max()
    told = r"at most 0\.9523, as the model knows the errors of 20 held-out rows"
    with pytest.raises(UsageError, match=told):
        found.quantiles(0.96)
    for level in (0.0, 1.0, -1.0, float("nan")):
        with pytest.raises(UsageError, match="between 0 and 1"):
            found.quantiles(level)


def test_sets_hold_the_likeliest_class_and_all_that_are_likely_enough():
    found = of(np.array([[0.1], [0.3], [0.6]]))
    p = np.array([[0.35, 0.25, 0.4], [0.05, 0.9, 0.05], [0.4, 0.5, 0.1]])
    assert found.sets(p, 0.75).tolist() == [[False, False, True], [False, True, False], [True, True, False]]
    assert found.sets(p, 0.25).tolist() == [[False, False, True], [False, True, False], [False, True, False]]


@pytest.mark.parametrize("weighted", [False, True])
def test_a_row_that_is_left_out_is_predicted_as_by_a_fit_without_it(weighted):
    rng = np.random.default_rng(3)
    Z, Y = rng.standard_normal((60, 7)) + 5.0, rng.standard_normal((60, 2))
    weights = rng.uniform(0.5, 2.0, 60) if weighted else None
    parts = np.arange(60) % 3
    ridge = NormalEquations(7, 2)
    ridge.add_blocks(Z, Y, parts, weights)
    found = ridge.held_out(0.01, Z, Y, parts, weights)
    penalty = ridge.model_of(0.01).penalty
    for i in (0, 17, 59):
        rest = np.arange(60) != i
        w = np.ones(59) if weights is None else weights[rest]
        z, y = Z[rest] - w @ Z[rest] / w.sum(), Y[rest] - w @ Y[rest] / w.sum()
        slopes = np.linalg.solve((z * w[:, None]).T @ z + penalty * np.eye(7), (z * w[:, None]).T @ y)
        by_hand = w @ Y[rest] / w.sum() + (Z[i] - w @ Z[rest] / w.sum()) @ slopes
        # centred sums of 60 rows about a point near the mean lose at most three digits
        np.testing.assert_allclose(found[i], by_hand, rtol=0.0, atol=1e-10)


def test_the_test_of_coverage_counts_the_ranks_of_new_scores():
    # Of n + 2 exchangeable scores, two are new. Both lie above the r-th of the n others with the probability that both
    # have one of the n + 2 − r largest ranks, of which r-th and above among the n are the others.
    n, draws, rng = 19, 40_000, np.random.default_rng(3)
    every = rng.random((draws, n + 2))
    q = np.sort(every[:, :n], axis=1)[:, 15]  # the 16th: 80 % of 20
    covered = (every[:, n:] <= q[:, None]).sum(axis=1)
    for count in (0, 1):
        share = (covered <= count).mean()
        error = np.sqrt(share * (1.0 - share) / draws)
        assert abs(coverage_p_value(count, 2, 0.8, n) - share) <= 4.0 * error
    assert coverage_p_value(2, 2, 0.8, n) == pytest.approx(1.0)


def test_larger_errors_have_a_small_p_value():
    errors = np.random.default_rng(4).exponential(size=2000)
    of_fit = np.array([1.0, 1.0 / 5000])
    assert compared_errors(errors, of_fit) > 0.01
    assert compared_errors(1.2 * errors, of_fit) < 1e-6
    z = (errors.mean() - 1.0) / np.sqrt(errors.var() / 2000 + 1.0 / 5000)
    assert compared_errors(errors, of_fit) == pytest.approx(norm.sf(z), rel=1e-9)
    assert compared_errors(np.ones(3), np.array([1.0, 0.0])) == 1.0


def test_ranks_are_compared_as_scipy_does_it():
    here, of_fit = scores(300, 1, 2), np.sort(scores(500, 2, 2), axis=0)
    by_scipy = [mannwhitneyu(a, b, alternative="greater", use_continuity=False).pvalue
                for a, b in zip(here.T, of_fit.T, strict=True)]  # fmt: skip
    assert compared_scores(here[:, :1], of_fit[:, :1]) == pytest.approx(by_scipy[0], rel=1e-9)
    assert compared_scores(here, of_fit) == pytest.approx(min(1.0, 2.0 * min(by_scipy)), rel=1e-9)
    assert compared_scores(1.4 * here, of_fit) < 1e-4


def test_scores_of_new_rows_are_their_errors_by_the_sizes_of_the_intervals():
    found = of(thinned(scores(99)))
    sizes, errors = scores(50, 3) + 0.1, scores(50, 4)
    half = sizes * found.quantiles(0.8)
    np.testing.assert_allclose(found.scores_of(errors, 0.8, np.stack([-half, half], axis=2)), errors / sizes)
    none = np.zeros((2, 1, 2))
    assert found.scores_of(np.array([[0.0], [0.5]]), 0.8, none).tolist() == [[0.0], [np.inf]]


@pytest.mark.parametrize(("of_fit", "here"), [(1000, 1000), (2000, 300), (300, 5000)])
@pytest.mark.parametrize("power", [1.0, 1.8], ids=["calibrated", "too-sure"])
def test_the_same_calibration_seldom_has_a_small_p_value_and_a_worse_one_has(of_fit, here, power):
    rng, p_values, worse = np.random.default_rng(5), [], []

    def rows(n, power):
        p = rng.dirichlet(np.ones(3), n)
        classes = (p.cumsum(axis=1)[:, :-1] < rng.random((n, 1))).sum(axis=1)
        p **= power
        return p / p.sum(axis=1, keepdims=True), classes

    for _ in range(40):
        known = binned(*rows(of_fit, power))
        p_values.append(calibration_p_value(*rows(here, power), known))
        worse.append(calibration_p_value(*rows(here, 4.0 * power), known))
    # 40 draws of a level of 5 % give more than 7 once in 1,400
    assert np.sum(np.array(p_values) < 0.05) <= 7
    assert np.mean(np.array(worse) < 0.05) > 0.8
