"""Random features of the skewed chi2 kernel."""

import numpy as np
import pytest

import kafeat
from kafeat.contract.kernel_inputs import Coordinates
from kafeat.contract.step import Sample
from kafeat.errors import DataError
from kafeat.maths.kernel import KernelParameters
from kafeat.maths.kernels.shift_invariant import SkewedChi2Kernel
from kafeat.samplers.skewed import Skewed
from tests.recipes import fit_step

C = 0.3


def rows(n: int, d: int) -> np.ndarray:
    return np.random.default_rng(7).exponential(size=(n, d)) - 0.1


def exact(X: np.ndarray) -> np.ndarray:
    return SkewedChi2Kernel().gram(Coordinates(X, X), KernelParameters(skewedness=C)).dots


def test_features_are_their_definition(features) -> None:
    X = rows(20, 5)
    step = Skewed(frequencies="iid", weights="uniform", skewedness=C, n_components=16)
    W = step.fit(Sample(X, None, 20), np.random.default_rng(3))["frequencies"]
    angles = np.log(X + C) @ W.T
    want = np.sqrt(1 / 8) * np.hstack([np.cos(angles), np.sin(angles)])
    # angles of at most 30, and a logarithm's own eps
    np.testing.assert_allclose(features(step, X, 3), want, rtol=0, atol=30 * 6 * np.finfo(float).eps)


@pytest.mark.parametrize("value", [-C, -1.0, -C * (1 + 1e-6)])
def test_values_at_or_below_minus_c_are_refused_by_place(value: float) -> None:
    X = rows(400, 3)
    step = {"kind": "skewed", "skewedness": C, "n_components": 8}
    fm = kafeat.fit({"dtype": "float64", "steps": [step]}, X)
    X[300, 1] = value
    X[301, 0] = -5.0
    message = rf"row 301 \(index 300\), column 'c1': expected a value above -skewedness = -0.3, got {value:g}"
    with pytest.raises(DataError, match=message):
        fm.transform(X)


def test_values_just_above_minus_c_are_taken() -> None:
    X = rows(4, 3)
    fm = fit_step(X, "skewed", skewedness=C, n_components=8)
    X[0, 0] = np.nextafter(-C, 0)
    assert np.isfinite(fm.transform(X)).all()
