"""Clip against NumPy's quantiles."""

import numpy as np
import pytest

import kafeat

X = np.random.default_rng(0).standard_normal((1001, 3))


def transform(new: np.ndarray, **parameters: object) -> np.ndarray:
    return kafeat.fit({"dtype": "float64", "steps": [{"kind": "clip", **parameters}]}, X).transform(new)


@pytest.mark.parametrize("share", [0.0, 0.01, 0.25, 0.5])
def test_values_end_at_the_quantiles_of_the_sample(share: float) -> None:
    low, high = np.quantile(X, [share, 1.0 - share], axis=0)
    np.testing.assert_array_equal(transform(2.0 * X, share=share), np.clip(2.0 * X, low, high))
