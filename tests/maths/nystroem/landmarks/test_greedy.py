"""Greedy pivots are those of a fully pivoted Cholesky factorisation."""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dpstrf

from kafeat.maths.nystroem.landmarks.greedy import greedy
from tests.maths.nystroem.landmarks.views import rbf_view


def test_pivots_are_lapacks() -> None:
    X = np.random.default_rng(0).standard_normal((60, 3))
    # no two diagonal entries alike, so that no tie decides
    scale = 1 + 0.5 * np.random.default_rng(1).random(60)
    view = rbf_view(X)
    K = view.kernel(np.arange(60), np.arange(60)) * scale[:, None] * scale
    from tests.maths.nystroem.landmarks.views import kernel_view

    _, pivots, _, _ = dpstrf(K)
    found = greedy(kernel_view(X, K), 25, np.random.default_rng(0))
    np.testing.assert_array_equal(found, pivots[:25] - 1)
