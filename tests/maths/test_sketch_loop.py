"""The compiled loop of TensorSketch against Fourier transforms of wider numbers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from kafeat.compiled.library import loop
from kafeat.contract.tile import SparseRows
from kafeat.maths.sketch_loop import SketchLoop, places, sketch_loop
from kafeat.types import Floats

compiled = pytest.mark.skipif(
    loop("tensor_sketch", np.dtype("f4")) is None, reason="there is no compiled core"
)


def sketch(degree: int, d: int, D: int, dtype: str) -> tuple[SketchLoop, Floats, np.ndarray]:
    rng = np.random.default_rng(3)
    factors, buckets = rng.choice([-0.5, 0.5], (degree, d + 1)), rng.integers(D, size=(degree, d + 1))
    made = sketch_loop(factors, buckets, np.ones(D), np.dtype(dtype))
    assert made is not None
    return made, factors, buckets


def spectra(X: Floats, factors: Floats, buckets: np.ndarray, D: int) -> Floats:
    """The product of the spectra of count sketches by their definition, in extended precision."""
    inputs = np.hstack([X, np.ones((len(X), 1))]).astype(np.longdouble)
    turns = 2.0 * np.pi * (np.outer(np.arange(D // 2 + 1), np.arange(D)) % D) / D
    waves = np.cos(turns).astype(np.longdouble), -np.sin(turns).astype(np.longdouble)
    re, im = np.ones((len(X), D // 2 + 1), np.longdouble), np.zeros((len(X), D // 2 + 1), np.longdouble)
    for factor, bucket in zip(factors, buckets, strict=True):
        counted = np.zeros((len(X), D), np.longdouble)
        for i, b in enumerate(bucket):
            counted[:, b] += factor[i] * inputs[:, i]
        a, b = (counted @ wave.T for wave in waves)
        re, im = re * a - im * b, re * b + im * a
    out = np.empty((len(X), D), np.longdouble)
    out[:, 0], out[:, 1::2], out[:, 2::2] = re[:, 0], re[:, 1:], im[:, 1:-1]
    return out


def written(run: SketchLoop, X: Floats | SparseRows, order: str) -> Floats:
    """The outputs, beside columns that have to stay as they are."""
    out = np.full((len(X), run.width + 2), 7.0, run.dtype, order=order)
    assert run.write(X, out[:, 1:-1], run.scratch())
    assert (out[:, [0, -1]] == 7.0).all()
    return out[:, 1:-1]


@compiled
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("degree", [1, 3])
@pytest.mark.parametrize("D", [8, 16, 32, 64, 128, 1024])
def test_outputs_are_products_of_spectra(dtype: str, degree: int, D: int) -> None:
    run, factors, buckets = sketch(degree, 13, D, dtype)
    X = np.random.default_rng(0).standard_normal((11, 13)).astype(dtype)
    got = written(run, X, "C")
    # A transform of log₂ D stages of butterflies loses at most some 4 eps in each of the length of what it transforms
    # (Higham 2002, theorem 24.2), and √D times that length is what a frequency may reach.
    inputs = np.hstack([X, np.ones((11, 1))])
    length = 0.5 * np.abs(inputs).sum(axis=1)[:, None] * np.sqrt(D)
    bound = degree * 4.0 * np.log2(2 * D) * np.finfo(dtype).eps * length**degree
    assert (np.abs(got - spectra(X, factors, buckets, D)) <= bound).all()


@compiled
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_row_does_not_depend_on_its_place_or_the_order_of_memory(dtype: str) -> None:
    run, _, _ = sketch(3, 13, 64, dtype)
    X = np.random.default_rng(0).standard_normal((37, 13)).astype(dtype)
    whole = written(run, X, "C")
    np.testing.assert_array_equal(written(run, X, "F"), whole)
    for rows in (slice(0, 1), slice(5, 22), slice(36, 37)):
        np.testing.assert_array_equal(written(run, X[rows], "C"), whole[rows])
        np.testing.assert_array_equal(written(run, X[rows], "F"), whole[rows])


@compiled
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sparse_rows_are_those_rows(dtype: str) -> None:
    run, _, _ = sketch(3, 13, 64, dtype)
    X = np.random.default_rng(0).standard_normal((37, 13)).astype(dtype)
    X[X < 0.5] = 0.0
    X[3] = 0.0
    rows = csr_array(X)
    thin = SparseRows(rows.data, rows.indices, rows.indptr, 13)
    np.testing.assert_allclose(written(run, thin, "C"), written(run, X, "C"), 0.0, 1e3 * np.finfo(dtype).eps)
    np.testing.assert_array_equal(written(run, thin[5:9], "F"), written(run, thin, "C")[5:9])


@compiled
def test_a_number_that_is_too_large_is_told() -> None:
    run, _, _ = sketch(3, 2, 8, "float32")
    out = np.empty((2, 8), np.float32)
    assert not run.write(np.array([[1.0, 2.0], [3e20, 1.0]], np.float32), out, run.scratch())
    assert not np.isfinite(out[1]).all()


@pytest.mark.parametrize("D", [1, 4, 12, 1000])
def test_other_widths_are_not_for_the_loop(D: int) -> None:
    buckets = np.zeros((2, 3), int)
    assert sketch_loop(np.ones((2, 3)), buckets, np.ones(D), np.dtype("f4")) is None


@pytest.mark.parametrize("n", [1, 2, 4, 8, 32, 512])
def test_every_frequency_has_a_place(n: int) -> None:
    assert sorted(places(n)) == list(range(n))
