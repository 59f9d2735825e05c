"""Target encoding against scikit-learn's TargetEncoder and an analysis of variance, and columns that tell nothing."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from sklearn.preprocessing import TargetEncoder

import kafeat
from kafeat.contract.step import Sample
from kafeat.errors import DataError, UsageError
from kafeat.jobs.fit.fit import fit_reader
from kafeat.maths.content_folds import content_hashes, folds_of
from kafeat.maths.target_sums import TargetSums
from kafeat.model.load import loads
from kafeat.scalers.target import Target
from tests.jobs.files import transform_file

ROWS, VALUES, FOLDS = 3000, 200, 10


@pytest.fixture(scope="module")
def shops() -> pa.Table:
    rng = np.random.default_rng(0)
    shop = rng.integers(0, VALUES, ROWS)
    effects = rng.normal(size=VALUES)
    y = effects[shop] + 0.5 * rng.normal(size=ROWS)
    names = pa.array([f"shop-{i}" if i else None for i in shop])
    sort = np.array(["a", "b", "c"])[np.digitize(y, [-0.5, 0.5])]
    draws = {"x": rng.normal(size=ROWS), "code": rng.integers(0, 50, ROWS), "y2": rng.normal(size=ROWS)}
    order = ["x", "shop", "code", "y", "y2", "sort"]
    return pa.table({**draws, "shop": names, "y": 100.0 + 10.0 * y, "sort": sort}).select(order)


def config(columns: object = ("shop",), **more: object) -> dict[str, object]:
    step = {"kind": "target", "columns": list(columns), **more}
    return {"dtype": "float64", "columns": {"exclude": ["y", "y2", "sort"]}, "steps": [step]}


def folds_in(fm: kafeat.FeatureMap, table: pa.Table) -> np.ndarray:
    state = fm.chain.steps[0].state
    return folds_of(content_hashes(fm.matrix(table), int(state["seed"])), FOLDS)


def texts(table: pa.Table, name: str) -> np.ndarray:
    return np.array([str(value) for value in table[name].to_pylist()])


def expected(values: np.ndarray, y: np.ndarray, folds: np.ndarray, smooth: object) -> np.ndarray:
    """scikit-learn's encoding of each fold by the others.

    It shrinks towards the mean of the rows that it is fitted on. A row of another value, with a label that makes this
    mean that of all rows, changes nothing else.
    """
    encoded = np.empty(len(y))
    for fold in range(FOLDS):
        other = folds != fold
        n = other.sum()
        filler = y.mean() * (n + 1) - y[other].sum()
        encoder = TargetEncoder(
            smooth=smooth(values[other], y[other]) if callable(smooth) else smooth, target_type="continuous"
        )
        encoder.fit(np.append(values[other], "filler")[:, None], np.append(y[other], filler))
        encoded[~other] = encoder.transform(values[~other][:, None])[:, 0]
    return encoded


def variance_ratio(values: np.ndarray, y: np.ndarray) -> float:
    """σ²_within/σ²_between of an unbalanced one-way layout, by the textbook."""
    groups = [y[values == value] for value in np.unique(values)]
    sizes = np.array([len(group) for group in groups])
    within = sum(((group - group.mean()) ** 2).sum() for group in groups) / (len(y) - len(groups))
    between = sum(len(group) * (group.mean() - y.mean()) ** 2 for group in groups) / (len(groups) - 1)
    n0 = (len(y) - (sizes**2).sum() / len(y)) / (len(groups) - 1)
    return within / ((between - within) / n0)


@pytest.mark.parametrize("smooth", [7.5, "auto"])
def test_is_scikit_learns_encoding_by_the_other_folds(shops: pa.Table, smooth: object) -> None:
    fm = kafeat.fit(config(["shop", "code"], smooth=smooth), shops, label="y")
    Z, folds, y = fm.transform(shops), folds_in(fm, shops), shops["y"].to_numpy()
    assert Z.shape == (ROWS, 3)
    np.testing.assert_array_equal(Z[:, 0], shops["x"].to_numpy())
    # 200 values have effects; 50 codes have none, and whether their variance is above 0 is a matter of chance
    columns = (1, "shop"), (2, "code")
    for j, name in columns if smooth != "auto" else columns[:1]:
        want = expected(texts(shops, name), y, folds, variance_ratio if smooth == "auto" else smooth)
        # tables are float32 of deviations of up to 30
        np.testing.assert_allclose(Z[:, j], want, rtol=0, atol=30 * 2.0**-23)


def test_classes_and_several_labels_are_encoded_one_by_one(shops: pa.Table) -> None:
    fm = kafeat.fit(config(smooth=4.0), shops, label="sort")
    Z, folds = fm.transform(shops), folds_in(fm, shops)
    assert Z.shape == (ROWS, 2 + 3)
    for c, name in enumerate("abc"):
        want = expected(texts(shops, "shop"), (texts(shops, "sort") == name).astype(float), folds, 4.0)
        np.testing.assert_allclose(Z[:, 2 + c], want, rtol=0, atol=2.0**-23)
    two = shops.set_column(5, "sort", pa.array(texts(shops, "sort") == "c"))
    of_two = kafeat.fit(config(smooth=4.0), two, label="sort").transform(two)
    np.testing.assert_array_equal(of_two[:, 2], Z[:, 4])
    both = kafeat.fit(config(smooth=4.0), shops, label=["y", "y2"]).transform(shops)
    for c, name in enumerate(["y", "y2"]):
        want = expected(texts(shops, "shop"), shops[name].to_numpy(), folds, 4.0)
        np.testing.assert_allclose(both[:, 2 + c], want, rtol=0, atol=30 * 2.0**-23)


def test_null_is_a_value_and_unknown_is_the_mean(shops: pa.Table) -> None:
    fm = kafeat.fit(config(frequency=True), shops, label="y")
    state, y = fm.chain.steps[0].state, shops["y"].to_numpy()
    missing = np.array([value is None for value in shops["shop"].to_pylist()])
    rows = pa.table({"x": [0.0] * 4, "shop": ["no such", None, "", "shop-3"], "code": [1] * 4})
    Z = fm.transform(rows)
    np.testing.assert_allclose(Z[0, 2:], [y.mean(), 0.0], rtol=1e-12)
    np.testing.assert_array_equal(Z[1], Z[2])
    assert Z[1, 3] == np.log1p(missing.sum())
    assert abs(Z[1, 2] - y[missing].mean()) < abs(Z[1, 2] - y.mean())
    assert Z[3, 3] == np.log1p(sum(value == "shop-3" for value in shops["shop"].to_pylist()))
    assert state["counts"].sum() == ROWS


@pytest.mark.parametrize("label", ["y", "sort"])
def test_learns_from_all_rows_in_every_format(shops: pa.Table, label: str, tmp_path: Path) -> None:
    pq.write_table(shops, tmp_path / "shops.parquet", row_group_size=700)
    pa_csv.write_csv(shops, tmp_path / "shops.csv")
    whole, in_memory = (kafeat.fit({**config(), **few}, shops, label=label) for few in ({}, {"fit_rows": 50}))
    few = {**config(), "fit_rows": 50}
    for data in (shops, str(tmp_path / "shops.parquet"), str(tmp_path / "shops.csv")):
        fm = kafeat.fit(few, data, label=label)
        assert fm.provenance.rows_fitted == 50
        for name, value in fm.chain.steps[0].state.items():
            assert value.tobytes() == in_memory.chain.steps[0].state[name].tobytes(), name
            # numbers are scaled by those of the sample, before they are added
            np.testing.assert_allclose(value, whole.chain.steps[0].state[name], rtol=0, atol=30 * 2.0**-23)
    whole.save(tmp_path / "map.joblib")
    for data in ("shops.parquet", "shops.csv"):
        transform_file(str(tmp_path / "map.joblib"), str(tmp_path / data), str(tmp_path / "z.npy"))
        assert np.load(tmp_path / "z.npy").tobytes() == whole.transform(shops).tobytes()


def test_a_class_that_no_row_of_the_sample_has(shops: pa.Table) -> None:
    labels = np.where(np.arange(ROWS) == 17, "rare", texts(shops, "sort"))
    fm = kafeat.fit({**config(), "fit_rows": 20}, shops, label=labels)
    np.testing.assert_allclose(
        fm.chain.steps[0].state["means"], [*(np.mean(labels == name) for name in ["a", "b", "c", "rare"])]
    )


def test_rows_of_test_are_not_learned_from(shops: pa.Table) -> None:
    test = np.arange(ROWS) % 3 == 0
    split = np.where(test, "test", "train")
    fm = kafeat.fit(config(), shops.append_column("split", pa.array(split)), label="y", split="split")
    alone = kafeat.fit(config(), shops.filter(pa.array(~test)), label="y")
    for name, value in fm.chain.steps[0].state.items():
        np.testing.assert_array_equal(value, alone.chain.steps[0].state[name], err_msg=name)


def scores(Z: np.ndarray, y: np.ndarray, train: np.ndarray) -> tuple[float, float]:
    """R² of least squares, on the rows that it was fitted on and on the others."""
    spread = np.where(Z.std(axis=0) > 0, Z.std(axis=0), 1.0)
    A = np.column_stack([np.ones(len(Z)), (Z - Z.mean(axis=0)) / spread])
    w = np.linalg.lstsq(A[train], y[train], rcond=None)[0]
    left = (y - A @ w) ** 2
    spread = (y - y[train].mean()) ** 2
    return 1.0 - left[train].sum() / spread[train].sum(), 1.0 - left[~train].sum() / spread[~train].sum()


@pytest.mark.parametrize("leak", [False, True])
def test_a_column_of_noise_tells_nothing(leak: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither on the rows of the fit nor on others; with a planted leak, sums of all folds, it seems to tell much."""
    if leak:
        monkeypatch.setattr(TargetSums, "encoded", _leaking)
    n, rng = 8000, np.random.default_rng(5)
    x, y = rng.normal(size=n), rng.normal(size=n)
    y += 0.5 * x
    table = pa.table({"x": x, "noise": rng.integers(0, 5000, n)})
    train = np.arange(n) < n // 2
    labels = {"columns": {"include": ["x", "noise"]}, "dtype": "float64"}
    step = {"kind": "target", "columns": ["noise"], "smooth": 1.0 if leak else "auto"}
    fm = kafeat.fit({**labels, "steps": [step]}, table.slice(0, n // 2), label=y[: n // 2])
    Z = fm.transform(table)
    # The standard error of R² = 0.2 of n/2 rows of a normal distribution: 2 √R² (1 − R²)/√n = 0.0113.
    error = 2 * np.sqrt(0.2) * 0.8 / np.sqrt(n / 2)
    changes = np.subtract(scores(Z, y, train), scores(Z[:, :1], y, train))
    assert (np.abs(changes) < error).all() != leak, changes


def _leaking(self: TargetSums, means: np.ndarray, smooth: float | None) -> np.ndarray:
    """As `encoded` would be without folds."""
    counts = self.counts.sum(axis=1, keepdims=True)
    sums = self._sums.sum(axis=2)[:, :, None] - counts * means[:, None, None]
    return np.moveaxis(np.broadcast_to(sums / (counts + 1.0), self._sums.shape), 0, -1)


def test_values_that_do_not_differ_all_get_the_mean() -> None:
    """The label repeats in every value: the variance between them is below that of chance."""
    X = np.column_stack([np.repeat(np.arange(50.0), 20), np.random.default_rng(0).normal(size=1000)])
    y = np.tile(np.r_[np.ones(10), -np.ones(10)], 50) + 5.0
    sample = Sample(X, y + 0.5 * np.random.default_rng(1).random(1000), 1000, names=("v", "x"))
    state = Target(columns=("v",), n_folds=2).fit(sample, np.random.default_rng(0))
    tables = state["tables"]
    assert np.abs(tables).max() < 0.2
    every = np.arange(1000.0)[:, None]
    alone = Target(columns=("v",)).fit(Sample(every, y, 1000, names=("v",)), np.random.default_rng(0))
    # each row has a value of its own, so no variance within can be told
    assert (alone["tables"] == 0.0).all()


def test_stands_in_a_union_beside_one_hot_of_the_same_column(shops: pa.Table) -> None:
    one_hot = {"kind": "one_hot", "columns": ["shop"], "unknown": "ignore", "min_frequency": 18}
    maps = [{"steps": [{"kind": "target", "columns": ["shop"]}]}, {"columns": ["shop"], "steps": [one_hot]}]
    alone = kafeat.fit(config(), shops, label="y").transform(shops)[:, 2]
    counted = zip(*np.unique(texts(shops, "shop"), return_counts=True), strict=True)
    common = [name for name, n in counted if n >= 18]
    for order in (1, -1):
        union = {**config(), "steps": [{"kind": "union", "maps": maps[::order]}]}
        Z = kafeat.fit(union, shops, label="y").transform(shops)
        assert Z.shape[1] == 3 + len(common) + 1  # x, code and the target; the rare ones share one
        of_target = Z[:, 2] if order == 1 else Z[:, -1]
        # the union draws another seed of the folds
        assert np.corrcoef(of_target, alone)[0, 1] > 0.99
    strict = [maps[0], {"columns": ["shop"], "steps": [{**one_hot, "unknown": "error"}]}]
    fm = kafeat.fit({**config(), "steps": [{"kind": "union", "maps": strict}]}, shops, label="y")
    with pytest.raises(DataError, match="expected one of the 200 categories of the fit, got 'no such'"):
        fm.transform(pa.table({"x": [0.0], "shop": ["no such"], "code": [1]}))


def test_smooth_can_be_chosen_from_the_data(shops: pa.Table) -> None:
    fm = kafeat.fit(config(smooth={"validate": [0.1, 1.0, 1000.0]}), shops, label="y")
    [search] = fm.provenance.searches
    assert search.chosen in (0.1, 1.0)
    assert search.scores[-1] < max(search.scores)


def test_a_pipe_cannot_be_read_twice(shops, tmp_path, monkeypatch):
    from kafeat.io.readers.memory import reader_of

    source = reader_of(shops)
    monkeypatch.setattr(type(source), "rereadable", False)
    with pytest.raises(UsageError, match="target is fitted in a second pass over all rows"):
        fit_reader(kafeat.Config(**config()), source, "y")


def test_too_many_sums_are_refused() -> None:
    X = np.column_stack([np.zeros(2000), np.arange(2000.0)])
    sample = Sample(X, np.arange(2000).astype(str).astype(object), 2000, names=("a", "b"))
    with pytest.raises(DataError, match="at most 1,000 classes"):
        Target(columns=("a",)).fit(sample, np.random.default_rng(0))
    labels = (X[:, 1] % 900).astype(str).astype(object)
    many = Sample(X, labels, 2000, names=("a", "b"), n_categories=(99_999, 0))
    told = r"at most 67,108,864 sums, got 99,999 values in 10 folds for 900 outputs"
    with pytest.raises(DataError, match=told):
        Target(columns=("a",)).fit(many, np.random.default_rng(0))


def test_few_groups_are_warned_of(shops: pa.Table) -> None:
    few = shops.select(["code", "x", "y"]).slice(0, 500)
    few = few.set_column(0, "code", pa.array(np.arange(500) % 3))
    told = "target: expected about 50 rows in each of 10 folds"
    with pytest.warns(kafeat.errors.KafeatWarning, match=told):
        kafeat.fit({"steps": [{"kind": "target", "columns": ["x"], "group": "code"}]}, few, label="y")


PATIENTS = 150


@pytest.fixture(scope="module")
def visits() -> pa.Table:
    """Near copies: each of the patients has ten rows of nearly the same numbers, and labels that are all their own."""
    rng = np.random.default_rng(4)
    patient = np.repeat(np.arange(PATIENTS), 10)
    x = rng.normal(size=PATIENTS)[patient] + 1e-3 * rng.normal(size=len(patient))
    wards = [f"w{i}" for i in rng.integers(0, 1000, PATIENTS)[patient]]
    of_patients = [f"p{i}" for i in patient], rng.normal(size=PATIENTS)[patient]
    return pa.table([x, wards, *of_patients], names=["x", "ward", "patient", "y"])


def test_groups_share_a_fold(visits: pa.Table) -> None:
    """A ward is all but a patient: by content, their own label comes back; by group it cannot."""
    y, steps = visits["y"].to_numpy(), [{"kind": "target", "columns": ["ward"]}]
    plain = {"dtype": "float64", "columns": {"include": ["x", "ward"]}, "steps": steps}
    by_content = kafeat.fit(plain, visits, label="y").transform(visits)
    fm = kafeat.fit({**plain, "split_by": "group:patient"}, visits, label="y")
    assert fm.config.steps[0].group == "patient"
    assert fm.config.to_plain()["steps"][0]["group"] == "patient"
    by_group = fm.transform(visits)
    assert by_group.shape == by_content.shape == (10 * PATIENTS, 2)
    # With a tenth of the labels unseen, a correlation of ±3/√150 is chance.
    assert np.corrcoef(by_content[:, 1], y)[0, 1] > 0.9
    assert np.corrcoef(by_group[:, 1], y)[0, 1] < 3 / np.sqrt(PATIENTS) + 0.2
    # equal in all but the numbers
    moved = visits.set_column(0, "x", pa.array(np.zeros(len(visits))))
    np.testing.assert_array_equal(fm.transform(moved)[:, 1], by_group[:, 1])
    told = r"the groups by which the model has its folds .*expected the column 'patient'"
    with pytest.raises(DataError, match=told):
        loads(fm.dumps()).transform(visits.drop_columns(["patient"]))


def test_groups_in_a_union_and_of_a_group_given(visits: pa.Table) -> None:
    maps = [{"columns": ["x"], "steps": ["standardize"]}, {"columns": ["x", "ward"], "steps": [
        {"kind": "target", "columns": ["ward"]}]}]  # fmt: skip
    plain = {"dtype": "float64", "columns": {"include": ["x", "ward"]}, "split_by": "group:patient"}
    fm = kafeat.fit({**plain, "steps": [{"kind": "union", "maps": maps}]}, visits, label="y")
    assert fm.config.steps[0].maps[1].columns == ("x", "ward", "patient")
    assert fm.transform(visits).shape == (10 * PATIENTS, 3)
    other = kafeat.Config(**{**plain, "steps": [{"kind": "target", "columns": ["ward"], "group": "x"}]})
    assert other.steps[0].group == "x"
    assert kafeat.Config(**{**plain, "split_by": "time:x", "steps": ["standardize"]}).steps[0] is not None
