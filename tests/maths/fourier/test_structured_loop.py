"""The compiled loop of structured frequencies against the matrices of its definition."""

import numpy as np
import pytest
from scipy.linalg import hadamard

from kafeat.compiled.library import vector_bytes
from kafeat.maths.fourier.structured import structured_loop
from tests.recipes import check_bits_of_rows, in_both_codes

pytestmark = pytest.mark.skipif(vector_bytes() == 0, reason="there is no compiled core")


_size_of_vectors = in_both_codes("maths.fourier.structured")


def draw(d: int, p: int, m: int, layers: int, permuted: bool):
    """A loop's arrays in float64, for as many blocks of p as m results need."""
    rng = np.random.default_rng(d + p + m)
    blocks = -(-m // p)
    permutation = np.array([rng.permutation(p) for _ in range(blocks)]) if permuted else None
    return (
        rng.standard_normal((blocks, d)),
        [rng.standard_normal((blocks, p)) for _ in range(layers)],
        permutation,
        rng.uniform(0.5, 2.0, m),
    )


def angles_by_definition(X, first, layers, permutation, radii):
    p = layers[0].shape[1]
    H = hadamard(p) / np.sqrt(p)
    results = []
    for block in range(len(first)):
        x = np.pad(X * first[block], [(0, 0), (0, p - X.shape[1])]) @ H
        for layer in layers:
            x = (x if permutation is None else x[:, permutation[block]]) * layer[block] @ H
        results.append(x)
    return np.hstack(results)[:, : len(radii)] * radii


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize(("layers", "permuted"), [(2, False), (1, True)])
@pytest.mark.parametrize(
    ("rows", "d", "p", "m"),
    [(1, 1, 1, 3), (3, 2, 2, 4), (1, 1, 16, 3), (19, 9, 16, 16), (16, 30, 32, 70),
     (7, 64, 64, 129), (33, 200, 256, 300), (5, 1000, 1024, 2048)],
)  # fmt: skip
def test_definition(dtype, order, layers, permuted, rows, d, p, m):
    first, factors, permutation, radii = draw(d, p, m, layers, permuted)
    run = structured_loop(first, factors, permutation, radii.astype(dtype))
    assert run is not None
    X = np.random.default_rng(0).standard_normal((rows, d)).astype(dtype)
    # a part of a wider array, whose other numbers stay as they are
    whole = np.full((rows + 2, m + 2), 7.0, dtype, order=order)
    run.write(X, whole[1:-1, 1:-1], run.scratch())
    want = angles_by_definition(X.astype(float), first, factors, permutation, radii)
    # √p terms' sizes in each of the transforms, whose rounding adds up like log p steps of them
    atol = 8 * (layers + 1) * (1 + np.log2(p)) * np.finfo(dtype).eps * np.abs(want).max()
    np.testing.assert_allclose(whole[1:-1, 1:-1], want, rtol=0, atol=atol)
    for edges in (whole[[0, -1]], whole[:, [0, -1]]):
        assert (edges == 7.0).all()


def test_a_row_has_its_bits_whatever_is_around_it_and_in_either_order():
    run = structured_loop(*draw(20, 32, 40, 2, False))
    assert run is not None
    X = np.random.default_rng(1).standard_normal((21, 20))

    def written(rows: np.ndarray, order: str) -> np.ndarray:
        out = np.empty((len(rows), 40), order=order)
        run.write(rows, out, run.scratch())
        return out

    check_bits_of_rows(written, X)
