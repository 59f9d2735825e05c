"""Cosines of tiles against NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

from kafeat.maths.fourier.transform import CosinePasses

EPS = np.finfo(float).eps


@pytest.mark.parametrize("shape", [(1, 1), (3, 20_000), (256, 512), (5000, 7), (256, 33)])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("size", [1e-300, 1e-8, 1.0, 1e3, 1e12])
def test_float64_is_as_good_as_the_angle(shape: tuple[int, int], order: str, size: float) -> None:
    rng = np.random.default_rng(0)
    angles = np.asarray(rng.uniform(-size, size, shape), order=order)
    rows = np.empty((shape[0], 2 * shape[1]), order=order)
    cos, sin = rows[:, : shape[1]], rows[:, shape[1] :]
    cosines = CosinePasses(np.dtype(np.float64))
    cosines.write(angles, cos, sin, cosines.scratch())
    # x/2π is rounded twice (1/2π too), an error of 2 eps·|x| in the angle; some 10 operations of size 1 follow
    bound = 2.0 * EPS * np.abs(angles) + 10.0 * EPS
    assert (np.abs(cos - np.cos(angles)) <= bound).all()
    assert (np.abs(sin - np.sin(angles)) <= bound).all()
    alone = np.empty_like(angles)
    cosines.write(angles, alone, None, cosines.scratch())
    np.testing.assert_array_equal(alone, cos)


def test_float32_is_numpys() -> None:
    angles = np.random.default_rng(0).standard_normal((4, 5)).astype(np.float32)
    cosines = CosinePasses(angles.dtype)
    cos, sin = np.empty_like(angles), np.empty_like(angles)
    cosines.write(angles, cos, sin, cosines.scratch())
    np.testing.assert_array_equal(cos, np.cos(angles))
    np.testing.assert_array_equal(sin, np.sin(angles))
