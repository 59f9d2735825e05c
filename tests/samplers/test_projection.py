"""Random projections against Johnson and Lindenstrauss."""

import warnings

import numpy as np
import pytest
from scipy.linalg import hadamard
from scipy.sparse import csr_array
from sklearn.random_projection import johnson_lindenstrauss_min_dim

import kafeat
from kafeat.contract.step import Sample
from kafeat.errors import DataError, KafeatWarning
from kafeat.samplers.projection import Projection, jl_width
from tests.recipes import fit_step
from tests.recipes import normal_rows as rows


@pytest.mark.one_core
@pytest.mark.parametrize(
    ("matrix", "density"),
    [("gaussian", "auto"), ("srht", "auto"), *(("sparse", share) for share in ("auto", 1 / 3, 1.0))],
)
def test_unbiased_and_of_the_stated_variance(features, matrix: str, density: object) -> None:
    d, D, seeds = 16, 8 if matrix == "srht" else 32, 500
    X = rows(3, d)
    step = Projection(matrix=matrix, density=density, n_components=D)
    Z = np.stack([features(step, X, seed) for seed in range(seeds)])
    K, exact = Z @ Z.transpose(0, 2, 1), X @ X.T
    assert (np.abs(K.mean(axis=0) - exact) <= 5 * K.std(axis=0, ddof=1) / np.sqrt(seeds)).all()
    # A row's product has the variance ‖x‖²‖y‖² + (x·y)² + (κ − 3) Σ x_i²y_i², κ the fourth moment of a unit entry:
    # 3 for a Gaussian one, 1 for a sign, s = 1/density for a sparse one (Li et al. 2006, lemma 3). D rows
    # divide it by D, and those of srht, which are drawn from d without replacement, multiply it by (d − D)/(d − 1).
    sparse = 1 / (d**-0.5 if density == "auto" else density)
    kurtosis = {"gaussian": 3.0, "srht": 1.0}.get(matrix, sparse)
    norms = np.diag(exact)
    variance = (np.outer(norms, norms) + exact**2 + (kurtosis - 3) * (X**2 @ (X**2).T)) / D
    variance *= (d - D) / (d - 1) if matrix == "srht" else 1.0
    # relative standard error of a variance over S nearly normal draws: √(2/S); the rows' own kurtosis adds little
    np.testing.assert_allclose(K.var(axis=0, ddof=1), variance, rtol=6 * np.sqrt(2 / seeds))


def test_all_distances_are_kept_within_eps(features) -> None:
    n, d, eps = 50, 3000, 0.3
    X = rows(n, d)
    for matrix in ("gaussian", "sparse"):
        # D from 4 ln n/(ε²/2 − ε³/3) keeps all n(n − 1)/2 squared distances with probability at least
        # 1 − n(n − 1)·exp(−(ε²/2 − ε³/3)D/2) = 1 − n^{-1}(n − 1)/n; at 3 times the width, failure is below 2e-7
        Z = features(Projection(matrix=matrix, n_components=3 * jl_width(n, eps)), X)
        i, j = np.triu_indices(n, 1)
        ratio = ((Z[i] - Z[j]) ** 2).sum(1) / ((X[i] - X[j]) ** 2).sum(1)
        assert ratio.min() >= 1 - eps
        assert ratio.max() <= 1 + eps


@pytest.mark.parametrize("n", [2, 10, 1000, 10**7])
@pytest.mark.parametrize("eps", [0.05, 0.1, 0.5, 0.99])
def test_width_is_scikit_learns_rounded_up(n: int, eps: float) -> None:
    want = 4 * np.log(n) / (eps**2 / 2 - eps**3 / 3)
    assert jl_width(n, eps) - 1 < want <= jl_width(n, eps)
    assert jl_width(n, eps) - johnson_lindenstrauss_min_dim(n, eps=eps) in (0, 1)


def test_auto_counts_the_rows_of_the_whole_input() -> None:
    X = rows(2000, 900)
    step = {"kind": "projection", "eps": 0.4}
    for fit_rows in ("all", 10):
        fm = kafeat.fit({"fit_rows": fit_rows, "steps": [step]}, X)
        assert fm.n_components == jl_width(2000, 0.4)
        assert fm.transform(X[:3]).shape == (3, fm.n_components)


def test_auto_that_would_not_reduce_anything_is_refused() -> None:
    told = r"n_components: auto: expected a width below the 20 inputs, got \d+ for 30 rows"
    with pytest.raises(DataError, match=told):
        kafeat.fit({"steps": [{"kind": "projection"}]}, rows(30, 20))


@pytest.mark.parametrize(("density", "share"), [("auto", 0.05), (0.2, 0.2), (1.0, 1.0)])
def test_density_of_a_sparse_matrix(density: object, share: float) -> None:
    d, D = 400, 300
    step = Projection(matrix="sparse", density=density, n_components=D)
    state = step.fit(Sample(rows(2, d), None, 2), np.random.default_rng(0))
    # binomial(dD, share): 5 standard deviations
    assert abs(len(state["values"]) - d * D * share) <= 5 * np.sqrt(d * D * share * (1 - share))
    np.testing.assert_allclose(np.abs(state["values"]), 1 / np.sqrt(D * share), rtol=1e-15)
    # signs are fair, and so is the choice of columns: binomial again, 6 deviations over 400 columns
    N = len(state["values"])
    assert abs((state["values"] > 0).sum() - N / 2) <= 5 * np.sqrt(N) / 2
    counts = np.bincount(state["columns"], minlength=d)
    assert np.abs(counts - D * share).max() <= 6 * np.sqrt(D * share * (1 - share)) + 1e-9


@pytest.mark.parametrize("matrix", ["gaussian", "sparse"])
def test_is_linear_and_the_matrix_of_the_state(features, matrix: str) -> None:
    X = rows(6, 10)
    step = Projection(matrix=matrix, n_components=7, density=0.5)
    state = step.fit(Sample(X, None, 6), np.random.default_rng(0))
    if matrix == "gaussian":
        A = state["matrix"]
    else:
        A = np.zeros((7, 10))
        for i, (start, stop) in enumerate(zip(state["starts"][:-1], state["starts"][1:], strict=True)):
            columns = state["columns"][start:stop]
            assert len(set(columns)) == len(columns)
            A[i, columns] = state["values"][start:stop]
    want = X @ A.T
    # sums of 10 products
    bound = 10 * np.finfo(float).eps * (np.abs(X) @ np.abs(A).T).max()
    np.testing.assert_allclose(features(step, X), want, rtol=0, atol=bound)


def test_an_empty_sparse_row_is_fine(features) -> None:
    assert not features(Projection(matrix="sparse", n_components=3, density=1e-9), rows(4, 5)).any()


@pytest.mark.parametrize("D", [3, 8, 19])
def test_srht_is_sampled_rows_of_signed_hadamard_matrices(features, D: int) -> None:
    X = rows(6, 5)
    step = Projection(matrix="srht", n_components=D)
    state = step.fit(Sample(X, None, 6), np.random.default_rng(0))
    rows_of = enumerate(state["rows"])
    A = np.stack([hadamard(8)[row, :5] * state["signs"][j // 8] / np.sqrt(D) for j, row in rows_of])
    # sums of 8 terms
    near = 32 * np.finfo(float).eps * np.abs(X).max()
    np.testing.assert_allclose(features(step, X), X @ A.T, rtol=0, atol=near)


@pytest.mark.parametrize(("dtype", "size"), [("float32", 1e38), ("float64", 5e307)])
@pytest.mark.parametrize("form", ["dense", "sparse rows"])
@pytest.mark.parametrize("matrix", ["gaussian", "sparse"])
def test_sums_that_overflow_are_refused(matrix: str, form: str, dtype: str, size: float) -> None:
    """SciPy computes them, and leaves no flag of the processor behind: two rows were infinite, with code 0."""
    X = np.zeros((600, 300))
    X[:, :8] = 1.0
    X[:, ::40] += 1.0
    fm = fit_step(X, "projection", dtype=dtype, matrix=matrix, density=1.0, n_components=1)
    signs = np.sign(fm.transform(np.eye(300))[:, 0].astype(float))
    X[70, :8] = size * signs[:8]
    X[70, 8:] = 0.0
    rows = csr_array(X) if form == "sparse rows" else X
    told = rf"row 71 \(index 70\): expected features that {dtype} can hold, got inf: scale the input"
    with pytest.raises(DataError, match=told):
        fm.transform(rows)


def test_an_overflow_is_not_clipped_away() -> None:
    step = {"kind": "projection", "matrix": "sparse", "density": 1.0, "n_components": 1}
    fm = kafeat.fit({"steps": [step, {"kind": "minmax", "clip": True}]}, rows(40, 8))
    signs = fm.chain.steps[0].state["values"] / np.abs(fm.chain.steps[0].state["values"])
    with pytest.raises(DataError, match=r"row 1 .*: expected features that float32 can hold, got inf"):
        fm.transform(7e37 * signs[None, :])


def test_a_projection_that_is_wider_than_its_input_is_told() -> None:
    steps = [{"kind": "standardize"}, {"kind": "projection", "n_components": 6}]
    told = "<array>: projection: n_components: 6 outputs are more than 5 inputs, so nothing is"
    with pytest.warns(KafeatWarning, match=told):
        kafeat.fit({"steps": steps}, rows(30, 5))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kafeat.fit({"steps": steps}, rows(30, 6))
