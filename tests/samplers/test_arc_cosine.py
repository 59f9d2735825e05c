"""Random ReLU features against the integrals of Cho and Saul."""

from __future__ import annotations

import numpy as np
import pytest

import kafeat
from kafeat.contract.kernel_inputs import Coordinates
from kafeat.errors import ConfigError
from kafeat.samplers.arc_cosine import ArcCosine


def rows(n: int, d: int) -> np.ndarray:
    return np.random.default_rng(7).standard_normal((n, d))


def closed_form(X: np.ndarray, order: int) -> np.ndarray:
    lengths = np.linalg.norm(X, axis=1)
    outer = np.outer(lengths, lengths)
    theta = np.arccos(np.clip(X @ X.T / outer, -1, 1))
    return (
        1 - theta / np.pi if order == 0 else outer * (np.sin(theta) + (np.pi - theta) * np.cos(theta)) / np.pi
    )


@pytest.mark.parametrize("order", [0, 1])
def test_exact_kernel_is_the_closed_form(order: int) -> None:
    X = rows(20, 4)
    K = ArcCosine(order=order).exact({}, Coordinates(X, X)).dots
    # the arc cosine of the oracle loses half of the digits of an angle near 0, which are those of the diagonal
    np.testing.assert_allclose(K, closed_form(X, order), rtol=0, atol=1e-7)
    np.testing.assert_allclose(np.diag(K), np.ones(20) if order == 0 else (X**2).sum(1), rtol=1e-14)


@pytest.mark.parametrize("features_", ["paired", "plain"])
@pytest.mark.parametrize("directions", ["iid", "orthogonal"])
@pytest.mark.parametrize("order", [0, 1])
def test_unbiased(features, order: int, directions: str, features_: str) -> None:
    X, seeds = rows(5, 4), 600
    step = ArcCosine(order=order, n_components=32, directions=directions, features=features_)
    Z = np.stack([features(step, X, seed) for seed in range(seeds)])
    K = Z @ Z.transpose(0, 2, 1)
    exact = closed_form(X, order)
    # 5 standard errors of the mean over independent seeds, or rounding where nothing varies; 1e-7 is the oracle's
    errors = 5 * K.std(axis=0, ddof=1) / np.sqrt(seeds) + 1e-7
    assert (np.abs(K.mean(axis=0) - exact) <= errors).all()
    assert errors.max() <= 0.1 * exact.max()  # a wrong constant is seen


def test_variance_of_pairs_is_less_by_the_square_of_the_kernel(features) -> None:
    X, seeds, D = rows(2, 4), 2000, 16
    variances = {}
    for kind in ("plain", "paired"):
        step = ArcCosine(order=0, n_components=D, directions="iid", features=kind)
        Z = np.stack([features(step, X, seed) for seed in range(seeds)])
        variances[kind] = np.einsum("sd,sd->s", Z[:, 0], Z[:, 1]).var(ddof=1)
    k = closed_form(X, 0)[0, 1]
    # a product is 2/D with probability k/2; a pair of them gives 2/D with probability k, D/2 times
    want = {"plain": (2 * k - k * k) / D, "paired": 2 * (k - k * k) / D}
    for kind, value in variances.items():
        # relative standard error of a variance of nearly normal sums: √(2/S)
        assert value == pytest.approx(want[kind], rel=5 * np.sqrt(2 / seeds))


@pytest.mark.parametrize("order", [0, 1])
def test_error_halves_when_outputs_quadruple(features, order: int) -> None:
    X, seeds = rows(8, 6), 100
    exact = closed_form(X, order)
    few, many = (
        np.mean(
            [
                (
                    (Z := features(ArcCosine(order=order, n_components=D, directions="iid"), X, s)) @ Z.T
                    - exact
                )
                ** 2
                for s in range(seeds)
            ]
        )
        for D in (32, 128)
    )
    # independent pairs: 1/D; the mean square of 28 entries over 100 seeds is known to about √(2/100), a ratio of
    # roots to that times √2/2, which is 0.1: 3 of them
    assert np.sqrt(few / many) == pytest.approx(2.0, rel=0.3)


def test_a_row_of_zeros_has_the_kernel_of_its_features(features) -> None:
    X = np.vstack([np.zeros((1, 3)), rows(3, 3)])
    for order, want in ((0, 0.5), (1, 0.0)):
        step = ArcCosine(order=order, n_components=64)
        K = step.exact({}, Coordinates(X, X)).dots
        np.testing.assert_allclose(K[0], want, atol=1e-15)
        Z = features(step, X)
        np.testing.assert_allclose(Z[0] @ Z.T, want, rtol=1e-14)


def test_bounds() -> None:
    for parameters, text in (
        ({"order": 2}, r"order: expected "),
        ({"n_components": 7}, r"n_components: .*an even number for paired features \(6 or 8\)"),
        ({"directions": "qmc"}, r"directions: expected "),
    ):
        with pytest.raises(ConfigError, match=text):
            kafeat.fit({"steps": [{"kind": "arc_cosine", **parameters}]}, rows(4, 2))
