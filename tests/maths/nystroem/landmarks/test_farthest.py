"""Farthest points, against the definition."""

from __future__ import annotations

import numpy as np
import pytest

from kafeat.maths.nystroem.landmarks.farthest import farthest
from tests.maths.nystroem.landmarks.views import kernel_view, rbf_view


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_each_is_the_farthest_of_those_before(kernel: str) -> None:
    X = np.random.default_rng(0).standard_normal((80, 2))
    view = rbf_view(X) if kernel == "rbf" else kernel_view(X, X @ X.T)
    found = farthest(view, 15, np.random.default_rng(3))
    for step in range(1, 15):
        # the kernel distance 2 − 2k of rbf grows with the Euclidean one; that of x·y, whose diagonal varies, is it
        nearest = np.sqrt(((X[:, None] - X[found[:step]][None]) ** 2).sum(-1)).min(axis=1)
        assert found[step] == nearest.argmax()


def test_covers_within_twice_the_best_radius() -> None:
    # Gonzalez: every m + 1 landmarks are at least the radius apart, so that no m balls of half of it cover them
    X = np.random.default_rng(0).standard_normal((200, 2))
    found = farthest(rbf_view(X), 11, np.random.default_rng(0))
    apart = np.sqrt(((X[found][:, None] - X[found][None]) ** 2).sum(-1))[np.triu_indices(11, 1)].min()
    radius = np.sqrt(((X[:, None] - X[found[:10]][None]) ** 2).sum(-1)).min(axis=1).max()
    assert apart == radius
