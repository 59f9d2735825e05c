"""Target codes where rows repeat: what TargetEncoder of scikit-learn reaches, and no more than one-hot codes leak."""

import warnings

import numpy as np
import pyarrow as pa
import pytest
from sklearn.preprocessing import TargetEncoder

import kafeat
from kafeat.errors import KafeatWarning
from kafeat.maths.content_folds import content_hashes, folds_of
from kafeat.types import Floats


def answers(columns: int, values: int, rows: int, noise: float | None, seed=1) -> tuple[pa.Table, Floats]:
    """Return columns of categories, and a label of their effects and noise; None: of noise alone."""
    rng = np.random.default_rng(seed)
    codes, effects = rng.integers(0, values, (rows, columns)), rng.normal(size=(columns, values))
    of_rows = effects[np.arange(columns), codes].sum(axis=1)
    y = rng.normal(size=rows) if noise is None else of_rows / of_rows.std() + noise * rng.normal(size=rows)
    return pa.table({f"c{j}": [f"v{code}" for code in codes[:, j]] for j in range(columns)}), y


def recipe(table: pa.Table, **more: object) -> dict[str, object]:
    columns = [name for name in table.column_names if name.startswith("c")]
    return {"dtype": "float64", "steps": [{"kind": "target", "columns": columns, **more}]}


def r2(Z: Floats, y: Floats, rows: Floats, labels: Floats) -> float:
    """Return R² on rows with these labels of least squares on Z with the labels y."""
    A, B = (np.column_stack([np.ones(len(X)), X]) for X in (Z, rows))
    left = labels - B @ np.linalg.lstsq(A, y, rcond=None)[0]
    return 1.0 - float((left**2).sum() / ((labels - y.mean()) ** 2).sum())


def scores(table: pa.Table, y: Floats, **more: object) -> tuple[float, float]:
    """Return R² on the first half of the rows, which all is fitted on, and on the other half."""
    n = len(y) // 2
    fm = kafeat.fit(recipe(table, **more), table.slice(0, n), label=y[:n])
    Z = fm.transform(table)
    return r2(Z[:n], y[:n], Z[:n], y[:n]), r2(Z[:n], y[:n], Z[n:], y[n:])


def of_encoder(table: pa.Table, y: Floats) -> float:
    """Return R² on the other half, for the codes of scikit-learn."""
    n, X = len(y) // 2, np.column_stack([table[name].to_pylist() for name in table.column_names])
    Z = TargetEncoder(target_type="continuous").fit(X[:n], y[:n]).transform(X)
    return r2(Z[:n], y[:n], Z[n:], y[n:])


TABLES = [(1, 3, 400), (1, 40, 800), (2, 4, 400), (2, 40, 3000), (5, 5, 2000)]


@pytest.mark.parametrize(("columns", "values", "rows"), TABLES)
@pytest.mark.parametrize("n_folds", [2, 10])
def test_repeated_rows_lose_nothing(columns: int, values: int, rows: int, n_folds: int) -> None:
    """Rows of a fold know 1 − 1/K of what there is to know: half of the rows, for two folds."""
    table, y = answers(columns, values, rows, 0.3)
    assert scores(table, y, n_folds=n_folds)[1] > of_encoder(table, y) - (0.02 if n_folds == 10 else 0.06)


@pytest.mark.sampled
@pytest.mark.parametrize(("columns", "values", "rows"), TABLES)
def test_a_label_of_noise_stays_noise(columns: int, values: int, rows: int) -> None:
    """R² of k = columns·values means of n rows is k/n on them, and −k/n on others.

    That of chance has a standard error of at most √(2/n); here is the mean of eight.
    """
    found = np.array([scores(*answers(columns, values, rows, None, seed)) for seed in range(8)])
    k, n = columns * values, rows / 2
    assert found[:, 0].mean() < 2 * k / n
    assert -2 * k / n - 3 * np.sqrt(2 / n / 8) < found[:, 1].mean() < 3 * np.sqrt(2 / n / 8)


@pytest.mark.parametrize("noise", [0.0, 1e-3])
def test_labels_without_noise_are_learned(noise: float) -> None:
    for columns, values in ((1, 20), (2, 5)):
        table, y = answers(columns, values, 800, noise)
        assert scores(table, y)[1] > 0.99


def test_the_code_is_the_shrunk_mean_of_all_rows() -> None:
    table, y = answers(1, 12, 300, 0.5)
    values, code = np.array(table["c0"].to_pylist()), kafeat.fit(recipe(table, smooth=4.0), table, label=y)
    for value in np.unique(values):
        own = y[values == value]
        expected = (own.sum() + 4.0 * y.mean()) / (len(own) + 4.0)
        [[got]] = code.transform(pa.table({"c0": [value]}))
        assert got == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("copies", [3, 20])
@pytest.mark.parametrize("values", [20, 100])
def test_copies_with_their_labels_tell_nothing(copies: int, values: int) -> None:
    """Of 200 different rows, R² of a column of chance is χ²(1)/200. Means of all rows would have values/200."""
    rng = np.random.default_rng(3)
    table, y = answers(1, values, 200, None)
    table = table.append_column("x", pa.array(rng.normal(size=200)))
    rows = rng.permutation(np.repeat(np.arange(200), copies))
    with warnings.catch_warnings(record=True) as caught:  # of values with one row and its copies
        warnings.simplefilter("always")
        fm = kafeat.fit(recipe(table), table.take(rows), label=y[rows])
    assert bool(caught) == (values == 100)
    assert not fm.chain.steps[0].state["own"]
    Z = fm.transform(table)[:, 1:]
    assert r2(Z, y, Z, y) < 10 / 200


def test_rows_of_a_group_tell_each_other_nothing() -> None:
    """Each of 100 patients has ten equal rows and a label of noise, in one of 40 wards."""
    rng = np.random.default_rng(0)
    ward, y = rng.integers(0, 40, 100), rng.normal(size=100)
    rows = np.repeat(np.arange(100), 10)
    table = pa.table({"c0": [f"w{i}" for i in ward[rows]], "patient": [f"p{i}" for i in rows]})
    labels = y[rows] + 0.3 * rng.normal(size=1000)
    fm = kafeat.fit(recipe(table, group="patient"), table, label=labels)
    assert not fm.chain.steps[0].state["own"]
    Z = fm.transform(table)
    assert r2(Z, labels, Z, labels) < 10 / 100  # χ²(1)/100; means of all rows have 0.4


def test_values_that_are_too_rare_are_told_and_get_the_mean() -> None:
    values = np.array([*np.repeat([f"v{i}" for i in range(40)], 2)])
    table, y = pa.table({"c0": values}), np.random.default_rng(0).normal(size=80)
    with pytest.warns(KafeatWarning, match="target: 40 values got the mean label of all rows"):
        fm = kafeat.fit(recipe(table), table, label=y)
    np.testing.assert_allclose(fm.transform(table), y.mean(), atol=1e-6)


def test_a_rare_content_beside_many_others_is_left_to_the_other_folds() -> None:
    """Values of rows that all differ are coded by the other folds, whatever other values are."""
    rng = np.random.default_rng(0)
    x = np.where(np.arange(600) < 300, 0.0, rng.normal(size=600))
    c = np.where(np.arange(600) < 300, "common", rng.choice(["a", "b", "c"], 600))
    y = rng.normal(size=600)
    table = pa.table({"c0": c, "x": x})
    fm = kafeat.fit(recipe(table, smooth=1.0), table, label=y)
    state, Z = fm.chain.steps[0].state, fm.transform(table)
    assert int(state["own"]) == 1
    folds = folds_of(content_hashes(fm.matrix(table), int(state["seed"])), 10)
    others = [y[(c == c[i]) & (folds != folds[i])] for i in range(300, 600)]
    expected = [(own.sum() + y.mean()) / (len(own) + 1.0) for own in others]
    np.testing.assert_allclose(Z[300:, 1], expected, atol=1e-5)
    assert len(set(Z[:300, 1])) == 1
