"""The split transform against the matrix that scipy builds."""

import numpy as np
import pytest
from scipy.linalg import hadamard as scipy_hadamard

from kafeat.maths.hadamard import HadamardTransform, hadamard, padded_width


@pytest.mark.parametrize("p", [1, 2, 4, 8, 64, 128])
@pytest.mark.parametrize("orthonormal", [True, False])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("rows", [1, 5])
def test_it_is_the_hadamard_matrix(p, orthonormal, order, rows):
    H = scipy_hadamard(p).astype(float)
    np.testing.assert_array_equal(hadamard(p), H)
    x = np.random.default_rng(p).standard_normal((rows, p)).astype(float, order=order)
    out, between = np.empty_like(x), np.empty_like(x)
    transform = HadamardTransform(p, x.dtype, orthonormal)
    transform(x, out, between)
    # p terms of size about 1 in another order: p·ε
    want = x @ H / (np.sqrt(p) if orthonormal else 1.0)
    np.testing.assert_allclose(out, want, atol=8 * p * np.finfo(float).eps)
    transform(x, x, between)
    np.testing.assert_array_equal(x, out)


@pytest.mark.parametrize(("d", "p"), [(1, 1), (2, 2), (3, 4), (54, 64), (64, 64), (65, 128), (784, 1024)])
def test_padded_width(d, p):
    assert padded_width(d) == p
