"""Structured frequencies against their definitions, written out with SciPy's Hadamard matrix."""

import numpy as np
import pytest
from scipy.linalg import hadamard

import kafeat
from kafeat.maths.fourier.structured import StructuredAngles, draw_structured, structured_shapes
from kafeat.maths.kernel import KernelParameters
from kafeat.maths.kernels.shift_invariant import RbfKernel

GAMMA = 0.3
LAW = RbfKernel().frequencies(KernelParameters(gamma=GAMMA))


def written_out(state, how, m, d):
    """The formulas of the papers, block by block."""
    p = state["signs"].shape[-1]
    H = hadamard(p) / np.sqrt(p)
    blocks = []
    for block, signs in enumerate(state["signs"].astype(float)):
        if how == "structured":
            W = H @ np.diag(signs[0]) @ H @ np.diag(signs[1]) @ H @ np.diag(signs[2])
        else:
            G, P = state["gaussian"][block], np.eye(p)[state["permutation"][block]]
            # (1/√p)·H G Π H B of the paper has an unnormalised H = √p·H here, and rows of norm ‖G‖.
            W = np.sqrt(p) * H @ np.diag(G) @ P @ H @ np.diag(signs[0]) / np.linalg.norm(G)
        blocks.append(W)
    return (np.concatenate(blocks)[:m] * state["radii"][:, None])[:, :d]


@pytest.mark.parametrize("how", ["structured", "fastfood"])
@pytest.mark.parametrize(("m", "d"), [(8, 8), (5, 3), (40, 12), (3, 1), (5, 9), (31, 33), (1, 70)])
def test_definition(how, m, d):
    state = draw_structured(LAW, how, m, d, np.random.default_rng(0))
    # sums of p ≤ 16 terms, four times over
    np.testing.assert_allclose(StructuredAngles.matrix(state, d), written_out(state, how, m, d), atol=1e-13)


@pytest.mark.parametrize("how", ["structured", "fastfood"])
def test_the_kernel_is_right_on_the_average(how):
    d, m, runs = 12, 128, 75
    delta = np.random.default_rng(5).standard_normal((6, d)) * 0.6
    means = []
    for seed in range(runs):
        state = draw_structured(LAW, how, m, d, np.random.default_rng(seed))
        means.append(np.cos(delta @ StructuredAngles.matrix(state, d).T).mean(axis=1))
    # 5 standard errors, plus the bias O(1/√p)·(variance) of products of signs in place of a rotation: the exact norms
    # leave it in the fourth cumulant only, below 0.01 at p = 16.
    error = np.abs(np.mean(means, axis=0) - LAW.kernel(delta))
    assert (error <= 5 * np.std(means, axis=0) / np.sqrt(runs) + 0.01).all()


@pytest.mark.parametrize("d", [1, 2, 3, 5])
def test_the_kernel_is_right_on_the_average_of_few_columns(d):
    m = 1 << 15
    delta = np.random.default_rng(5).standard_normal((40, d)) * 2.0
    W = StructuredAngles.matrix(draw_structured(LAW, "structured", m, d, np.random.default_rng(0)), d)
    # 5 standard errors of the mean of cosines, of variance at most 1
    np.testing.assert_allclose(np.cos(delta @ W.T).mean(axis=1), LAW.kernel(delta), atol=5 / np.sqrt(m))


def test_a_map_of_an_earlier_release_has_its_own_width():
    m, d, p = 16, 5, 8
    rng = np.random.default_rng(0)
    signs = rng.choice(np.array([-1, 1], dtype=np.int8), size=(2, 3, p))
    state = {"signs": signs, "radii": LAW.radii(m, p, rng)}
    shapes = {name: array.shape for name, array in structured_shapes(state, "structured", m, d).items()}
    assert shapes == {"signs": (2, 3, 8), "radii": (16,)}
    W = written_out(state, "structured", m, d)
    np.testing.assert_allclose(StructuredAngles.matrix(state, d), W, atol=1e-13)


@pytest.mark.parametrize("how", ["structured", "fastfood"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("d", [600, 1024])  # wide enough for the transforms to be used
def test_transforms_and_the_written_out_matrix_agree(how, dtype, d):
    X = np.random.default_rng(2).standard_normal((300, d))
    config = {"dtype": dtype, "steps": [{"kind": "fourier", "frequencies": how, "weights": "uniform", "gamma": 1e-3,
              "length_scale": list(np.linspace(0.5, 2.0, d))}]}  # fmt: skip
    fm = kafeat.fit(config, X)
    W = StructuredAngles.matrix(fm.chain.steps[0].state, d) / np.linspace(0.5, 2.0, d)
    angles = X.astype(dtype).astype(float) @ W.T
    m = angles.shape[1]
    want = np.hstack([np.cos(angles), np.sin(angles)]) / np.sqrt(m)
    # Angles of size ‖x‖·√(2γ) ~ 3 from some 4√p sums of rounded terms: 4·√1024·ε·3
    atol = 400 * np.finfo(dtype).eps / np.sqrt(m)
    np.testing.assert_allclose(fm.transform(X), want, atol=atol)
