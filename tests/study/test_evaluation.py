"""Errors, penalties and scores against their definitions and against scikit-learn."""

import numpy as np
import pyarrow as pa
import pytest
from sklearn.linear_model import Ridge
from sklearn.preprocessing import StandardScaler

import kafeat
from kafeat.chain.references import closed_form, components, kernel_before_pca
from kafeat.contract.folds import FOLDS, RANDOM, Folded
from kafeat.errors import DataError
from kafeat.maths.kernel_error import distortion, jl_eps, kernel_error, kernel_pca
from kafeat.maths.ridge import PENALTIES, KernelRidge, NormalEquations
from kafeat.maths.task import task_of
from kafeat.study.learners import scaling_of, split


@pytest.mark.parametrize("n", [40, 400])  # all eigenvalues, and Lanczos
def test_fidelity_is_what_it_says(n):
    rng = np.random.default_rng(0)
    A, Z = rng.standard_normal((n, 6)), rng.standard_normal((n, 5))
    K = A @ A.T
    E = Z @ Z.T - K
    expected = {
        "relative_frobenius": np.linalg.norm(E) / np.linalg.norm(K),
        "relative_spectral": np.linalg.norm(E, 2) / np.linalg.norm(K, 2),
        "max_abs_error": np.abs(E).max(),
        "mean_abs_error": np.abs(E).mean(),
        "bias": E.mean(),
    }
    assert kernel_error(K, Z) == pytest.approx(expected, rel=1e-10)
    # rounding alone: ZZᵀ is computed twice in other orders
    assert all(abs(value) < 1e-12 for value in kernel_error(A @ A.T, A).values())


def test_a_kernel_of_zeros_has_no_error_unless_the_map_errs():
    K = np.zeros((3, 3))
    assert kernel_error(K, np.zeros((3, 2)))["relative_frobenius"] == 0.0
    assert kernel_error(K, np.ones((3, 2)))["relative_frobenius"] == np.inf


def problem(width, n=120, offset=0.0):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((n, width)) + offset
    Y = X @ rng.standard_normal((width, 2)) + 3.0 + 0.3 * rng.standard_normal((n, 2))
    return X, Y, np.arange(n) % FOLDS


def chosen_by_hand(X, Y, folds):
    """The relative penalty with the least squared error on the folds, fitted by scikit-learn."""
    errors = []
    for relative in PENALTIES:
        error = 0.0
        for fold in range(FOLDS):
            train, held = folds != fold, folds == fold
            size = ((X[train] - X[train].mean(axis=0)) ** 2).sum() / train.sum()
            model = Ridge(alpha=relative * size).fit(X[train], Y[train])
            error += ((model.predict(X[held]) - Y[held]) ** 2).sum()
        errors.append(error)
    return PENALTIES[int(np.argmin(errors))] * ((X - X.mean(axis=0)) ** 2).sum() / len(X)


def solved(training):
    """The model with the best penalty."""
    return training.model(training.search())


def learned(X, Y, folds, **options):
    equations = NormalEquations(X.shape[1], 2, **options)
    equations.add(X, Y, folds)
    return solved(equations)


@pytest.mark.parametrize("width", [7, 150])  # fewer and more columns than rows
@pytest.mark.parametrize("offset", [0.0, 1e4])  # sums about 0 would lose eight digits to the means
@pytest.mark.parametrize("height", [11, 120])
def test_normal_equations_are_scikit_learns_ridge(width, offset, height):
    X, Y, folds = problem(width, offset=offset)
    equations = NormalEquations(width, 2)
    for start in range(0, len(X), height):
        piece = slice(start, start + height)
        equations.add(X[piece], Y[piece], folds[piece])
    model = solved(equations)
    assert model.penalty == pytest.approx(chosen_by_hand(X, Y, folds), rel=1e-6)
    theirs = Ridge(alpha=model.penalty).fit(X, Y)
    # The system's condition is below 1e9, and at the offset X itself has 12 digits: six are left of sixteen.
    np.testing.assert_allclose(model(X), theirs.predict(X), atol=1e-5)
    assert model.nonzero == width


def test_standardized_columns_have_no_units():
    X, Y, folds = problem(6)
    units = np.array([1e-3, 1.0, 1e3, 1.0, 5.0, 1.0])
    scaled = StandardScaler().fit_transform(X)
    plain, found = learned(scaled, Y, folds), learned(X * units, Y, folds, standardize=True)
    np.testing.assert_allclose(found(X * units), plain(scaled), atol=1e-8)


@pytest.mark.parametrize("width", [7, 150])
def test_kernel_ridge_is_ridge_on_the_features_of_the_kernel(width):
    X, Y, folds = problem(width)
    train = 90
    model = solved(KernelRidge(X[:train] @ X[:train].T, Y[:train], Folded(folds[:train], RANDOM)))
    features = learned(X[:train], Y[:train], folds[:train])
    assert model.penalty == pytest.approx(features.penalty, rel=1e-6)
    np.testing.assert_allclose(model(X[train:] @ X[:train].T), features(X[train:]), atol=1e-6)


@pytest.mark.parametrize(("labels", "kind"), [
    (np.array(["a", "b"], dtype=object), "classification"), (np.arange(5), "classification"),
    (np.array([1.0, 2.5]), "regression"), (np.arange(101), "regression"),
    (np.arange(20), "classification"), (np.arange(21), "regression"),
    (np.arange(12) * 25.0, "regression"), (np.repeat(np.arange(3), [400, 400, 19]), "regression"),
    (np.repeat(np.arange(3), [400, 400, 20]), "classification"),
    (np.repeat(np.arange(3), [49, 48, 3]), "classification"),
    (np.repeat(np.arange(3.0), [49, 49, 2]), "regression"),
])  # fmt: skip
def test_task(labels, kind):
    assert task_of(labels).kind == kind


def test_a_task_can_be_asked_for():
    assert task_of(np.arange(5), "regression").kind == "regression"
    assert task_of(np.arange(101), "classification").kind == "classification"


@pytest.mark.parametrize("unit", [1e-300, 1e-3, 1.0, 1e5, 1e300])
def test_targets_have_no_units(unit):
    y = np.array([0.25, 1.5, -2.0, 5.0])
    task = task_of(y * unit, "regression")
    targets = task.targets(y * unit)
    np.testing.assert_allclose(targets, task_of(y).targets(y), rtol=1e-12, atol=1e-12)
    assert abs(targets.mean()) < 1e-12
    assert targets.std() == pytest.approx(1.0)


@pytest.mark.parametrize("n", [5, 9, 10, 1000])
def test_a_fifth_is_held_out_by_the_hash_of_the_row_number(n):
    one = split(n, seed=3)
    assert one.test.sum() == max(2, n // 5)
    assert one.hashes[one.test].min() > one.hashes[~one.test].max()
    assert (split(n, seed=3).test == one.test).all()
    if n == 1000:
        assert (split(n, seed=4).test != one.test).any()
        # a fold is a third of the rows: five standard deviations of a binomial count
        assert abs(np.bincount(one.folds.parts) - n / 3).max() < 5 * np.sqrt(n * 2 / 9)


def test_distortion_is_that_of_squared_distances():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 8))
    Z = X @ rng.standard_normal((8, 5)) / np.sqrt(5)
    d, e = (((A[:, None] - A[None]) ** 2).sum(axis=-1) for A in (X, Z))
    pairs = np.triu_indices(30, 1)
    moved = np.abs(e[pairs] / d[pairs] - 1)
    found = distortion(X @ X.T, Z)
    assert found["distortion_max"] == pytest.approx(moved.max(), rel=1e-9)
    assert found["distortion_mean"] == pytest.approx(moved.mean(), rel=1e-9)


@pytest.mark.parametrize(("n", "D"), [(100, 2000), (10_000, 5000)])
def test_the_bound_is_the_lemmas(n, D):
    eps = jl_eps(n, D)
    assert 0 < eps < 1
    assert pytest.approx(4 * np.log(n) / (eps**2 / 2 - eps**3 / 3), rel=1e-9) == D
    assert jl_eps(10_000, 10) == 1.0


def test_columns_of_all_sizes_are_met_alike():
    X, Y, folds = problem(4)
    units = 2.0 ** np.array([-600, 0, 600, -10])
    found = [learned(columns, Y, folds, standardize=True)(columns) for columns in (X, X * units)]
    np.testing.assert_array_equal(found[1], found[0])
    # of features, those that are small count as nothing
    assert np.isfinite(learned(X * units, Y, folds)(X * units)).all()


def test_columns_that_grow_beyond_all_bounds_are_refused():
    X, Y, folds = problem(2)
    equations = NormalEquations(2, 2)
    equations.add(X * 1e-100, Y, folds)
    told = "ridge: expected columns whose squares float64 can hold.*scale the input"
    with pytest.raises(DataError, match=told):
        equations.add(X * 1e100, Y, folds)


def test_a_row_far_out_leaves_a_system_that_can_be_solved():
    """Sums about a mean that it moved are rounded by more than the smallest penalty."""
    X, Y, folds = problem(5)
    X[7] = 1e15
    assert np.isfinite(learned(X, Y, folds)(X)).all()


@pytest.mark.parametrize("near", [1e-9, 1e-15, 0.0])
def test_a_kernel_that_hardly_varies_can_be_solved(near):
    X, Y, folds = problem(5)
    K = 1.0 - near * ((X[:, None] - X[None]) ** 2).sum(axis=-1)
    assert np.isfinite(solved(KernelRidge(K, Y, Folded(folds, RANDOM)))(K)).all()


def test_scaling_is_scikit_learns_and_loses_nothing_to_a_mean_or_a_size():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 4)) * np.array([1.0, 3.0, 1e-200, 1e200]) + np.array([0.0, 1e9, 0.0, 0.0])
    X = np.column_stack([X, np.full(500, 0.1)])
    got = scaling_of([X[:70], X[70:]])(X)
    shown = StandardScaler().fit_transform(X / np.array([1.0, 1.0, 1e-200, 1e200, 1.0]))
    # 1e9 is rounded to 1e-7, of which the mean of 500 is off by as much at most
    np.testing.assert_allclose(got[:, :4], shown[:, :4], rtol=0, atol=2e-7)
    assert not got[:, 4].any()  # a constant column


def test_features_beyond_all_bounds_have_no_error():
    told = "expected features whose dot products float64 can hold.*scale the input"
    with pytest.raises(DataError, match=told):
        kernel_error(np.eye(3), np.full((3, 2), 1e200))


@pytest.fixture(scope="module", name="X")
def uniform_rows():
    return np.random.default_rng(0).uniform(0.0, 1.0, (90, 3))


@pytest.mark.parametrize("whiten", [False, True])
def test_pca_of_exact_features_of_the_same_rows_is_kernel_pca(X, whiten):
    fm = kafeat.fit(
        {"fit_rows": "all", "dtype": "float64",
         "steps": [{"kind": "polynomial_features", "degree": 2}, {"kind": "pca", "n_components": 4, "whiten": whiten}]},
        X,
    )  # fmt: skip
    K, Z = kernel_before_pca(fm.chain, X), components(fm.chain, fm.transform(X))
    from sklearn.decomposition import KernelPCA

    before = kafeat.fit({"dtype": "float64", "steps": [{"kind": "polynomial_features", "degree": 2}]}, X)
    sklearn = KernelPCA(kernel="precomputed", n_components=8).fit(before.exact_kernel(X))
    np.testing.assert_allclose(np.linalg.eigvalsh(K)[::-1][:8], sklearn.eigenvalues_, rtol=1e-8)
    np.testing.assert_allclose(np.square(Z).sum(axis=0), sklearn.eigenvalues_[:4], rtol=1e-8)
    found = kernel_pca(K, Z)
    assert found["kernel_pca_spectrum"] < 1e-8
    assert found["kernel_pca_subspace"] == pytest.approx(1.0)
    error = np.linalg.norm(K - Z @ Z.T) / np.linalg.norm(K)
    assert found["kernel_pca_error_least"] == pytest.approx(error)


def test_an_evaluation_compares_a_map_with_pca_with_exact_kernel_pca(X):
    table = pa.table({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2]})
    pca = {"kind": "pca", "n_components": 3}
    narrow, wide = (
        kafeat.evaluate(config={"steps": [{"kind": "fourier", "n_components": D}, pca]}, data=table, rows=18, jobs=1)
        for D in (8, 1024)
    )  # fmt: skip
    # No matrix of rank 3 has a smaller error. With more columns the leading space gets nearer to that of the kernel.
    for found in (narrow, wide):
        assert found["relative_frobenius"] >= found["kernel_pca_error_least"] > 0.0
        assert "kernel PCA" in found["reference"]
    assert wide["kernel_pca_subspace"] > narrow["kernel_pca_subspace"]
    assert "kernel_pca_subspace" not in kafeat.evaluate(config={"steps": [pca]}, data=table, rows=18, jobs=1)


def test_the_closed_form_error_is_that_of_the_kernel_at_the_ratios():
    """k̂(x, y) − k(x, y) of single columns is √(xy)·error(log y/x)."""
    X = np.random.default_rng(0).uniform(0.0, 1.0, (90, 1))
    fm = kafeat.fit({"steps": [{"kind": "homogeneous", "kernel": "chi2", "order": 1}], "dtype": "float64"}, X)
    ratios, error, weights = fm.chain.steps[0].step.error_curve(fm.chain.steps[0].state, X)
    ones, others = np.ones((1, 1)), np.exp(ratios)[:, None]
    off = fm.transform(ones) @ fm.transform(others).T - fm.exact_kernel(ones, others)
    np.testing.assert_allclose(off[0] / np.sqrt(others[:, 0]), error, atol=1e-12)
    found = closed_form(fm.chain, X)
    assert found["closed_form_error_max"] == np.abs(error).max()
    assert found["closed_form_error_mean"] == pytest.approx(np.average(np.abs(error), weights=weights))
    assert closed_form(kafeat.fit({"steps": [{"kind": "fourier"}]}, X).chain, X) == {}
