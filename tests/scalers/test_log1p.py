"""log(1 + x), with the entries that have none."""

import numpy as np
import pytest

import kafeat
from kafeat.errors import DataError
from kafeat.scalers.log1p import Log1p


def test_formula(features) -> None:
    X = np.array([[0.0, 1.0, np.e - 1.0], [1e-300, 1e300, -0.5]])
    want = np.array([[0.0, np.log(2.0), 1.0], [1e-300, 300 * np.log(10.0), -np.log(2.0)]])
    np.testing.assert_allclose(features(Log1p(), X), want, rtol=4 * np.finfo(float).eps)


@pytest.mark.parametrize("value", [-1.0, -3.0])
def test_what_has_no_logarithm_is_refused_by_place(value: float) -> None:
    X = np.ones((300, 2))
    fm = kafeat.fit({"steps": [{"kind": "log1p"}]}, X)
    X[270, 1] = value
    message = rf"row 271 \(index 270\), column 'c1': expected a value above -1, got {value:g}"
    with pytest.raises(DataError, match=message):
        fm.transform(X)
    with pytest.raises(DataError, match=message):
        kafeat.fit({"steps": [{"kind": "log1p"}]}, X)


def test_missing_numbers_pass_to_impute() -> None:
    steps = [{"kind": "log1p"}, {"kind": "impute", "strategy": "constant", "value": 7.0}]
    X = np.array([[1.0, np.nan], [np.nan, 3.0]])
    Z = kafeat.fit({"dtype": "float64", "steps": steps}, X).transform(X)
    np.testing.assert_allclose(Z, np.where(np.isnan(X), 7.0, np.log1p(X)))
