"""Quantile against scikit-learn."""

import numpy as np
import pytest
from sklearn.preprocessing import QuantileTransformer

import kafeat

DRAWS = np.random.default_rng(0)
NORMAL = DRAWS.lognormal(size=800), DRAWS.integers(0, 5, 800), DRAWS.standard_normal(800)
X = np.column_stack([*NORMAL, np.full(800, 7.0)])
NEW = np.vstack([X[::3], X[::5] + 0.3, X[:1] - 1e9, X[:1] + 1e9])
INNER = (X.min(axis=0) < NEW) & (X.max(axis=0) > NEW)
INNER[:, 1] = False  # among equal values, theirs has quantiles that miss them by rounding


def transform(new: np.ndarray, **parameters: object) -> np.ndarray:
    return kafeat.fit({"dtype": "float64", "steps": [{"kind": "quantile", **parameters}]}, X).transform(new)


@pytest.mark.parametrize("n_quantiles", [2, 50, 800])
def test_levels_are_scikit_learns(n_quantiles: int) -> None:
    """But for ties at the ends, which get the middle of their step here, and 0 or 1 there."""
    theirs = QuantileTransformer(n_quantiles=n_quantiles).fit(X).transform(NEW)
    ours = transform(NEW, output="uniform", n_quantiles=n_quantiles)
    np.testing.assert_allclose(ours[INNER], theirs[INNER], rtol=0, atol=1e-9)
    assert (ours[X.min(axis=0) > NEW] == 0.0).all()
    assert (ours[X.max(axis=0) < NEW] == 1.0).all()


def test_normal_values_are_scikit_learns_within_the_clip() -> None:
    theirs = QuantileTransformer(n_quantiles=800, output_distribution="normal").fit(X).transform(NEW)
    # theirs moves levels by 1e-7 on the way
    ours = transform(NEW, clip=3.0, n_quantiles=800)
    np.testing.assert_allclose(ours[INNER], np.clip(theirs, -3.0, 3.0)[INNER], rtol=0, atol=1e-4)


def test_order_is_kept_and_ties_get_the_middle_of_their_step() -> None:
    Z = transform(X, output="uniform", n_quantiles=800)
    assert (np.diff(Z[np.argsort(X[:, 0]), 0]) >= 0.0).all()
    ascending = np.sort(X[:, 1])
    first, stop = (np.searchsorted(ascending, X[:, 1], side) for side in ("left", "right"))
    np.testing.assert_allclose(Z[:, 1], (first + stop - 1) / 2 / 799, rtol=0, atol=1e-12)


def test_a_column_of_one_value_becomes_0() -> None:
    assert (transform(X)[:, 3] == 0.0).all()
