"""Random ReLU features against the integrals of Cho and Saul."""

import numpy as np
import pytest

from kafeat.contract.kernel_inputs import Coordinates
from kafeat.samplers.arc_cosine import ArcCosine
from tests.recipes import normal_rows as rows


def test_variance_of_pairs_is_less_by_the_square_of_the_kernel(features) -> None:
    X, seeds, D = rows(2, 4), 500, 16
    variances = {}
    for kind in ("plain", "paired"):
        step = ArcCosine(order=0, n_components=D, directions="iid", features=kind)
        Z = np.stack([features(step, X, seed) for seed in range(seeds)])
        variances[kind] = np.einsum("sd,sd->s", Z[:, 0], Z[:, 1]).var(ddof=1)
    k = 1 - np.arccos(X[0] @ X[1] / np.prod(np.linalg.norm(X, axis=1))) / np.pi
    # a product is 2/D with probability k/2; a pair of them gives 2/D with probability k, D/2 times
    want = {"plain": (2 * k - k * k) / D, "paired": 2 * (k - k * k) / D}
    for kind, value in variances.items():
        # relative standard error of a variance of nearly normal sums: √(2/S)
        assert value == pytest.approx(want[kind], rel=5 * np.sqrt(2 / seeds))


def test_a_row_of_zeros_has_the_kernel_of_its_features(features) -> None:
    X = np.vstack([np.zeros((1, 3)), rows(3, 3)])
    for order, want in ((0, 0.5), (1, 0.0)):
        step = ArcCosine(order=order, n_components=64)
        K = step.exact({}, Coordinates(X, X)).dots
        np.testing.assert_allclose(K[0], want, atol=1e-15)
        Z = features(step, X)
        np.testing.assert_allclose(Z[0] @ Z.T, want, rtol=1e-14)
