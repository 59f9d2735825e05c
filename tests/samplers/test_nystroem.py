"""Nyström features: what they are exact about, and where peers go wrong."""

from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import pairwise

import kafeat
from kafeat.chain.chain import FittedStep
from kafeat.contract.step import Sample
from kafeat.errors import ArtifactError, ConfigError, DataError, UsageError
from kafeat.jobs.inspect import inspect
from kafeat.model import artifact
from kafeat.model.feature_map import FeatureMap
from kafeat.model.load import loads

EPS = np.finfo(float).eps
KERNELS = [
    "rbf", "laplacian", "matern", "rational_quadratic", "polynomial", "linear", "cosine", "chi2", "additive_chi2",
    "intersection", "jensen_shannon", "hellinger",
]  # fmt: skip
GAMMA = 0.3
RCOND = 1e-12


def rows(n: int, d: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).exponential(size=(n, d))


def fit(X: np.ndarray, dtype: str = "float64", **parameters: object) -> FeatureMap:
    kernel = parameters.get("kernel", "rbf")
    own = {} if callable(kernel) or kernel == "precomputed" else {"gamma": GAMMA}
    step = {"kind": "nystroem", **own, **parameters}
    return kafeat.fit({"dtype": dtype, "seed": 1, "steps": [step]}, X)


def rounding(K: np.ndarray, eps: float = EPS) -> float:
    """A bound on the rounding of an entry of ZZᵀ = K_n K⁺ K_nᵀ, K the kernel of m landmarks.

    Entries of K_n are off by η ≤ 16 eps max K (a product, a sum of d ≤ 20 terms, an exponential); each is met by a
    column of K⁺K_nᵀ, of norm 1 or less on the landmarks, twice: 2√m·max(norm)·η. The second product is off by
    √m eps times |K_n||P|, P = VΛ^{−½} of norm λ_min^{−½}, and meets features of norm √max K.
    """
    values = np.linalg.eigvalsh(K)
    m, top = len(K), np.abs(K).max()
    kept = values[values > RCOND * values[-1]]
    return float(eps * top * (32 * np.sqrt(m) + 4 * m * np.sqrt(top / kept[0])))


@pytest.mark.parametrize("kernel", KERNELS)
def test_exact_on_the_landmarks(kernel: str) -> None:
    X = rows(40, 6)
    fm = fit(X, kernel=kernel, n_components=40)
    Z, K = fm.transform(X), fm.exact_kernel(X)
    # what is cut off has no eigenvalue above that
    cut = RCOND * np.linalg.norm(K, 2)
    np.testing.assert_allclose(Z @ Z.T, K, rtol=0, atol=rounding(K) + cut)


@pytest.mark.parametrize("kernel", KERNELS)
def test_what_is_left_of_the_kernel_is_positive_semidefinite(kernel: str) -> None:
    X = rows(120, 6)
    fm = fit(X, kernel=kernel, n_components=20, weights="exact")
    Z, K = fm.transform(X), fm.exact_kernel(X)
    L = fm.chain.steps[0].state["landmarks"]
    # K − ZZᵀ is a Schur complement; n entries off by `rounding` move an eigenvalue by n times that at most
    assert np.linalg.eigvalsh(K - Z @ Z.T)[0] >= -120 * rounding(fm.exact_kernel(L)) - 120 * EPS * K.max() * 8


@pytest.mark.parametrize("kernel", ["rbf", "polynomial", "chi2"])
def test_a_symmetric_root_is_that_of_scikit_learn(kernel: str) -> None:
    X, L = rows(60, 6), rows(20, 6, seed=1)
    fm = fit(X, kernel=kernel, n_components=20, landmarks={"given": L}, root="symmetric", degree=3)
    K = fm.exact_kernel(L)
    values, vectors = np.linalg.eigh(K)
    symmetric = (vectors / np.sqrt(values)) @ vectors.T
    # Kernel values are off by 16 eps max K as above, and meet the root, of norm λ_min^{−½}; so is the root itself by
    # the eigenvectors', m eps λ_max/λ_min of it.
    error = EPS * np.abs(K).max() * (16 * np.sqrt(20) + 20 * values[-1] / values[0]) / np.sqrt(values[0])
    np.testing.assert_allclose(fm.transform(X), fm.exact_kernel(X, L) @ symmetric, rtol=0, atol=error)
    # the same kernel as with the triangle, which leaves half of the product out
    Z = fit(X, kernel=kernel, n_components=20, landmarks={"given": L}, degree=3).transform(X)
    W = fm.transform(X)
    np.testing.assert_allclose(W @ W.T, Z @ Z.T, rtol=0, atol=2 * rounding(K))


def test_a_symmetric_root_has_a_landmark_for_every_output() -> None:
    given = {"given": rows(7, 4)}
    with pytest.raises(DataError, match="expected n_components = 6 rows, got 7"):
        fit(rows(30, 4), n_components=6, root="symmetric", landmarks=given)
    # duplicates leave directions without variance, which are left out
    twice = {"given": np.repeat(rows(3, 4), 2, axis=0)}
    Z = fit(rows(30, 4), n_components=6, root="symmetric", landmarks=twice).transform(rows(30, 4))
    assert np.linalg.matrix_rank(Z) == 3


def test_a_triangle_with_numbers_above_its_diagonal_is_refused() -> None:
    """A file may say either; what it says must be so, or a part of the product would be left out."""
    fm = fit(rows(30, 4), n_components=5, root="symmetric")
    step = fm.chain.steps[0]
    triangular = step.step.model_copy(update={"root": "triangular"})
    with pytest.raises(ValueError, match="state.projection: expected zeros above the diagonal"):
        FittedStep.checked(triangular, step.state, 4)
    assert FittedStep.checked(step.step, step.state, 4).state is step.state


def test_duplicated_landmarks_are_harmless_in_float32() -> None:
    # scikit-learn is off by 0.54 here: its eigenvalue floor of 1e-12 is absolute, below float32's noise
    X = np.repeat(rows(20, 5).astype(np.float32), 3, axis=0)
    for kernel in ("rbf", "laplacian", "chi2", "additive_chi2"):
        fm = fit(X, "float32", kernel=kernel, n_components=60)
        Z, K = fm.transform(X).astype(float), fm.exact_kernel(X)
        assert fm.chain.steps[0].state["rank"] == 20
        assert not Z[:, 20:].any()
        tolerance = rounding(K, float(np.finfo(np.float32).eps))
        assert tolerance < 0.05 * K.max()
        np.testing.assert_allclose(Z @ Z.T, K, rtol=0, atol=tolerance)


def test_fewer_components_keep_the_leading_ones() -> None:
    X = rows(50, 6)
    fm = fit(X, n_landmarks=50, n_components=7)
    Z, K = fm.transform(X), fm.exact_kernel(X)
    values, vectors = np.linalg.eigh(K)
    best = (vectors[:, -7:] * values[-7:]) @ vectors[:, -7:].T
    assert Z.shape == (50, 7)
    np.testing.assert_allclose(Z @ Z.T, best, rtol=0, atol=rounding(best + 1e-3 * np.eye(50)) * 50)
    # Eckart & Young: the error in the Frobenius norm is that of the eigenvalues left out
    left = np.sqrt((values[:-7] ** 2).sum())
    assert np.linalg.norm(K - Z @ Z.T) == pytest.approx(left, rel=1e-9)
    # and the columns come in the order of their eigenvalues
    np.testing.assert_allclose((Z**2).sum(axis=0), values[::-1][:7], rtol=1e-9)


def test_rcond_cuts_small_eigenvalues() -> None:
    X = rows(60, 5)
    values = np.linalg.eigvalsh(pairwise.rbf_kernel(X, gamma=GAMMA))
    fm = fit(X, n_components=60, rcond=1e-2)
    assert fm.chain.steps[0].state["rank"] == np.count_nonzero(values > 1e-2 * values[-1])


@pytest.mark.one_core
@pytest.mark.parametrize("data", [pytest.param("bands", marks=pytest.mark.slow), "curves"])
def test_small_directions_help_on_rows_like_those_of_the_sample_and_may_hurt_on_others(data: str) -> None:
    """Of 1,000 new rows in each of five tables, with bands some 550 are wrong by default, and 440 with the cut.

    The two differ in fewer than 400 rows, so 110 is 5 deviations. With curves, squared errors are about 0.01 of those
    with the cut.
    """
    error = {"default": 0.0, "cut": 0.0}
    for seed in range(5 if data == "bands" else 1):
        rng = np.random.default_rng(seed)
        grounds = rng.uniform(60.0, 120.0, (6, 4))
        if data == "bands":
            (X, y), (new, true) = bands(1500, 0.3, grounds, rng), bands(1000, 2.0, grounds, rng)
        else:
            (X, y), (new, true) = curves(1500, rng), curves(1000, rng)
        for name, own in (("default", {}), ("cut", {"rcond": 1e-8})):
            map_ = {"kind": "nystroem", "n_components": 256, "gamma": "0.1*median", **own}
            steps = [{"kind": "standardize"}, map_, {"kind": "ridge"}]
            fm = kafeat.fit({"seed": seed, "steps": steps}, X, y, intervals=False)
            told = np.asarray(fm.predict(new))
            error[name] += float((told != true).sum() if data == "bands" else ((told - true) ** 2).mean())
    if data == "bands":
        assert error["cut"] < 0.9 * error["default"]
    else:
        assert error["default"] < 0.1 * error["cut"]


def curves(n: int, rng: np.random.Generator) -> tuple:
    """Sixty columns of smooth curves, and a label that is a polynomial of their four coefficients."""
    t, c = np.linspace(0.0, 1.0, 60), rng.normal(size=(n, 4))
    waves = np.array([np.sin((k + 1) * 3 * t + k) for k in range(4)])
    return c @ waves + 1e-3 * rng.normal(size=(n, 60)), c[:, 0] * c[:, 1] + c[:, 2] ** 2


def bands(n: int, noise: float, grounds: np.ndarray, rng: np.random.Generator) -> tuple:
    y = rng.integers(len(grounds), size=n)
    middle = grounds[y] + rng.normal(0.0, 6.0, (n, 1)) + rng.normal(0.0, 6.0, (n, 4))
    X = np.tile(middle, 9) + noise * rng.normal(size=(n, 36))
    return np.clip(np.rint(X), 0.0, 255.0), y


def test_small_features_of_a_smooth_kernel_are_not_rounding() -> None:
    # A kernel this smooth has eigenvalues down to rcond: in float32 sums, most of its features would be noise.
    X = rows(400, 3).astype(np.float32)
    fm = fit(X, dtype="float32", gamma=0.01, n_components=64)
    chain = fm.chain.steps[0]
    state = chain.state
    Z = fm.transform(X).astype(np.float64)
    K = exact_rbf(X.astype(np.float64), state["landmarks"].astype(np.float64), 0.01)
    expected = K @ state["projection"]
    used = np.abs(expected).max(axis=0) > 0
    assert used.sum() > 30
    assert fm.dtype == "float32"
    error = np.abs(Z - expected)[:, used].max(axis=0) / expected[:, used].std(axis=0)
    # rounding to float32 at the end, and float64's own: ε√m/λ of what rcond leaves
    assert error.max() < 1e-2


def exact_rbf(X: np.ndarray, Y: np.ndarray, gamma: float) -> np.ndarray:
    return np.exp(-gamma * ((X[:, None] - Y) ** 2).sum(axis=2))


def test_an_indefinite_kernel_is_refused_and_clip_negative_overrides() -> None:
    X = rows(40, 4) * 3 - 3
    told = r"kernel sigmoid: expected a positive semi-definite .* clip_negative: true"
    with pytest.raises(DataError, match=told):
        fit(X, kernel="sigmoid", n_components=40)
    fm = fit(X, kernel="sigmoid", n_components=40, clip_negative=True)
    Z, K = fm.transform(X), fm.exact_kernel(X)
    values, vectors = np.linalg.eigh(K)
    kept = values > 1e-10 * values[-1]
    positive = (vectors[:, kept] * values[kept]) @ vectors[:, kept].T
    # on the landmarks the map is the positive part of the kernel matrix
    small = values[kept].min()
    np.testing.assert_allclose(Z @ Z.T, positive, rtol=0, atol=EPS * 40 * 40 * np.sqrt(values[-1] / small))


def test_negative_values_are_refused_by_histogram_kernels() -> None:
    X = rows(20, 4)
    for kernel in ("chi2", "additive_chi2", "intersection", "jensen_shannon", "hellinger"):
        fm = fit(X, kernel=kernel, n_components=5)
        bad = X.copy()
        bad[3, 1] = -1.0
        with pytest.raises(DataError, match=r"row 4 .*column 'c1': expected a value of at least 0, got -1"):
            fm.transform(bad)
        with pytest.raises(DataError, match=r"column 'c1': expected a value of at least 0, got -1"):
            fit(bad, kernel=kernel, n_components=5)


def test_overflow_is_an_error_and_no_warning() -> None:
    fm = fit(rows(20, 4).astype(np.float32), "float32", kernel="polynomial", n_components=5)
    X = rows(300, 4).astype(np.float32)
    X[280] = 1e30
    told = r"row 281 \(index 280\): expected features that float32 can hold, got .*dtype: float64"
    with pytest.raises(DataError, match=told):
        fm.transform(X)


POLYNOMIAL = {"kernel": "polynomial", "coef0": 0.0, "degree": 2}


@pytest.mark.parametrize("size", [1e-16, 1e16])
@pytest.mark.parametrize("parameters", [{"kernel": "linear"}, POLYNOMIAL])
def test_kernels_beyond_float32_do_not_vanish(parameters: dict, size: float) -> None:
    # k is 1e±32 and 1e±64, the latter no number of float32; a feature is the root of it, which is one
    X = (rows(30, 4) * size).astype(np.float32)
    fm = fit(X, "float32", n_components=10, **{"gamma": 1.0, **parameters})
    Z, K = fm.transform(X).astype(float), fm.exact_kernel(X)
    # rank 4 and 10: exact on all rows, but for the rounding of products that are divided by the smallest eigenvalue
    np.testing.assert_allclose(Z @ Z.T, K, rtol=0, atol=2e-3 * K.max())


def test_precomputed_columns_are_landmarks() -> None:
    X, new = rows(50, 4), rows(20, 4, 1)
    K = pairwise.rbf_kernel(X, gamma=GAMMA)
    for selector in ("auto", "uniform", "rpcholesky", "greedy", "leverage", "farthest"):
        fm = fit(K, kernel="precomputed", n_components=12, landmarks=selector)
        columns = fm.chain.steps[0].state["landmarks"]
        assert columns.shape == (12,)
        C = pairwise.rbf_kernel(new, X, gamma=GAMMA)
        Z = fm.transform(C)
        # scikit-learn's issue 29353: fewer landmarks than rows
        inner = np.linalg.inv(K[np.ix_(columns, columns)])
        want = C[:, columns] @ inner @ C[:, columns].T
        np.testing.assert_allclose(Z @ Z.T, want, rtol=0, atol=rounding(K[np.ix_(columns, columns)]))
    assert not fm.chain.steps[0].step.traits.keeps_rows


def test_precomputed_is_saved_and_a_column_out_of_range_refused(tmp_path: Path) -> None:
    K = pairwise.rbf_kernel(rows(30, 4))
    fm = fit(K, kernel="precomputed", n_components=5)
    fm.save(tmp_path / "m.joblib")
    assert kafeat.load(tmp_path / "m.joblib").transform(K).tobytes() == fm.transform(K).tobytes()
    step, state = fm.chain.steps[0].step, dict(fm.chain.steps[0].state)
    with pytest.raises(ValueError, match="landmarks: expected whole numbers from 0 to 29"):
        FittedStep.checked(step, {**state, "landmarks": np.array([0, 1, 2, 3, 30])}, 30)
    with pytest.raises(ValueError, match="scale: expected a number above 0, got 0"):
        FittedStep.checked(step, {**state, "scale": np.array(0.0)}, 30)


def test_precomputed_has_no_exact_kernel_and_says_so() -> None:
    K = pairwise.rbf_kernel(rows(30, 4))
    with pytest.raises(UsageError, match="precomputed: there is no exact kernel beyond the given columns"):
        fit(K, kernel="precomputed", n_components=5).exact_kernel(K)
    wanted = r"steps\[0\]\.n_components: target_error: expected a map of a given kernel, got none .*: give a number"
    with pytest.raises(UsageError, match=wanted):
        fit(K, kernel="precomputed", n_components={"target_error": 0.1})


def wave(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """A kernel of nobody's: cos(Σx − Σy)·exp(−‖x − y‖₁)."""
    return np.cos(X.sum(1)[:, None] - Y.sum(1)) * np.exp(-np.abs(X[:, None] - Y[None]).sum(-1))


@pytest.mark.parametrize("weights", ["exact", "fitted"])
def test_a_python_function_is_a_kernel(weights: str) -> None:
    X = rows(300, 3)
    fm = fit(X, kernel=wave, n_components=300 if weights == "exact" else 40, weights=weights)
    Z, K = fm.transform(X), wave(X, X)
    np.testing.assert_allclose(fm.exact_kernel(X), K, rtol=0, atol=8 * EPS)
    if weights == "exact":
        np.testing.assert_allclose(Z @ Z.T, K, rtol=0, atol=rounding(K))
    assert fm.config.to_plain()["steps"][0]["kernel"] == "<function wave>"


def test_a_python_function_cannot_be_saved_and_save_says_so(tmp_path: Path) -> None:
    fm = fit(rows(30, 3), kernel=wave, n_components=5)
    told = r"steps\[0\]\.kernel: .* got a Python function: such a map cannot be saved"
    with pytest.raises(UsageError, match=told):
        fm.save(tmp_path / "m.joblib")
    assert not list(tmp_path.iterdir())


def test_directions_that_few_rows_need_are_kept_though_only_some_rows_are_looked_at() -> None:
    """10 of 20,000 rows lie far off, in 10 places: no more than a third of the rows are looked at."""
    X = np.random.default_rng(0).standard_normal((20_000, 2))
    far = 100.0 * np.eye(10)[:, :2] + np.arange(10)[:, None] * 50.0 + 1000.0
    X[:10] = far
    fm = fit(X, n_components=100, n_landmarks=120)
    K = fm.exact_kernel(far)
    assert np.abs(K - np.eye(10)).max() < 1e-12
    # each of the ten has a landmark, and its direction the eigenvalue 1 at least
    assert np.abs(fm.transform(far) @ fm.transform(far).T - K).max() < 0.01


@pytest.mark.parametrize("kernel", ["math:hypot", "a:b:c", ":f", "m:"])
@pytest.mark.parametrize("union", [False, True])
def test_a_function_by_its_name_is_refused_with_what_to_do(kernel: str, union: bool) -> None:
    step = {"kind": "nystroem", "kernel": kernel}
    steps = [{"kind": "union", "maps": [{"steps": [step]}]}] if union else [step]
    told = rf"kernel: expected the name of a kernel, got '{kernel}': .* `kafeat.fit` in Python"
    with pytest.raises(ConfigError, match=told):
        kafeat.fit({"steps": steps}, rows(30, 3))


def test_a_model_file_with_a_function_by_its_name_is_refused_with_what_to_do() -> None:
    content = artifact.loads(fit(rows(30, 3), n_components=5).dumps(), "m.joblib")
    content["steps"][0]["recipe"]["kernel"] = "math:hypot"  # as earlier versions saved it
    told = r"m.joblib: steps\[0\].recipe.kernel: expected .*, got 'math:hypot': .* `kafeat.fit` in Python"
    with pytest.raises(ArtifactError, match=told):
        loads(artifact.dumps(content), "m.joblib")


def test_a_function_can_be_inspected_though_not_saved() -> None:
    facts = inspect(fit(rows(30, 3), kernel=pairwise.rbf_kernel, n_components=5))
    assert (facts["sha256"], facts["bytes"]) == (None, None)
    assert facts["steps"][0]["kernel"] == "<function rbf_kernel>"


def test_poly_is_the_polynomial_kernel() -> None:
    X = rows(30, 3)
    short, long = (fit(X, kernel=name, n_components=5) for name in ("poly", "polynomial"))
    assert short.dumps() == long.dumps()
    maclaurin = {"steps": [{"kind": "random_maclaurin", "kernel": "poly", "n_components": 5}]}
    assert kafeat.fit(maclaurin, X).config.steps[0].recipe()["kernel"] == "polynomial"


@pytest.mark.parametrize("form", ["array", "npy", "parquet"])
def test_landmarks_that_are_given(form: str, tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    X, L = rows(60, 3), rows(7, 3, 1)
    table = pa.table({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2]})
    given: object = L
    if form == "npy":
        np.save(tmp_path / "rows.npy", L)
        given = str(tmp_path / "rows.npy")
    elif form == "parquet":  # by name, in any order
        pq.write_table(pa.table({"c": L[:, 2], "a": L[:, 0], "b": L[:, 1]}), tmp_path / "rows.parquet")
        given = str(tmp_path / "rows.parquet")
    step = {"kind": "nystroem", "gamma": GAMMA, "n_components": 7, "landmarks": {"given": given}}
    fm = kafeat.fit({"dtype": "float64", "steps": [{"kind": "standardize"}, step]}, table)
    # they go through the steps before as the rows do
    want = (L - X.mean(axis=0)) / X.std(axis=0)
    np.testing.assert_allclose(fm.chain.steps[1].state["landmarks"], want, rtol=0, atol=60 * EPS)
    assert [origin.rows for origin in fm.provenance.given] == [7]
    fm.save(tmp_path / "m.joblib")
    assert kafeat.load(tmp_path / "m.joblib").transform(table).tobytes() == fm.transform(table).tobytes()


HUGE, PRECOMPUTED = rows(20, 4) * 1e200, {"kernel": "precomputed"}
REFUSED = [
    (HUGE, {"kernel": "polynomial"}, "nystroem: kernel polynomial: expected .*, got inf: scale the input"),
    (rows(30, 4), PRECOMPUTED, "precomputed: expected the square kernel matrix .* got 30 rows and 4"),
    (rows(30, 30), {"landmarks": "uniform", **PRECOMPUTED}, "a symmetric kernel matrix, got an asymmetric one"),
    (rows(30, 3), {"kernel": lambda X, Y: X.sum(1)}, r"a function that gives an array of shape \(\d+, \d+\), got"),
    *((rows(60, 3), {"landmarks": {"given": landmarks}, **parameters}, told) for landmarks, parameters, told in (
        (rows(7, 3), {"n_components": 9}, "expected at least n_components = 9 rows, got 7"),
        (rows(7, 3), {"n_landmarks": 6}, "expected n_landmarks = 6 rows, got 7"),
        (rows(7, 2), {}, "expected 3 feature columns, got 2"),
        (-rows(7, 3), {"kernel": "chi2"}, "expected values of at least 0, got -"))),
]  # fmt: skip


@pytest.mark.parametrize(("X", "parameters", "told"), REFUSED, ids=[told for *_, told in REFUSED])
def test_rows_and_landmarks_that_do_not_go_together_are_refused(X, parameters, told) -> None:
    with pytest.raises((DataError, UsageError), match=told):
        fit(X, **{"n_components": 5, **parameters})


def test_given_landmarks_are_checked() -> None:
    X, L = rows(60, 3), rows(7, 3)
    expected = "given: expected the path of a file, or rows as a 2-D array, got 3"
    with pytest.raises(ConfigError, match=expected):
        fit(X, n_components=5, landmarks={"given": 3})
    fm = fit(X, n_components=5, landmarks={"given": L})
    assert fm.n_components == 5
    with pytest.raises(UsageError, match="landmarks: given: expected the rows of <array .*>, got none"):
        fm.chain.steps[0].step.fit(Sample(X, None, len(X)), np.random.default_rng(0))


@pytest.mark.parametrize("selector", ["dual_weighted", "dual_kmeans"])
def test_selectors_that_need_a_label_take_it(selector: str) -> None:
    X = rows(80, 4)
    config = {"steps": [{"kind": "nystroem", "n_components": 9, "landmarks": selector, "dual_l1": 0.1}]}
    fm = kafeat.fit(config, X, label=X[:, 0] > 1)
    assert fm.config.needs_label
    assert np.isfinite(fm.transform(X)).all()


def test_fitted_weights_are_nearer_to_the_kernel_and_never_worse_on_the_sample() -> None:
    X, new = rows(900, 4), rows(300, 4, 1)
    for m, n in ((20, 20), (40, 20)):
        for landmarks, first in (("uniform", "fitted"), ("auto", "auto")):
            error = []
            for weights in ("exact", first):
                fm = fit(X, n_components=n, n_landmarks=m, weights=weights, landmarks=landmarks)
                Z, K = fm.transform(new), fm.exact_kernel(new)
                error.append(np.linalg.norm(K - Z @ Z.T))
            assert error[1] < error[0]


def test_weights_are_exact_with_a_label_and_where_landmarks_are_named() -> None:
    X = rows(200, 4)
    for label, given in ((X[:, 0], {}), (None, {"landmarks": "kmeans"}), (None, {"root": "symmetric"})):
        step = {"kind": "nystroem", "n_components": 9, **given}
        steps = [{**step, "weights": weights} for weights in ("auto", "exact")]
        auto, exact = (kafeat.fit({"steps": [step]}, X, label=label).transform(X) for step in steps)
        np.testing.assert_array_equal(auto, exact)


def test_far_rows_of_an_unbounded_kernel_get_centres_of_their_own() -> None:
    """Nearly all of the kernel is that of the far rows, which differ more in length than an rbf kernel tells."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 4))
    X[:60] *= rng.uniform(5.0, 40.0, (60, 1))
    fm = fit(X, kernel="polynomial", degree=3, gamma=1.0, n_components=20)
    Z, K = fm.transform(X), fm.exact_kernel(X)
    # over four seeds 0.002 to 0.005, with a start by an rbf kernel 0.12 to 0.42, with uniform landmarks 0.5 and more
    assert np.linalg.norm(K - Z @ Z.T) < 0.02 * np.linalg.norm(K)


def test_directions_lead_on_the_sample_not_on_the_landmarks() -> None:
    # most landmarks lie where nearly no row does: their directions do not matter
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 2))
    L = np.concatenate([X[:15], 20 + 20 * rng.random((40, 2))])
    fm = fit(X, n_components=10, landmarks={"given": L})
    Z, K = fm.transform(X), fm.exact_kernel(X)
    best = np.sqrt((np.linalg.eigvalsh(K)[:-10] ** 2).sum())
    assert np.linalg.norm(K - Z @ Z.T) < 3 * best


def test_centres_of_rows_that_are_not_negative_are_not_negative(digits: np.ndarray) -> None:
    # pixels that are 0 in most rows: rounding alone makes a centre -3e-7 here
    fm = fit(digits[:600, :40], n_components=40, kernel="hellinger", landmarks="kmeans", dtype="float32")
    assert fm.chain.steps[-1].state["landmarks"].min() >= 0.0
    assert np.isfinite(fm.transform(digits[:600, :40])).all()


@pytest.mark.parametrize("root", ["triangular", "symmetric"])
@pytest.mark.parametrize("selector", ["rpcholesky", "greedy"])
def test_a_tolerance_sets_the_number_of_outputs(selector: str, root: str) -> None:
    X = rows(200, 3)
    with_tolerance = {"landmarks": selector, "n_components": 150, "tolerance": 0.05, "root": root}
    fm = fit(X, **with_tolerance)
    assert fm.n_components == len(fm.chain.steps[0].state["landmarks"]) < 150
    K, Z = fm.exact_kernel(X), fm.transform(X)
    assert np.trace(K - Z @ Z.T) <= 0.05 * np.trace(K)
    assert loads(fm.dumps(), "m").transform(X).tobytes() == Z.tobytes()
    # more than there are rows is no mistake beside a tolerance
    assert fit(X[:100], **with_tolerance).n_components < 100
    kernel = fit(K, kernel="precomputed", n_components=150, tolerance=0.05, root=root)
    Z = kernel.transform(K)
    assert np.trace(K - Z @ Z.T) <= 0.05 * np.trace(K)
