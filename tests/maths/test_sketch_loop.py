"""The compiled loop of TensorSketch against Fourier transforms of wider numbers."""

from functools import partial
from typing import Literal

import numpy as np
import pytest
from scipy.sparse import csr_array

from kafeat.compiled.library import vector_bytes
from kafeat.contract.tile import SparseRows
from kafeat.maths.sketch_loop import SketchLoop, Spectrum, places, sketch_loop
from kafeat.samplers.tensor_sketch import bucket_spectra
from kafeat.types import Floats
from tests.recipes import beside, check_bits_of_rows, in_both_codes

compiled = pytest.mark.skipif(vector_bytes() == 0, reason="there is no compiled core")
Left = Literal["nothing", "constant", "linear"]


_size_of_vectors = in_both_codes("maths.sketch_loop")


def sketch(
    degree: int, d: int, D: int, dtype: str, count: int | None = None, left: Left = "nothing"
) -> tuple[SketchLoop, Floats, np.ndarray]:
    rng = np.random.default_rng(3)
    factors, buckets = rng.choice([-0.5, 0.5], (degree, d + 1)), rng.integers(D, size=(degree, d + 1))
    inputs = factors.copy()
    if left != "nothing":
        inputs[:, -1] = 0.0
    made = sketch_loop(inputs, buckets, Spectrum(count or D, D), np.dtype(dtype))
    assert made is not None
    if left != "nothing":
        made.leave_out(bucket_spectra(buckets[:, -1], factors[:, -1], D), left == "linear")
    return made, factors, buckets


def spectra(
    X: Floats, factors: Floats, buckets: np.ndarray, D: int, count: int | None = None, left: Left = "nothing"
) -> Floats:
    """The product of the spectra of count sketches by their definition, in extended precision, without what is left."""
    whole = product_of_spectra(X, factors, buckets, D)
    if left != "nothing":
        whole -= product_of_spectra(0.0 * X, factors, buckets, D)
    for q in range(len(factors) if left == "linear" else 0):
        alone = factors.copy()
        alone[np.arange(len(factors)) != q, :-1] = 0.0
        whole -= product_of_spectra(X, alone, buckets, D) - product_of_spectra(0.0 * X, factors, buckets, D)
    taken = Spectrum(count or D, D)
    out = np.where(taken.imaginary, whole.imag[:, taken.frequencies], whole.real[:, taken.frequencies])
    return out * taken.amplitudes


def product_of_spectra(X: Floats, factors: Floats, buckets: np.ndarray, D: int) -> np.ndarray:
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
    return re + 1j * im


def written(run: SketchLoop, X: Floats | SparseRows, order: str) -> Floats:
    return beside(lambda out: run.write(X, out, run.scratch()), (len(X), run.width), run.dtype, order)


@pytest.mark.sampled
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
    bound = np.sqrt(2.0 / D) * degree * 4.0 * np.log2(2 * D) * np.finfo(dtype).eps * length**degree
    assert (np.abs(got - spectra(X, factors, buckets, D)) <= bound).all()


@pytest.mark.sampled
@compiled
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("degree", [1, 2, 4])
@pytest.mark.parametrize("left", ["nothing", "constant", "linear"])
@pytest.mark.parametrize("count", [1, 6, 15, 16])
def test_some_numbers_without_what_others_carry(dtype: str, degree: int, left: Left, count: int) -> None:
    run, factors, buckets = sketch(degree, 5, 16, dtype, count, left)
    X = np.random.default_rng(0).standard_normal((19, 5)).astype(dtype)
    # as above; leaving out takes as many products again for each factor
    length = 0.5 * np.abs(np.hstack([X, np.ones((19, 1))])).sum(axis=1)[:, None] * np.sqrt(16)
    amplitude = np.sqrt(2.0 / count)
    bound = amplitude * 3.0 * degree * 4.0 * np.log2(32) * np.finfo(dtype).eps * length**degree
    for order in ("C", "F"):
        error = np.abs(written(run, X, order) - spectra(X, factors, buckets, 16, count, left))
        assert (error <= bound).all()


@compiled
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_row_does_not_depend_on_its_place_or_the_order_of_memory(dtype: str) -> None:
    run, _, _ = sketch(3, 13, 64, dtype)
    X = np.random.default_rng(0).standard_normal((37, 13)).astype(dtype)
    check_bits_of_rows(partial(written, run), X)


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
    assert sketch_loop(np.ones((2, 3)), buckets, Spectrum(D, D), np.dtype("f4")) is None


@pytest.mark.parametrize("n", [1, 2, 4, 8, 32, 512])
def test_every_frequency_has_a_place(n: int) -> None:
    assert sorted(places(n)) == list(range(n))
