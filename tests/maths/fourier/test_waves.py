"""The compiled loop of products and their waves against cosines and sines of wider sums."""

import numpy as np
import pytest

from kafeat.maths.fourier.transform import CosineTransform, DenseAngles, WaveLoop, wave_loop
from kafeat.types import Floats
from tests.recipes import beside, check_bits_of_rows

if wave_loop(np.ones((1, 1)), np.ones(1), np.dtype("f4")) is None:
    pytest.skip("there is no such loop without registers of 64 bytes", allow_module_level=True)


def made(m: int, d: int, dtype: str) -> tuple[WaveLoop, Floats, Floats]:
    rng = np.random.default_rng(m + d)
    frequencies = rng.standard_normal((m, d)).astype(dtype)
    amplitudes = rng.uniform(0.5, 1.0, m).astype(dtype)
    loop = wave_loop(frequencies, amplitudes, np.dtype(dtype))
    assert loop is not None
    return loop, frequencies, amplitudes


def written(loop: WaveLoop, X: Floats, m: int, order: str) -> Floats:
    return beside(lambda out: loop.write(X, out, loop.scratch(len(X))), (len(X), 2 * m), X.dtype, order)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("n", "d", "m"), [(1, 1, 1), (12, 54, 32), (13, 3, 33), (40, 128, 31), (70, 300, 100), (5, 1024, 9)]
)
def test_features_are_those_of_wider_sums(dtype: str, n: int, d: int, m: int) -> None:
    loop, frequencies, amplitudes = made(m, d, dtype)
    X = np.random.default_rng(0).standard_normal((n, d)).astype(dtype)
    wide = X.astype(np.longdouble)
    angles, size = wide @ frequencies.T.astype(np.longdouble), np.abs(X) @ np.abs(frequencies.T)
    exact = np.hstack([np.cos(angles), np.sin(angles)]) * np.tile(amplitudes, 2)
    # The angle is a sum of d products, each rounded at most twice (Higham 2002, section 3.1), and a wave moves by no
    # more than it; 4 eps for the wave itself.
    bound = np.tile((d + 1) * size + 4.0, 2) * np.finfo(dtype).eps
    for order in ("C", "F"):
        assert (np.abs(written(loop, X, m, order) - exact) <= bound).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("d", [7, 300])
def test_a_row_does_not_depend_on_its_place_or_the_order_of_memory(dtype: str, d: int) -> None:
    loop, _, _ = made(45, d, dtype)
    X = np.random.default_rng(0).standard_normal((61, d)).astype(dtype)
    check_bits_of_rows(lambda rows, order: written(loop, rows, 45, order), X)


@pytest.mark.parametrize("order", ["C", "F"])
def test_far_angles_are_as_good_as_near_ones(order: str) -> None:
    loop, frequencies, amplitudes = made(33, 1, "float32")
    X = np.array([[1.0], [3e4], [-7e6], [2.5]], np.float32)
    # the sum is one product, rounded once: the features are those of the angle in float32
    angles = (X * frequencies.T).astype(np.float64)
    exact = np.hstack([np.cos(angles), np.sin(angles)]) * np.tile(amplitudes, 2)
    np.testing.assert_allclose(written(loop, X, 33, order), exact, atol=4.0 * np.finfo("f4").eps)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("value", [np.inf, np.nan, 3e38])
def test_angles_that_are_no_numbers_are_told(order: str, value: float) -> None:
    loop, _, _ = made(40, 20, "float32")
    X = np.ones((30, 20), np.float32)
    X[17] = value
    out = np.empty((30, 80), np.float32, order=order)
    assert not loop.write(X, out, loop.scratch(30))


def test_the_transform_takes_it_and_refuses_what_overflows() -> None:
    _, frequencies, _ = made(40, 20, "float32")
    transform = CosineTransform(DenseAngles(frequencies, np.dtype("f4")), 20, np.dtype("f4"))
    X, out = np.full((4, 20), 3e38, np.float32), np.empty((4, 80), np.float32)
    with np.errstate(over="raise", invalid="raise"), pytest.raises(FloatingPointError):
        transform.apply(X, out, transform.scratch(4))
