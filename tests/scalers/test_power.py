"""Power against scikit-learn."""

import numpy as np
import pytest
from sklearn.preprocessing import PowerTransformer

from tests.recipes import fit_step

DRAWS = np.random.default_rng(0)
X = np.column_stack([
    DRAWS.lognormal(size=2000), -DRAWS.lognormal(size=2000), DRAWS.standard_normal(2000), DRAWS.standard_t(3, 2000),
    DRAWS.uniform(0.0, 1e-3, 2000),
])  # fmt: skip


def test_is_scikit_learns() -> None:
    theirs = PowerTransformer().fit(X[:, :2])
    state = fit_step(X[:, :2], "power").chain.steps[0].state
    # both stop near the flat top of the likelihood, where the exponent is known to the root of their tolerance
    np.testing.assert_allclose(state["exponent"], theirs.lambdas_, rtol=0, atol=1e-4)
    np.testing.assert_allclose(
        fit_step(X[:, :2], "power").transform(X[:, :2]), theirs.transform(X[:, :2]), atol=1e-3
    )


def test_columns_that_are_normal_or_small_are_left_as_they_are() -> None:
    fm = fit_step(X[:, [2, 4]] * [1.0, 1e-6], "power")
    assert fm.chain.steps[0].state["exponent"].tolist() == [1.0, 1.0]


@pytest.mark.parametrize("exponent", [0.0, 1.0, 2.0])
def test_the_exponents_where_the_formula_has_another_form(exponent: float) -> None:
    """1 is the identity, and the limits at 0 and 2 are logarithms."""
    from kafeat.scalers.power import _bend

    x = np.array([-3.0, -1e-9, 0.0, 1e-9, 3.0])
    positive = {0.0: np.log1p(x.clip(0)), 1.0: x.clip(0), 2.0: ((1 + x.clip(0)) ** 2 - 1) / 2}[exponent]
    below = (-x).clip(0)
    negative = {0.0: ((1 + below) ** 2 - 1) / 2, 1.0: below, 2.0: np.log1p(below)}[exponent]
    np.testing.assert_allclose(_bend(x, exponent), positive - negative, rtol=1e-7)


def test_a_constant_column_becomes_0() -> None:
    assert (fit_step(np.full((20, 2), 0.1), "power").transform(np.full((3, 2), 0.1)) == 0.0).all()
