"""Polynomial features against scikit-learn's monomials, whose weights give the kernel exactly."""

from math import factorial, prod

import numpy as np
import pytest
from sklearn.preprocessing import PolynomialFeatures as Monomials

import kafeat
from kafeat.errors import DataError
from kafeat.samplers.polynomial_features import PolynomialFeatures
from tests.recipes import normal_rows as rows

EPS = np.finfo(float).eps


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("coef0", [0.0, 0.3])
@pytest.mark.parametrize(("degree", "d"), [(1, 1), (1, 4), (2, 5), (3, 4), (5, 3), (7, 1), (4, 2)])
def test_is_scikit_learns_expansion_with_multinomial_weights(
    degree: int, d: int, coef0: float, order: str
) -> None:
    X = rows(5, d)
    step = PolynomialFeatures(degree=degree, gamma=0.4, coef0=coef0)
    transform = step.bind({"gamma": np.array(0.4)}, d, X.dtype)
    Z = np.empty((5, transform.n_features_out), order=order)
    transform.apply(X, Z, transform.scratch(5))
    peer = Monomials((0 if coef0 else degree, degree), include_bias=coef0 > 0).fit(X)
    weights = []
    for powers in peer.powers_:
        k0 = degree - powers.sum()
        repeats = prod(factorial(k) for k in powers) * factorial(k0)
        weights.append(np.sqrt(factorial(degree) / repeats * coef0**k0 * 0.4 ** powers.sum()))
    np.testing.assert_allclose(Z, peer.transform(X) * weights, rtol=64 * EPS)


def test_too_many_outputs_are_refused_with_the_number() -> None:
    X = rows(3, 500)
    told = "expected at most 100,000 outputs, got 125,751 from degree 2 and 500 inputs: lower the degree"
    with pytest.raises(DataError, match=f"polynomial_features: {told}"):
        kafeat.fit({"steps": [{"kind": "polynomial_features"}]}, X)
    # the same from a model file, before anything is built
    with pytest.raises(ValueError, match="expected at most 100,000 outputs, got "):
        PolynomialFeatures(degree=64).check_state({"gamma": np.array(1.0)}, 10**6)
