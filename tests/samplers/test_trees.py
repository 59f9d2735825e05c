"""Columns of boosted trees: LightGBM's own predictions, by the ensemble that has not seen the row."""

import builtins

import lightgbm
import numpy as np
import pyarrow as pa
import pytest

import kafeat
from kafeat.chain.chain import FittedStep
from kafeat.contract.step import Sample
from kafeat.errors import DataError, KafeatWarning, UsageError
from kafeat.maths import boosting, tree_columns
from kafeat.maths.boosting import fit_trees
from kafeat.maths.content_folds import content_hashes, folds_of
from kafeat.maths.tree_columns import TreeColumns, group_ends
from kafeat.samplers.trees import Trees
from kafeat.types import Array, Floats, State

SMALL = {"n_trees": 12, "max_leaves": 7, "learning_rate": 0.2, "n_folds": 3}


def table(n: int = 900, seed: int = 0) -> tuple[Floats, Array]:
    """Rows with missing numbers, of which column 3 holds the codes of five categories, and a label of numbers."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 4))
    X[:, 3] = rng.integers(0, 5, n)
    y = X[:, 0] * (X[:, 1] > 0) + np.array([1.0, -2.0, 0.5, 2.0, -1.0])[X[:, 3].astype(int)]
    X[rng.random(n) < 0.1, 1] = np.nan
    return X, y + 0.1 * rng.standard_normal(n)


def fitted(X: Floats, y: Array, **parameters: object) -> tuple[Trees, State]:
    step = Trees(**{**SMALL, **parameters})
    return step, step.fit(Sample(X, y, len(X)), np.random.default_rng(1))


def columns(step: Trees, state: State, X: Floats, order: str = "C") -> Floats:
    transform = step.bind(state, X.shape[1], X.dtype)
    out = np.full((len(X), step.n_components), np.nan, X.dtype, order=order)
    transform.apply(X, out, transform.scratch(len(X)))
    return out


def standardized(Z: Floats, scale: float) -> Floats:
    return (Z - Z.mean(axis=0)) / Z.std(axis=0) * scale


@pytest.mark.parametrize("coded", [{}, {3: 5}])
def test_one_column_is_the_prediction_of_the_library(coded, monkeypatch):
    """Float32 leaves are off by ε/2 each: T of them by T·ε/2 of the largest, at most; 4 is for mean and spread."""
    made: list[tuple[lightgbm.Booster, Floats]] = []
    train, codes = lightgbm.train, boosting._codes
    monkeypatch.setattr(lightgbm, "train", lambda *a, **more: made.append(train(*a, **more)) or made[-1])
    ranks: list[tuple] = []
    monkeypatch.setattr(boosting, "_codes", lambda X, e, r: ranks.append((e, r)) or codes(X, e, r))
    X, y = table()
    step = Trees(**SMALL, n_components=1)
    state = fit_trees(X, y, step, coded, np.random.default_rng(1))
    folds = folds_of(content_hashes(X, int(state["seed"])), 3)
    expected = np.empty(len(X))
    for fold, (booster, (edges, of_fold)) in enumerate(zip(made, ranks, strict=True)):
        rows = folds == fold
        inputs = codes(X[rows].astype(np.float32), edges, of_fold)
        expected[rows] = booster.predict(inputs, raw_score=True)
    largest = np.abs(state["leaves"]).max()
    tolerance = 4 * SMALL["n_trees"] * np.finfo(np.float32).eps * largest
    found, want = columns(step, state, X)[:, 0], standardized(expected, step.scale)
    np.testing.assert_allclose(found, want, rtol=0, atol=tolerance)
    assert set(state["features"].ravel() % 2) == {0, 1}, "missing numbers go both ways"


def test_the_columns_of_an_output_are_the_groups_of_its_trees_in_order() -> None:
    X, y = table()
    (one, whole), (four, parts) = (fitted(X, y, n_components=D) for D in (1, 4))
    assert group_ends(1, 12, 4).tolist() == [3, 6, 9, 12]
    assert group_ends(3, 5, 4).tolist() == [2, 5, 10, 15]
    Z = columns(four, parts, X)
    np.testing.assert_allclose(Z.mean(axis=0), 0.0, atol=1e-6)
    np.testing.assert_allclose(Z.std(axis=0), four.scale, rtol=1e-5)
    # leaves of both fits are those of the same trees, each times the factor of its column
    factors = (parts["leaves"] / np.where(whole["leaves"] == 0.0, 1.0, whole["leaves"])).max(axis=(0, 1, 3))
    total = (Z / factors[[0, 3, 6, 9]]).sum(axis=1)
    np.testing.assert_allclose(total, columns(one, whole, X)[:, 0], rtol=0, atol=1e-5)


@pytest.mark.sampled
@pytest.mark.parametrize("n_folds", [2, 4, 6, 8])
@pytest.mark.parametrize("classes", [None, 2, 5])
def test_labels_of_noise_are_not_predicted_on_the_rows_of_the_fit(n_folds: int, classes: int | None) -> None:
    """n·R² of D columns is χ²(D) if they know nothing of the label: 5 standard deviations."""
    rng, n, D = np.random.default_rng(n_folds), 1500, 10
    X = rng.standard_normal((n, 5))
    y = rng.standard_normal(n) if classes is None else rng.integers(0, classes, n)
    step, state = fitted(X, y, n_components=D, n_folds=n_folds)
    most = (D + 5.0 * np.sqrt(2.0 * D)) / n
    assert _explained(columns(step, state, X), y) < most
    # ensembles that have seen the label explain it
    transform, Z = TreeColumns(state, 5, np.dtype(float)), np.empty((n, D))
    own = folds_of(content_hashes(X, int(state["seed"])), n_folds)
    transform.apply_folds(X, (own + 1) % n_folds, Z, transform.scratch(n))
    assert _explained(Z, y) > 3 * most


@pytest.mark.parametrize("scaler", ["standardize", "quantile", "pca"])
def test_a_row_has_the_fold_of_the_fit_behind_a_scaler_in_float32(scaler: str) -> None:
    """The bound as above: an ensemble that has seen a row's label would explain it."""
    rng, n, D = np.random.default_rng(0), 1500, 10
    X, y = 100.0 + rng.standard_normal((n, 5)), rng.standard_normal(n)
    step = {"kind": "trees", **SMALL, "n_components": D}
    for steps in ([scaler, step], [{"kind": "union", "maps": [{"steps": [scaler, step]}]}]):
        fm = kafeat.fit({"seed": 1, "steps": steps}, X, y)
        assert fm.dtype == "float32"
        assert _explained(fm.transform(X).astype(float), y) < (D + 5.0 * np.sqrt(2.0 * D)) / n


def _explained(Z: Floats, y: Array) -> float:
    target = y - y.mean() if y.dtype.kind == "f" else (y == 1) - np.mean(y == 1)
    Z = Z - Z.mean(axis=0)
    rest = target - Z @ np.linalg.lstsq(Z, target, rcond=None)[0]
    return 1.0 - float((rest**2).sum() / (target**2).sum())


@pytest.mark.parametrize("group", [(), (4,)])
def test_a_new_row_or_group_has_the_mean_of_all_ensembles_and_one_of_the_fit_its_own(group):
    X, y = table()
    rows = np.column_stack([table(seed=1)[0], np.arange(len(X)) // 3])
    X = np.column_stack([X, np.arange(len(X)) // 3])
    rows[450:, 4] += 1000.0  # groups that are new; the others are those of the fit
    step = Trees(**SMALL, n_components=2)
    state = fit_trees(X, y, step, {}, np.random.default_rng(1), np.array(group, np.int64))
    assert state["seen"].nbytes == 8 * len(np.unique(X[:, 4] if group else X, axis=0))
    older = {name: array for name, array in state.items() if name != "seen"}
    assert columns(step, state, X).tobytes() == columns(step, older, X).tobytes()
    transform, each = step.bind(state, 5, X.dtype), []
    for fold in range(3):
        each.append(np.empty((len(rows), 2)))
        transform.apply_folds(rows, np.full(len(rows), fold), each[-1], transform.scratch(len(rows)))
    found, own = columns(step, state, rows), columns(step, older, rows)
    new = np.arange(len(rows)) >= 450 if group else np.ones(len(rows), dtype=bool)
    np.testing.assert_allclose(found[new], np.mean(each, axis=0)[new], rtol=0, atol=1e-15)
    assert found[~new].tobytes() == own[~new].tobytes()
    assert columns(step, state, rows[200:777]).tobytes() == found[200:777].tobytes()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("max_leaves", [2, 32])
def test_numpy_writes_the_bytes_of_the_compiled_loop(dtype, order, max_leaves, monkeypatch) -> None:
    X, y = table()
    step = Trees(**{**SMALL, "max_leaves": max_leaves}, n_components=5, min_leaf_rows=2)
    state = fit_trees(X, np.digitize(y, [-1.0, 1.0]), step, {3: 5}, np.random.default_rng(1))
    X[:40, 3], X[40:80, 3], X[0, 0], X[1, 0] = -1.0, 7.0, np.inf, -np.inf  # unknown categories
    X = X.astype(dtype)
    for rows in (1, 15, 16, 17, 64, 200, len(X)):
        compiled = columns(step, state, X[:rows], order)
        with monkeypatch.context() as patch:
            patch.setattr(tree_columns, "loop", lambda *_, **__: None)
            assert columns(step, state, X[:rows], order).tobytes() == compiled.tobytes(), rows
    assert np.isfinite(compiled).all()


def test_a_row_in_float32_reaches_the_same_leaves() -> None:
    X, y = table()
    X = X[:, [0, 2]] * [1.0, 1e5]
    fm = kafeat.fit({"steps": [{"kind": "trees", **SMALL, "n_components": 4}]}, X, y)
    assert fm.transform(X).tobytes() == fm.transform(X.astype(np.float32)).tobytes()


def test_rows_of_a_group_share_a_fold() -> None:
    X, y = table()
    X = np.column_stack([X, np.arange(len(X)) // 3])
    state = fit_trees(X, y, Trees(**SMALL, n_components=2), {}, np.random.default_rng(1), np.array([4]))
    sizes = state["fold_rows"]
    assert sizes.sum() == len(X)
    assert (sizes % 3 == 0).all()
    assert 4 not in state["columns"]


def test_near_copies_tell_nothing_if_a_group_says_so() -> None:
    """Labels of noise, each of ten rows that nearly are one: by content the ensembles of other folds know them."""
    rng, patient = np.random.default_rng(0), np.repeat(np.arange(200), 10)
    near = [rng.normal(size=200)[patient] + 1e-3 * rng.normal(size=2000) for _ in "ab"]
    table = pa.table([*near, [f"p{i}" for i in patient]], names=["a", "b", "patient"])
    y = rng.normal(size=200)[patient]
    step = {"kind": "trees", **SMALL, "n_components": 1}
    maps = [{"columns": ["a", "b"], "steps": [step]}, {"columns": ["a"], "steps": ["standardize"]}]
    plain = {"columns": {"include": ["a", "b"]}, "steps": [step]}
    found = {}
    for split_by in (None, "group:patient"):
        for name, steps in (("alone", [step]), ("union", [{"kind": "union", "maps": maps}])):
            fm = kafeat.fit({**plain, "split_by": split_by, "steps": steps}, table, y)
            found[split_by, name] = abs(np.corrcoef(fm.transform(table)[:, 0], y)[0, 1])
    assert min(found[None, "alone"], found[None, "union"]) > 0.5
    # 200 labels that are not known: three standard errors of a correlation
    assert max(found["group:patient", "alone"], found["group:patient", "union"]) < 3 / np.sqrt(200)
    behind = {**plain, "split_by": "group:patient", "steps": ["standardize", step]}
    with pytest.raises(DataError, match=r"'patient': expected plain numbers, got categories.*union"):
        kafeat.fit(behind, table, y)
    taken = {"kind": "target", "columns": ["b"]}
    told = r"trees: columns: expected names of features, got 'patient'; .* union"
    with pytest.raises(DataError, match=told):
        kafeat.fit({**plain, "split_by": "group:patient", "steps": [taken, step]}, table, y)


def test_few_groups_are_told() -> None:
    rng = np.random.default_rng(0)
    X = pa.table({"x": rng.standard_normal(600), "g": rng.integers(0, 4, 600)})
    maps = [{"steps": [{"kind": "trees", **SMALL, "n_folds": 8, "n_components": 1, "group": "g"}]}]
    for steps in (maps[0]["steps"], [{"kind": "union", "maps": maps}]):
        with pytest.warns(KafeatWarning, match="expected about 75 rows in each of 8 folds, got from 0 "):
            kafeat.fit({"steps": steps}, X, X["x"].to_numpy() + rng.standard_normal(600))


def best_r2(X: Floats, y: Array) -> float:
    """Return R² of the mean label of equal rows: no function of the row has more."""
    _, places = np.unique(X, axis=0, return_inverse=True)
    places = places.reshape(-1)  # NumPy 2.0 returns a column
    means = np.bincount(places, y) / np.bincount(places)
    return 1.0 - float(((y - means[places]) ** 2).mean() / y.var())


@pytest.mark.parametrize(("width", "values"), [(1, 20), (2, 2), (2, 5)])
def test_few_different_rows_lose_nothing(width: int, values: int) -> None:
    rng = np.random.default_rng(1)
    X = rng.integers(0, values, (800, width)).astype(float)
    effects = rng.standard_normal((values,) * 2)
    y = effects[X[:, 0].astype(int), X[:, -1].astype(int)] + 0.5 * rng.standard_normal(800)
    step, state = fitted(X[:400], y[:400], n_components=4, n_trees=100)
    Z = np.column_stack([columns(step, state, X), np.ones(800)])
    w = np.linalg.lstsq(Z[:400], y[:400], rcond=None)[0]
    found = 1.0 - np.mean((y[400:] - Z[400:] @ w) ** 2) / y[400:].var()
    assert int(state["own"]) > 350
    assert found > best_r2(X[400:], y[400:]) - 2 * len(np.unique(X, axis=0)) / 400
    FittedStep.checked(step, state, width)
    # noise: k means of n rows have an R² of k/n
    noise = rng.standard_normal(400)
    step, state = fitted(X[:400], noise, n_components=4, n_trees=100)
    assert _explained(columns(step, state, X[:400]), noise) < 2 * len(np.unique(X, axis=0)) / 400


def test_rows_that_repeat_among_many_others_keep_their_fold() -> None:
    """So do rows of a group: the ensemble that they go through has not seen them."""
    rng = np.random.default_rng(0)
    X, places = rng.standard_normal((100, 3)), np.repeat(np.arange(100), 8)
    y = rng.standard_normal(100)[places] + 0.3 * rng.standard_normal(800)
    few = rng.integers(0, 4, (800, 1)).astype(float)
    for rows, group in ((X[places], []), (few, [0])):
        step, of_group = Trees(**SMALL, n_components=2), np.array(group, int)
        state = fit_trees(rows, y, step, {}, np.random.default_rng(1), of_group)
        assert int(state["own"]) == 0
        assert len(state["seen"]) == len(np.unique(rows, axis=0))


@pytest.mark.parametrize(("labels", "D", "outputs"), [
    (np.repeat(["a", "b"], 450).astype(object), 1, 1),
    (np.arange(900) % 7, 8, 7),
    (np.arange(900) % 7, 3, 3),  # more classes than columns
    (np.where(np.arange(900) < 2, 2, np.arange(900) % 2), 4, 3),  # a class that folds may lack
    (np.arange(900) == 5, 2, 1),  # one row of a class: its fold's ensemble has seen one class only
    (np.random.default_rng(0).standard_normal((900, 2)), 5, 2),
    (np.random.default_rng(0).standard_normal((900, 6)), 5, 5),
])  # fmt: skip
def test_every_label_has_its_outputs(labels: Array, D: int, outputs: int) -> None:
    X, _ = table()
    step, state = fitted(X, labels, n_components=D)
    assert state["leaves"].shape == (3, outputs, 12, 7)
    FittedStep.checked(step, state, 4)
    assert np.isfinite(columns(step, state, X)).all()


def test_categories_are_read_by_name_and_unknown_ones_are_missing() -> None:
    rng = np.random.default_rng(0)
    towns = rng.choice([f"t{i:02}" for i in range(40)], 2000)
    worth = {town: rng.standard_normal() for town in sorted(set(towns))}
    y = np.array([worth[town] for town in towns])
    data = pa.table({"town": towns, "x": rng.standard_normal(2000), "y": y})
    step = {"kind": "trees", **SMALL, "n_components": 1, "n_trees": 40, "categories": ["town"]}
    fm = kafeat.fit({"steps": [step]}, data, "y")
    Z = fm.transform(data)[:, 0]
    assert np.corrcoef(Z, y)[0, 1] > 0.95
    new = pa.table({"town": ["elsewhere", None], "x": [0.0, None]})
    assert np.isfinite(fm.transform(new)).all()


def _coded() -> tuple[Trees, dict[str, Array]]:
    X, y = table()
    step = Trees(**SMALL, n_components=2, categories=("c",))
    return step, dict(fit_trees(X, y, step, {3: 5}, np.random.default_rng(1)))


def test_numbers_that_pass_the_checks_do_no_harm() -> None:
    """Whatever the order of the edges and the leaves that nodes clear, every row comes to a leaf."""
    step, state = _coded()
    X, rng = table()[0].astype(np.float32), np.random.default_rng(2)
    for _ in range(20):
        state["edges"] = rng.standard_normal(state["edges"].shape).astype(np.float32)
        state["masks"] = rng.integers(-(1 << 31), 0, state["masks"].shape, np.int32)
        state["thresholds"] = rng.integers(0, 256, state["thresholds"].shape, np.uint8)
        state["features"] = rng.integers(0, 2 * len(state["columns"]), state["features"].shape, np.int32)
        FittedStep.checked(step, state, 4)
        Z = columns(step, state, X)
        assert np.isfinite(Z).all()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(tree_columns, "loop", lambda *_, **__: None)
            assert columns(step, state, X).tobytes() == Z.tobytes()


def test_too_many_trees_are_refused() -> None:
    X, y = table()
    told = r"expected at most 50 MB of trees, got 122 MB \(20 folds of 5,000 trees for each of 3 outputs\)"
    with pytest.raises(DataError, match=told):
        fitted(X, np.digitize(y, [-1, 1]), n_folds=20, n_trees=5000, max_leaves=32, n_components=3)


def test_more_columns_than_trees_are_refused() -> None:
    X, y = table()
    told = "n_components: expected at most 12, as there are 12 trees for each of 1 outputs, got 13: raise n_trees"
    with pytest.raises(DataError, match=told):
        fitted(X, y, n_components=13)


@pytest.mark.parametrize(("error", "told"), [
    (ImportError("No module named 'lightgbm'"), r"pip install 'kafeat\[trees\]'"),
    (OSError("libgomp.so.1: cannot open shared object file"), "apt-get install libgomp1"),
])  # fmt: skip
def test_without_the_library_the_error_names_the_remedy(error, told, monkeypatch):
    plain = builtins.__import__

    def refuse(name: str, *rest: object) -> object:
        if name == "lightgbm":
            raise error
        return plain(name, *rest)

    X, y = table()
    step, state = fitted(X, y, n_components=2)
    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(UsageError, match=told):
        fitted(X, y, n_components=2)
    assert np.isfinite(columns(step, state, X)).all(), "a map that is fitted needs no library"


def test_histograms_that_are_made_again_give_the_same_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = table()
    wide = np.hstack([X, np.random.default_rng(2).standard_normal((len(X), 60))])
    step, kept = fitted(wide, y, n_components=4)
    monkeypatch.setattr(boosting, "_HISTOGRAMS", 0.1)  # MB: of two leaves, as few as there can be
    _, again = fitted(wide, y, n_components=4)
    assert not np.array_equal(kept["leaves"], np.zeros_like(kept["leaves"]))
    # a histogram is summed, or is the difference of two: sums of some hundred numbers, rounded apart
    np.testing.assert_allclose(columns(step, again, wide), columns(step, kept, wide), rtol=1e-4, atol=1e-6)
