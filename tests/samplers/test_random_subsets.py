"""Random features over sets of columns against sums over all sets."""

from itertools import combinations, product

import numpy as np
import pytest

import kafeat
from kafeat.contract.step import Sample
from kafeat.samplers.random_subsets import RandomSubsets
from tests.recipes import normal_rows

EPS = np.finfo(float).eps
D = 5


def rows(n: int) -> np.ndarray:
    return normal_rows(n, D)


def sets(least: int, most: int | None = None, d: int = D):
    sizes = range(least, (d if most is None else most) + 1)
    return [list(some) for size in sizes for some in combinations(range(d), size)]


def kernel_over(chosen, X: np.ndarray, gamma: float) -> np.ndarray:
    """Σ over the sets of Π γ x_i y_i, set by set."""
    return sum(gamma ** len(s) * np.prod(X[:, s], 1)[:, None] * np.prod(X[:, s], 1) for s in chosen)


STEPS = [
    (RandomSubsets(degree=2, gamma=0.5, n_components=32), sets(2, 2)),
    (RandomSubsets(degree=3, gamma=0.5, n_components=32), sets(3, 3)),
    (RandomSubsets(degree=5, gamma=0.5, n_components=32), sets(5, 5)),
    (RandomSubsets(degree=1, gamma=0.5, n_components=32), sets(1, 1)),
    (RandomSubsets(kernel="all_subsets", gamma=0.2, n_components=32), sets(0)),
    (RandomSubsets(kernel="all_subsets", gamma=0.2, n_components=1), sets(0)),
    (RandomSubsets(kernel="all_subsets", gamma=0.2, n_components=2), sets(0)),
]


@pytest.mark.parametrize(("step", "chosen"), STEPS, ids=str)
def test_the_mean_over_all_signs_is_the_kernel(step: RandomSubsets, chosen: list) -> None:
    """Every sign there is, 2⁵, each once: an average without chance."""
    X = rows(6)
    state = step.fit(Sample(X, None, 6), np.random.default_rng(0))
    signs = np.array(list(product([-1, 1], repeat=D)), dtype=np.int8)
    linear = bool(state["linear"])
    least = step.least_set(state)
    every = {"n_components": len(signs) + least // 2 * D + (least > 0)} if step.n_components > 1 else {}
    all_of_them = step.model_copy(update=every)
    want = kernel_over(chosen, X, step.gamma)
    if step.n_components == 1:
        one = [features_of(step, {**state, "signs": sign[None]}, X) for sign in signs]
        K = np.mean([z @ z.T for z in one], axis=0)
    else:
        Z = features_of(all_of_them, {**state, "signs": signs}, X)
        K = Z @ Z.T
        assert Z.shape[1] == len(signs) + (step.kernel == "all_subsets") * (1 + linear * D)
    # sums of 32 products of sums of up to 32 products of up to 5
    np.testing.assert_allclose(K, want, rtol=0, atol=128 * EPS * np.abs(want).max() * 8)


def features_of(step: RandomSubsets, state, X: np.ndarray) -> np.ndarray:
    transform = step.bind(state, X.shape[1], X.dtype)
    Z = np.empty((len(X), transform.n_features_out))
    transform.apply(X, Z, transform.scratch(len(X)))
    return Z


@pytest.mark.parametrize("least", [0, 1, 2])
def test_an_output_is_the_sum_over_sets_of_signed_products(least: int) -> None:
    X = rows(4)
    D_out = {0: 1, 1: 3, 2: 40}[least]
    step = RandomSubsets(kernel="all_subsets", gamma=0.2, n_components=D_out)
    state = step.fit(Sample(X, None, 4), np.random.default_rng(3))
    assert step.least_set(state) == least
    t = np.sqrt(0.2) * X[:, None, :] * state["signs"]
    want = sum(np.prod(t[:, :, s], axis=2) for s in sets(least)) / np.sqrt(len(state["signs"]))
    carried = [np.ones((4, 1))] * (least > 0) + [np.sqrt(0.2) * X] * (least > 1)
    np.testing.assert_allclose(
        features_of(step, state, X), np.hstack([*carried, want]), rtol=0, atol=64 * EPS * np.abs(want).max()
    )


@pytest.mark.parametrize("kind", ["random_subsets", "nystroem"])
def test_a_set_of_more_columns_than_there_are_has_a_kernel_of_0(kind: str) -> None:
    step = {"kind": kind, "kernel": "anova", "degree": 6, "n_components": 4}
    fm = kafeat.fit({"steps": [step]}, rows(9))
    assert not fm.transform(rows(9)).any()
    assert not fm.exact_kernel(rows(9)).any()
    told = fm.chain.steps[0].step.width_warning(5)
    assert "degree: sets of 6 columns need more than the 5 of the input" in told
    assert fm.chain.steps[0].step.width_warning(6) is None
