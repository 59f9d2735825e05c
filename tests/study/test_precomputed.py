"""Precomputed kernels: the square matrix of all rows gives what the kernel of the rows gives."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.metrics.pairwise import rbf_kernel

import kafeat
from kafeat.errors import DataError, UsageError
from tests.recipes import words

N, D, GAMMA = 240, 5, 0.1
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, D))
K = rbf_kernel(X, gamma=GAMMA)
Y = (X[:, 0] * X[:, 1] > 0).astype(int)
COLUMNS = {"exclude": ["y", "part"]}
FEW = {"landmarks": "uniform", "n_components": 24}
OF_ROWS = {"columns": COLUMNS, "dtype": "float64", "steps": [{"kind": "nystroem", "gamma": GAMMA, **FEW}]}
GIVEN = {"kind": "nystroem", "kernel": "precomputed", **FEW}
OF_MATRIX = {"columns": COLUMNS, "dtype": "float64", "steps": [GIVEN]}


def table(values):
    part = np.where(np.arange(N) % 4, "train", "test")
    return pa.table({f"x{i:03}": values[:, i] for i in range(values.shape[1])} | {"y": Y, "part": part})


def of_both(*last, **options):
    """Return the reports of an evaluation of the matrix, and of one of the rows."""
    given = ((OF_MATRIX, K), (OF_ROWS, X))
    configs = [({**config, "steps": [*config["steps"], *last]}, table(values)) for config, values in given]
    return [kafeat.evaluate(config=one, data=data, label="y", jobs=1, **options) for one, data in configs]


@pytest.mark.sampled
@pytest.mark.parametrize("options", [
    {}, {"splits": 2}, {"split": "part"}, {"seeds": 2, "exact_rows": 50}, {"learner": "linear_svc"},
    {"sweep": {"n_components": [8, 24]}}, {"scoring": "auc", "learner": "logistic", "penalty": 1.0},
])  # fmt: skip
def test_errors_and_scores_are_those_of_the_kernel_itself(options):
    ours, rows = (found["records"] for found in of_both(**options))
    assert len(ours) == len(rows)
    for mine, other in zip(ours, rows, strict=True):
        for key in ("relative_frobenius", "relative_spectral", "max_abs_error", "kernel_mean", "bias"):
            assert mine[key] == pytest.approx(other[key], rel=1e-9, abs=1e-12)
        for key in words("score_map score_exact rows_exact rows_train rows_test rows n_components"):
            assert mine[key] == other[key]
        train, validation = mine["rows_train"], mine.get("rows_validation") or 0
        assert mine["n_features_in"] in (train, train - validation)


def test_the_raw_columns_are_those_of_the_rows_that_are_fitted_on(tmp_path):
    pq.write_table(table(K), tmp_path / "K.parquet")
    train = [f"x{i:03}" for i in range(N) if i % 4]
    given = {"columns": {"include": train}, "steps": [{"kind": "projection", "n_components": 4}]}
    ours, other = (
        kafeat.evaluate(config=config, data=tmp_path / "K.parquet", label="y", split="part", jobs=1)
        for config in (OF_MATRIX, given)
    )
    assert (ours["n_features_in"], ours["score_raw"]) == (len(train), other["score_raw"])


def test_a_predictor_after_it_is_scored():
    ours, rows = of_both({"kind": "ridge"})
    assert ours["score_model"] == rows["score_model"]


def test_a_matrix_in_memory_needs_no_label():
    config = {"steps": OF_MATRIX["steps"]}
    assert kafeat.evaluate(config=config, data=K, jobs=1)["relative_frobenius"] < 0.3


def test_what_is_no_kernel_matrix_of_all_rows_is_refused(tmp_path):
    told = "expected the square kernel matrix of all rows, .* got 240 rows and 239 col"
    with pytest.raises(DataError, match=told):
        kafeat.evaluate(config=OF_MATRIX, data=table(K[:, 1:]), label="y", jobs=1)
    broken = K.copy()
    broken[3, 4] = np.nan
    with pytest.raises(DataError, match="row 4 .*column 'x004': expected a finite number, got nan"):
        kafeat.evaluate(config=OF_MATRIX, data=table(broken), label="y", jobs=1)
    with pytest.raises(DataError, match="expected a symmetric kernel matrix"):
        kafeat.evaluate(config=OF_MATRIX, data=table(np.triu(K)), label="y", jobs=1)


def test_recipes_of_other_columns_are_refused():
    told = "map 2: expected a recipe whose first step has `kernel: precomputed`"
    with pytest.raises(UsageError, match=told):
        kafeat.evaluate(config=[OF_MATRIX, OF_ROWS], data=table(K), label="y", jobs=1)
    with pytest.raises(UsageError, match="expected recipes with the same columns, got others"):
        others = {**OF_MATRIX, "columns": {"exclude": ["x000", "y", "part"]}}
        kafeat.evaluate(config=[OF_MATRIX, others], data=table(K), label="y", jobs=1)
    fitted = kafeat.fit(OF_MATRIX, table(K))
    told = "no exact kernel beyond the given columns: .* of all rows to `kafeat evaluate --config`"
    later = {**OF_MATRIX, "steps": ["standardize", GIVEN]}
    for asked, why in (
        ({"model": fitted}, told),
        ({"config": later}, "precomputed: there is no exact kernel"),
    ):
        with pytest.raises(UsageError, match=why):
            kafeat.evaluate(data=table(K), label="y", jobs=1, **asked)
