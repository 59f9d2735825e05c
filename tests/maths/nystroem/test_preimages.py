"""The way back from features against scikit-learn's ridge."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from kafeat.maths.nystroem.projection import learn_preimages
from kafeat.maths.ridge import HELD_OUT_PENALTIES

RNG = np.random.default_rng(0)
X = 2.0 + RNG.standard_normal((200, 3))
Z = np.hstack([np.cos(X), np.sin(X @ RNG.standard_normal((3, 4)))])


def test_it_is_ridge_with_the_penalty_that_fits_held_out_rows_best() -> None:
    calls: list[np.ndarray] = []

    def features(rows: np.ndarray) -> np.ndarray:
        calls.append(rows)
        return Z[rows]

    found = learn_preimages(X, features, np.random.default_rng(1))
    train, held = calls
    assert sorted([*train, *held]) == list(range(200))
    assert len(held) == 40
    unit = np.linalg.eigvalsh(np.cov(Z[train].T, bias=True) * len(train)).mean()
    peers = [Ridge(penalty * unit).fit(Z[train], X[train]) for penalty in HELD_OUT_PENALTIES]
    best = min(peers, key=lambda peer: ((peer.predict(Z[held]) - X[held]) ** 2).mean())
    # two ways to solve a system whose condition number is below 10⁶
    np.testing.assert_allclose(found["preimages"], best.coef_.T, rtol=0, atol=1e-8)
    np.testing.assert_allclose(found["preimage_of_0"], best.intercept_, rtol=0, atol=1e-8)


@pytest.mark.parametrize("rows", [1, 4])
def test_few_rows_judge_themselves(rows: int) -> None:
    found = learn_preimages(X[:rows], lambda chosen: Z[chosen], np.random.default_rng(0))
    assert found["preimages"].shape == (7, 3)
    assert all(np.isfinite(part).all() for part in found.values())
