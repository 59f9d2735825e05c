"""Numbers of one type as those of another, to the bit as NumPy rounds them."""

import numpy as np
import pytest
from numpy.typing import DTypeLike

from kafeat.compiled.library import describe
from kafeat.contract.checks import all_finite, cast_finite, round_to, try_cast
from kafeat.types import Array

WHOLE = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
TYPES = [*WHOLE, "bool", "float32", "float64"]
FLOATS = ["float32", "float64"]


def numbers(dtype: DTypeLike, shape: tuple[int, ...] = (37, 19)) -> Array:
    """Random numbers of the whole range of a type."""
    rng, kind = np.random.default_rng(3), np.dtype(dtype)
    if kind.kind in "iu":
        ends = np.iinfo(kind)
        return rng.integers(ends.min, ends.max, size=shape, dtype=kind, endpoint=True)
    if kind.kind == "b":
        return rng.random(shape) < 0.5
    return np.asarray(rng.standard_normal(shape) * 10.0 ** rng.integers(-37, 37, size=shape), kind)


def orders(X: Array) -> dict[str, Array]:
    """The same matrix in several places of memory."""
    wide = np.zeros((2 * X.shape[0], 3 * X.shape[1]), X.dtype)
    wide[::2, 1::3] = X
    backwards = np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1]
    orders = {"rows": X, "columns": np.asfortranarray(X), "steps": wide[::2, 1::3]}
    return {**orders, "backwards": backwards}


def halves() -> Array:
    """All halves above 0 as doubles, the middles between them, and the doubles and floats next to these."""
    exact = np.arange(0x7C00, dtype=np.uint16).view(np.float16).astype(np.float64)
    points = np.concatenate([exact, (exact[1:] + exact[:-1]) / 2.0, [65519.0, np.nextafter(65520.0, 0.0)]])
    near = [points, np.nextafter(points, np.inf), np.nextafter(points, 0.0)]
    floats = points.astype(np.float32)
    near += [np.nextafter(floats, np.float32(np.inf)), np.nextafter(floats, np.float32(0.0))]
    together = np.concatenate(near)
    return together[together < 65520.0]


@pytest.mark.parametrize("source", ["float32", "float64", "int16"])
def test_numbers_in_the_other_byte_order_are_the_same(source: str) -> None:
    X = numbers(source)
    swapped, made = X.astype(X.dtype.newbyteorder()), np.empty(X.shape)
    assert cast_finite(swapped, made)
    np.testing.assert_array_equal(made, X)
    assert all_finite(np.array([1.0, np.nan], ">f8")) == all_finite(np.array([1.0, np.nan]))


@pytest.mark.parametrize("target", FLOATS)
@pytest.mark.parametrize("source", TYPES)
@pytest.mark.parametrize("order", ["rows", "columns", "steps", "backwards"])
def test_numbers_are_those_of_numpy(source: str, target: str, order: str) -> None:
    X = numbers(source)
    exact = X.astype(np.float64).astype(target)
    for made in orders(np.empty(X.shape, target)).values():
        assert cast_finite(orders(X)[order], made)
        np.testing.assert_array_equal(made, exact)
    column = np.empty(len(X), target)
    assert cast_finite(orders(X)[order][:, 2], column)
    np.testing.assert_array_equal(column, exact[:, 2])


@pytest.mark.parametrize("target", FLOATS)
def test_any_byte_but_0_is_true(target: str) -> None:
    X = np.arange(256, dtype=np.uint8).view(bool).reshape(32, 8)
    made = np.empty(X.shape, target)
    assert cast_finite(X, made)
    np.testing.assert_array_equal(made, np.arange(256).reshape(32, 8) != 0)


@pytest.mark.parametrize("source", FLOATS)
@pytest.mark.parametrize("order", ["rows", "columns", "steps"])
def test_halves_are_rounded_to_the_nearest_and_ties_to_even(source: str, order: str) -> None:
    points = halves().astype(source)
    X = np.concatenate([points, -points]).reshape(2, -1)
    X = X[:, np.abs(X[0]) < 65520.0]
    for made in orders(np.empty(X.shape, np.float16)).values():
        assert round_to(orders(X)[order], made) is None
        np.testing.assert_array_equal(made.view(np.uint16), X.astype(np.float16).view(np.uint16))


@pytest.mark.parametrize("source", FLOATS)
def test_the_first_number_that_a_half_cannot_hold_is_found(source: str) -> None:
    X = np.ones((5, 4), source)
    made = np.empty(X.shape, np.float16)
    X[1, 2] = np.nextafter(np.asarray(65520.0, source), 0.0)
    assert round_to(X, made) is None
    assert made[1, 2] == 65504.0
    X[2, 0], X[3, 1], X[4, 0] = np.inf, -65520.0, 70_000.0  # infinity is held, and 65,519 rounded
    assert round_to(X, made) == (3, 1)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("source", FLOATS)
@pytest.mark.parametrize("order", ["rows", "columns", "steps"])
def test_numbers_that_are_not_finite_are_noticed_wherever_they_are(bad, source, order):
    for place in ((0, 0), (36, 18), (36, 0), (17, 9)):
        X = np.ones((37, 19), source)
        X[place] = bad
        assert not all_finite(orders(X)[order])
        for target in FLOATS:
            made = np.empty(X.shape, target)
            assert not cast_finite(orders(X)[order], made)
            np.testing.assert_array_equal(made, X)
    assert all_finite(orders(np.full((37, 19), np.finfo(source).max, source))[order])


@pytest.mark.parametrize("source", ["int64", "uint64"])
def test_whole_numbers_are_rounded_to_a_double_first_as_in_all_formats(source: str) -> None:
    # as a double in the middle of two floats, to the even of which it goes
    X = np.array([[2**62 + 2**38 + 1]], source)
    made = np.empty((1, 1), np.float32)
    assert cast_finite(X, made)
    assert made[0, 0] == 2.0**62


def test_doubles_beyond_float32_are_not_finite() -> None:
    largest = float(np.finfo(np.float32).max)
    made = np.empty((1, 1), np.float32)
    next_one, beyond = np.nextafter(largest, np.inf), largest * (1 + 2.0**-24)
    for value, fits in ((largest, True), (next_one, True), (beyond, False)):
        assert cast_finite(np.array([[value]]), made) is fits
        assert bool(np.isfinite(made[0, 0])) is fits


@pytest.mark.parametrize(("X", "why"), [
    (np.ones((2, 3), ">f8"), "the other byte order"),
    (np.ones((2, 3), np.float16), "a half"),
    (np.frombuffer(bytes(1) + np.ones(6).tobytes(), np.float64, offset=1).reshape(2, 3), "out of step"),
])  # fmt: skip
def test_other_numbers_are_left_to_numpy(X: Array, why: str) -> None:
    made = np.empty(X.shape, np.float32)
    assert try_cast(X, made) is None, why
    assert cast_finite(X, made)
    np.testing.assert_array_equal(made, X)


def test_there_are_loops_for_all_types() -> None:
    if describe() != "compiled":
        pytest.skip("NumPy computes")
    for source in TYPES:
        for target in FLOATS:
            expected = None if source == target else True
            assert try_cast(np.ones((2, 3), source), np.empty((2, 3), target)) is expected
