"""The tile loop: padding, places of errors, and numbers that the precision cannot hold."""

import warnings

import numpy as np
import pytest

from kafeat.chain.tiles import LEAST_ROWS, MOST_ROWS, TileLoop, tile_rows
from kafeat.contract.step import Transform
from kafeat.errors import InvalidValueError


class Scripted(Transform):
    """Doubles its two columns and remembers the tiles that it saw."""

    n_features_in = n_features_out = 2

    def __init__(self, act=None) -> None:
        self.seen: list[np.ndarray] = []
        self._act = act

    def apply(self, X, out, scratch) -> None:
        self.seen.append(X.copy())
        np.multiply(X, X.dtype.type(2.0), out=out)
        if self._act:
            self._act(X, out)


HEIGHT = tile_rows(Scripted())


class Wide(Scripted):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.n_features_in, self.n_features_out = inputs, outputs


SHAPES = [(2, 2, 1024), (256, 16, 1024), (16, 257, 512), (513, 1, 256), (54, 1024, 256), (784, 10**6, 256)]


@pytest.mark.parametrize(("inputs", "outputs", "rows"), SHAPES)
def test_narrow_tiles_are_higher(inputs: int, outputs: int, rows: int) -> None:
    assert tile_rows(Wide(inputs, outputs)) == rows
    assert LEAST_ROWS <= rows <= MOST_ROWS


def run(transform: Transform, X: np.ndarray, order: str = "C") -> np.ndarray:
    out = np.full(X.shape, np.nan, dtype=X.dtype, order=order)
    TileLoop(transform, X.dtype)(X, out)
    return out


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("rows", [0, 1, HEIGHT - 1, HEIGHT, HEIGHT + 1, 3 * HEIGHT + 5])
def test_every_tile_has_the_same_height(rows: int, order: str) -> None:
    X = np.random.default_rng(0).standard_normal((rows, 2))
    transform = Scripted()
    assert (run(transform, X, order) == 2 * X).all()
    assert all(tile.shape == (HEIGHT, 2) for tile in transform.seen)
    assert len(transform.seen) == -(-rows // HEIGHT)


def test_padding_repeats_the_last_row() -> None:
    # so that no step meets a value that is not in the data
    X = np.random.default_rng(0).standard_normal((HEIGHT + 3, 2))
    transform = Scripted()
    run(transform, X)
    assert (transform.seen[1][3:] == X[-1]).all()


def test_output_may_be_a_slice_of_something_wider() -> None:
    X = np.random.default_rng(0).standard_normal((HEIGHT + 3, 2))
    wide = np.zeros((HEIGHT + 3, 10))
    TileLoop(Scripted(), X.dtype)(X, wide[:, 4:6])
    assert (wide[:, 4:6] == 2 * X).all()
    assert not wide[:, :4].any()
    assert not wide[:, 6:].any()


def test_a_refused_value_is_counted_from_the_first_row_of_the_chunk() -> None:
    def refuse(X, out) -> None:
        if (X[:, 1] < 0).any():
            raise InvalidValueError(int(np.argmax(X[:, 1] < 0)), 1, "expected better")

    X = np.ones((3 * HEIGHT, 2))
    X[2 * HEIGHT + 7, 1] = -1
    told = rf"row {2 * HEIGHT + 8} \(index {2 * HEIGHT + 7}\), column 1: expected better"
    with pytest.raises(InvalidValueError, match=told):
        run(Scripted(refuse), X)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_overflow_is_refused_and_warns_of_nothing(dtype: str) -> None:
    X = np.ones((HEIGHT + 9, 2), dtype=dtype)
    X[HEIGHT + 2] = np.finfo(dtype).max
    told = rf"row {HEIGHT + 3} \(index {HEIGHT + 2}\): expected features that {dtype} can hold, got inf"
    with warnings.catch_warnings(record=True) as warned, pytest.raises(InvalidValueError, match=told):
        warnings.simplefilter("always")
        run(Scripted(), X)
    assert not warned


def test_a_flag_without_a_bad_result_is_no_error() -> None:
    def noise(X, out) -> None:
        np.exp(np.array([1e4], dtype=X.dtype))  # overflows, and is thrown away

    X = np.ones((5, 2))
    assert (run(Scripted(noise), X) == 2).all()


def test_the_callers_floating_point_settings_are_left_alone() -> None:
    before = np.geterr()
    run(Scripted(), np.ones((5, 2)))
    assert np.geterr() == before
