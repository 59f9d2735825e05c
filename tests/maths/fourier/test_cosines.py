"""Cosine features, compiled or not, against the cosines of wider numbers."""

import mpmath
import numpy as np
import pytest

from kafeat.maths.fourier.transform import CosineFeatures
from kafeat.types import Floats


def features(angles: Floats, order: str, phases: Floats | None, amplitudes: Floats) -> Floats:
    """The features of the angles, beside columns that have to stay as they are."""
    m = angles.shape[1]
    width = m if phases is not None else 2 * m
    out = np.full((len(angles), width + 3), 7.0, angles.dtype, order=order)
    cosines = CosineFeatures(angles.dtype, amplitudes, phases)
    cosines.write(np.array(angles, order=order), out[:, 1 : width + 1])
    assert (out[:, [0, -2, -1]] == 7.0).all()
    return out[:, 1 : width + 1]


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("size", [1e-30, 1.0, 1e3, 1e4, 1e7])
def test_float32_is_within_5e7_at_all_angles(order: str, size: float) -> None:
    rng = np.random.default_rng(0)
    angles = rng.uniform(-size, size, (300, 37)).astype(np.float32)
    exact = angles.astype(np.float64)
    cosines = np.hstack([np.cos(exact), np.sin(exact)])
    np.testing.assert_allclose(features(angles, order, None, np.ones(37)), cosines, 0.0, 5e-7)
    phases = rng.uniform(0.0, 6.0, 37).astype(np.float32)
    moved = (angles + phases).astype(np.float64)
    np.testing.assert_allclose(features(angles, order, phases, np.ones(37)), np.cos(moved), 0.0, 5e-7)


@pytest.mark.parametrize("size", [1e-300, 1e-8, 1.0, 1e3, 2e6, 1e9])
def test_float64_is_as_good_as_the_angle(size: float) -> None:
    angles = np.random.default_rng(0).uniform(-size, size, (10, 20))
    with mpmath.workdps(40):
        exact = [np.array([float(f(x)) for x in angles.flat]) for f in (mpmath.cos, mpmath.sin)]
    cosines = np.hstack([values.reshape(angles.shape) for values in exact])
    eps = np.finfo(float).eps
    # x/2π may be rounded twice, an error of 2 eps·|x| in the angle; some 10 operations follow
    bound = 2.0 * eps * np.abs(np.hstack([angles, angles])) + 10.0 * eps
    assert (np.abs(features(angles, "C", None, np.ones(20)) - cosines) <= bound).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("offset", [False, True])
def test_a_feature_does_not_depend_on_its_place(dtype: str, offset: bool) -> None:
    rng = np.random.default_rng(0)
    angles = (rng.standard_normal((70, 67)) * 10.0 ** rng.integers(-3, 9, (70, 67))).astype(dtype)
    amplitudes, phases = rng.random(67), rng.random(67) if offset else None
    whole = features(angles, "C", phases, amplitudes)
    np.testing.assert_array_equal(features(angles, "F", phases, amplitudes), whole)
    for some in (slice(0, 1), slice(3, 20), slice(31, 67)):
        part = features(angles[:, some], "C", None if phases is None else phases[some], amplitudes[some])
        places = np.arange(67)[some]
        np.testing.assert_array_equal(part, whole[:, places if offset else np.append(places, places + 67)])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_no_angle_has_no_cosine(dtype: str) -> None:
    angles = np.array([[np.inf, np.nan, -np.inf]], dtype)
    with np.errstate(invalid="ignore"):
        assert np.isnan(features(angles, "C", None, np.ones(3))).all()
