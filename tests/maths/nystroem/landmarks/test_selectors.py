"""Rules that every selector keeps to; the tests name none of them."""

import numpy as np
import pytest

from kafeat.maths.nystroem.landmarks import POINTS, SELECTORS
from kafeat.maths.nystroem.projection import trapezoid
from tests.maths.nystroem.landmarks.views import rbf_view

ROWS = [name for name in SELECTORS if name not in POINTS]


def sample(n: int = 90, d: int = 3, dtype: str = "float64") -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d)).astype(dtype)
    X.flags.writeable = False
    return X, np.where(X[:, 0] + 0.5 * rng.standard_normal(n) > 0, "yes", "no").astype(object)


def rows_of(found: np.ndarray, X: np.ndarray) -> np.ndarray:
    return X[found] if found.dtype.kind == "i" else found


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", SELECTORS)
def test_gives_m_landmarks_the_same_for_the_same_generator(name: str, dtype: str) -> None:
    X, label = sample(dtype=dtype)
    draws = [np.random.default_rng(seed) for seed in (1, 1, 2)]
    first, again, other = (SELECTORS[name](rbf_view(X, label=label), 20, rng) for rng in draws)
    assert first.tobytes() == again.tobytes()
    rows = rows_of(first, X)
    assert rows.shape == (20, 3)
    assert rows.dtype == dtype
    assert len(np.unique(rows, axis=0)) == 20
    if name != "greedy":  # which draws nothing
        assert first.tobytes() != other.tobytes()


@pytest.mark.parametrize("name", ROWS)
def test_rows_are_different_ones(name: str) -> None:
    X, label = sample()
    for m in (1, 2, 45, 89, 90):
        found = SELECTORS[name](rbf_view(X, label=label), m, np.random.default_rng(0))
        assert len(set(found.tolist())) == m
        assert 0 <= found.min() <= found.max() < 90


@pytest.mark.parametrize("name", SELECTORS)
def test_all_rows_are_all_rows(name: str) -> None:
    X, label = sample(30)
    found = rows_of(SELECTORS[name](rbf_view(X, label=label), 30, np.random.default_rng(0)), X)
    np.testing.assert_array_equal(np.sort(found, axis=0), np.sort(X, axis=0))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", SELECTORS)
def test_duplicates_do_not_stop_it(name: str, dtype: str) -> None:
    X, label = sample(12, dtype=dtype)
    X, label = np.repeat(X, 5, axis=0), np.repeat(label, 5)
    found = rows_of(SELECTORS[name](rbf_view(X, label=label), 30, np.random.default_rng(0)), X)
    assert found.shape == (30, 3)
    assert np.isfinite(found).all()
    same = np.zeros((60, 3), dtype=dtype)
    found = rows_of(SELECTORS[name](rbf_view(same, label=label), 30, np.random.default_rng(0)), same)
    assert not found.any()


@pytest.mark.parametrize("name", ["greedy", "farthest", "rpcholesky", "kmeans"])
def test_an_outlier_is_found_and_harms_nothing(name: str) -> None:
    X, label = sample()
    X = X.copy()
    X[7] = 1e12
    found = rows_of(SELECTORS[name](rbf_view(X, label=label), 40, np.random.default_rng(0)), X)
    near = found[np.abs(found).max(axis=1) < 10]
    assert len(near) == 39
    # every other row has a landmark within half of the spread
    others = np.delete(X, 7, axis=0)
    assert np.sqrt(((others[:, None] - near[None]) ** 2).sum(-1)).min(axis=1).max() < 1.5


EPS = np.finfo(float).eps


@pytest.mark.parametrize(("m", "rank"), [(8, 8), (8, 5), (1, 1)])
def test_a_trapezoid_has_the_same_products_and_zeros_above_its_diagonal(m: int, rank: int) -> None:
    P = np.random.default_rng(0).standard_normal((m, rank))
    T = trapezoid(P)
    assert T.shape == P.shape
    assert not np.triu(T, 1).any()
    assert (T.diagonal() >= 0.0).all()
    # a Householder factorization is backward stable: each entry of PPᵀ is off by a few eps·‖P‖²
    np.testing.assert_allclose(T @ T.T, P @ P.T, rtol=0, atol=20 * EPS * np.linalg.norm(P) ** 2)
