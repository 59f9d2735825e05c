"""Chains: what composes, and what is said where it does not."""

import numpy as np
import pyarrow as pa
import pytest
from sklearn.metrics.pairwise import chi2_kernel, polynomial_kernel, rbf_kernel
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

import kafeat
from kafeat.chain.chain import Chain, sources_of
from kafeat.errors import DataError
from kafeat.jobs.inspect import importance_of
from kafeat.model.feature_map import FeatureMap
from tests.recipes import small, words

EPS = np.finfo(float).eps
FOURIER = {"kind": "fourier", "gamma": 0.5, "n_components": 4096}


def rows(n: int = 60, d: int = 5) -> np.ndarray:
    return np.random.default_rng(0).exponential(size=(n, d))


def fit(*steps: dict, X: np.ndarray | None = None, dtype: str = "float64") -> FeatureMap:
    return kafeat.fit({"dtype": dtype, "steps": list(steps)}, rows() if X is None else X)


def test_exponentiated_chi2_is_scikit_learns_kernel() -> None:
    X = rows()
    fm = fit({"kind": "homogeneous", "order": 8}, FOURIER)
    # theirs sums (x − y)²/(x + y); ours subtracts 2k(x, y) from k(x, x) + k(y, y): d eps of these, times γ
    want = chi2_kernel(X, gamma=0.5)
    np.testing.assert_allclose(fm.exact_kernel(X), want, rtol=0, atol=64 * EPS * X.sum(axis=1).max())
    Z = fm.transform(X)
    # Hoeffding over 1,830 pairs with m = 2,048 cosines, and the map's own error: 8-fold chi2 is below
    # 1e-3 √(xy) a term, 2γ of it in the exponent
    bound = np.sqrt(2 * np.log(2 * 1830 / 1e-6) / 2048) + 2 * 0.5 * 1e-3 * 3 * X.sum(axis=1).max()
    assert np.abs(Z @ Z.T - want).max() <= bound
    assert fm.chain.exact_kernel_note() is None


def test_kernels_of_distances_and_dots_compose_behind_samplers() -> None:
    X = rows()
    sketch = {"kind": "tensor_sketch", "gamma": 0.5, "coef0": 0.0, "degree": 2, "n_components": 16}
    fm = fit(FOURIER, sketch)
    want = (0.5 * rbf_kernel(X, gamma=0.5)) ** 2
    np.testing.assert_allclose(fm.exact_kernel(X), want, rtol=0, atol=16 * EPS)
    fm = fit({**sketch, "coef0": 1.0}, FOURIER)
    K = polynomial_kernel(X, degree=2, gamma=0.5, coef0=1.0)
    want = np.exp(-0.5 * (np.diag(K)[:, None] + np.diag(K) - 2 * K))
    np.testing.assert_allclose(fm.exact_kernel(X), want, rtol=0, atol=64 * EPS * K.max())
    assert fm.chain.exact_kernel_note() is None


def test_scalers_stand_before_a_sampler() -> None:
    X = rows()
    fm = fit({"kind": "standardize"}, FOURIER)
    want = rbf_kernel(StandardScaler().fit_transform(X), gamma=0.5)
    np.testing.assert_allclose(fm.exact_kernel(X), want, rtol=0, atol=1e-13)
    assert fm.chain.exact_kernel_note() is None


SKEWED = {"kind": "skewed", "n_components": 8, "skewedness": 3.0}
COORDINATES = [small("standardize"), small("minmax"), SKEWED]


@pytest.mark.parametrize("late", [*COORDINATES, {"kind": "normalize", "norm": "max"}])
def test_what_needs_coordinates_behind_a_sampler_is_said(late: dict) -> None:
    X = rows()
    fm = fit({"kind": "standardize"}, {**FOURIER, "n_components": 8}, late)
    assert fm.chain.exact_kernel_note() == (
        f"steps[2] ({late['kind']}) needs coordinates after a sampler: the exact kernel is that of the computed "
        "outputs of the steps before it"
    )
    before = fit({"kind": "standardize"}, {**FOURIER, "n_components": 8}).transform(X)
    alone = fit(late, X=before)
    np.testing.assert_allclose(fm.exact_kernel(X), alone.exact_kernel(before), rtol=0, atol=1e-12)


def test_coordinates_after_a_scaler_that_had_to_look_at_outputs() -> None:
    fm = fit({**FOURIER, "n_components": 8}, {"kind": "standardize"}, {**FOURIER, "n_components": 6})
    Z = fit({**FOURIER, "n_components": 8}, {"kind": "standardize"}).transform(rows())
    np.testing.assert_allclose(fm.exact_kernel(rows()), rbf_kernel(Z, gamma=0.5), rtol=0, atol=1e-12)
    assert fm.chain.exact_kernel_note().startswith("steps[1] (standardize)")


def test_steps_are_fitted_on_what_the_steps_before_hand_on() -> None:
    fm = fit({"kind": "minmax"}, {"kind": "standardize"})
    Z = fm.transform(rows())
    np.testing.assert_allclose(Z.mean(axis=0), 0, atol=1e-14)
    np.testing.assert_allclose(Z.std(axis=0), 1, rtol=1e-13)


def test_steps_draw_from_streams_of_their_own() -> None:
    one = fit({**FOURIER, "n_components": 8})
    two = fit({**FOURIER, "n_components": 8}, {**FOURIER, "n_components": 8})
    first, second = (f.state["frequencies"] for f in two.chain.steps)
    assert (one.chain.steps[0].state["frequencies"] == first).all()
    assert not np.isin(second[:, :5], first).any()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_fit_does_not_depend_on_the_number_of_blas_threads(dtype: str) -> None:
    X = np.random.default_rng(0).standard_normal((700, 300))
    steps = (
        {"kind": "projection", "n_components": 200},
        {"kind": "standardize"},
        {"kind": "nystroem", "n_components": 150},
    )
    maps = []
    for threads in (1, 2):
        with threadpool_limits(limits=threads, user_api="blas"):
            maps.append(fit(*steps, X=X, dtype=dtype).dumps())
    assert maps[0] == maps[1]


def test_a_refused_value_names_the_steps_before_and_its_column_where_it_is_the_inputs() -> None:
    X = rows(300)
    table = pa.table({name: X[:, i] for i, name in enumerate("abcde")})
    bad = X.copy()
    bad[270, 2] = -50.0
    spoiled = pa.table({name: bad[:, i] for i, name in enumerate("abcde")})
    fm = kafeat.fit({"steps": [{"kind": "minmax"}, {"kind": "homogeneous"}]}, table)
    told = r"row 271 \(index 270\), column 'c': after minmax: expected a value of at least 0, got -"
    with pytest.raises(DataError, match=told):
        fm.transform(spoiled)
    steps = [{"kind": "projection", "n_components": 2}, {"kind": "homogeneous", "negative": "error"}]
    told = r"<table>: row \d+ \(index \d+\): after projection: expected a value of at least 0, got -"
    with pytest.raises(DataError, match=told):
        kafeat.fit({"steps": [*steps, {"kind": "standardize"}]}, table)


def test_a_state_that_the_precision_cannot_hold_is_refused() -> None:
    X = rows()
    step = {**FOURIER, "n_components": 8, "gamma": 1e90}
    with pytest.raises(DataError, match=r"fourier: expected a state that float32 can hold, .*dtype: float64"):
        fit(step, dtype="float32").transform(X)
    assert np.isfinite(fit(step).transform(X)).all()


def test_outputs_that_no_machine_could_hold_are_refused_before_they_are_computed() -> None:
    steps = [{"kind": "homogeneous", "order": 92}] * 2  # 300 * 185² outputs
    told = r"steps\[1\]: homogeneous: expected from 1 to 10,000,000 outputs, got"
    with pytest.raises(DataError, match=told):
        kafeat.fit({"steps": steps}, np.ones((5, 300)))


ONE_HOT = {"kind": "one_hot", "columns": ["town", "kind"], "unknown": "ignore", "min_frequency": 3}
TIMES = {"kind": "date_parts", "columns": ["time"], "cyclic": True}
STEPS = [{"kind": "missing_indicator"}, TIMES, ONE_HOT, {"kind": "impute"}, {"kind": "quantile"}]


def table() -> pa.Table:
    rng = np.random.default_rng(0)
    x = rng.standard_normal(200)
    x[::7] = np.nan
    towns = rng.choice(["a", "b", "c", "d"], 200, p=[0.5, 0.3, 0.19, 0.01])
    times = [f"2024-{month:02}-03" for month in rng.integers(1, 13, 200)]
    label = (towns == "a") + 0.01 * rng.random(200)
    columns = [rng.choice(["u", "v"], 200), x, times, towns, rng.random(200), label]
    return pa.table(columns, names=words("kind x time town y label"))


def test_an_output_changes_with_the_column_that_it_belongs_to_only() -> None:
    steps = [*STEPS, {"kind": "clip"}, {"kind": "standardize"}]
    fm = kafeat.fit({"steps": steps}, table(), label="label")
    chain, n = fm.chain, fm.chain.n_features_in
    sources = sources_of(chain.steps)
    assert sources is not None
    assert len(sources) == chain.steps[-1].n_features_out
    low, high = fm.column_ranges.low, fm.column_ranges.high
    X = np.random.default_rng(1).uniform(low, high, (300, n))
    whole = [name not in ("x", "y") for name in fm.columns.names]  # codes of categories, and seconds
    X[:, whole] = np.rint(X[:, whole])
    X[::5, fm.columns.names.index("x")] = np.nan
    features = Chain(chain.steps).transform(X)
    for j in range(n):
        changed = X.copy()
        changed[:, j] = np.roll(X[:, j], 1)
        moved = (Chain(chain.steps).transform(changed) != features).any(axis=0)
        assert moved.any()
        assert set(sources[moved]) == {j}


def test_importance_is_told_by_input_columns_where_steps_made_several_of_one() -> None:
    fm = kafeat.fit({"steps": [*STEPS, {"kind": "metric"}]}, table(), label="label")
    shares = importance_of(fm, len(STEPS))["importance"]
    assert set(shares) == {"kind", "x", "time", "town", "y"}
    assert sum(shares.values()) == pytest.approx(1.0)
    assert max(shares, key=shares.get) == "town"


def test_outputs_that_mix_columns_belong_to_none() -> None:
    steps = [*STEPS, {"kind": "pca", "n_components": 3}, {"kind": "metric"}]
    fm = kafeat.fit({"steps": steps}, table(), label="label")
    assert set(importance_of(fm, len(STEPS) + 1)["importance"]) == {"input 0", "input 1", "input 2"}
