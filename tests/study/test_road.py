"""Evaluations read rows on the road of `transform`: texts stay texts, and sparse rows give the bytes of an output."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.metrics import r2_score
from threadpoolctl import threadpool_limits

import kafeat
from kafeat.chain.tiles import LEAST_ROWS, MOST_ROWS
from kafeat.contract.tile import SparseRows, TextRows
from kafeat.jobs.fit.map_on_data import MapOnData
from kafeat.jobs.fit.reread import rereadable
from kafeat.study.models import score_predictions
from tests.samplers.test_text import sentences

N = 120
TEXT = {"kind": "text", "columns": ["review"], "n_components": 16}
MAPS = {
    "chain": [TEXT, "standardize", {"kind": "fourier", "n_components": 32}, "ridge"],
    "union": [
        {"kind": "union", "maps": [
            {"columns": ["review"], "steps": [TEXT, {"kind": "nystroem", "n_components": 24}]},
            {"columns": ["a", "b"], "steps": ["standardize", {"kind": "fourier", "n_components": 16}]},
        ]},
        "ridge",
    ],
    "product": [
        {"kind": "product", "n_components": 64, "maps": [
            {"columns": ["review"], "steps": [TEXT]}, {"columns": ["a", "b"], "steps": ["standardize"]},
        ]},
        "ridge",
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
def table() -> pa.Table:
    rng = np.random.default_rng(1)
    a, b, texts = rng.normal(size=N), rng.normal(size=N), sentences(N)
    y = np.sin(2.0 * a) + np.array([len(text or "") for text in texts]) / 20.0
    return pa.table({"a": a, "review": texts, "b": b, "y": y})


def figures(report: Any) -> dict[str, Any]:
    """All that an evaluation says but for costs."""
    record, costs = report["records"][0], ("seconds", "bytes")
    return {key: record[key] for key in record if not any(cost in key for cost in costs)}


@pytest.mark.sampled
@pytest.mark.parametrize("name", list(MAPS))
def test_no_evaluation_makes_texts_dense(name, table, tmp_path, monkeypatch):
    recipe = {"steps": MAPS[name]}
    model = kafeat.fit(recipe, table, label="y")
    # The oracle: the same rows as matrices of counts.
    X, dtype = table.drop_columns(["y"]), np.dtype(model.dtype)
    counts = model.matrix(X)
    exact = model.chain.exact(counts[:50], counts[50:90], dtype)
    numbers = model.chain.numbers(counts)

    def never(self: TextRows, out: object = None) -> None:
        raise AssertionError("texts were made dense")

    monkeypatch.setattr(TextRows, "dense", never)
    pq.write_table(table, tmp_path / "t.parquet")
    model.save(tmp_path / "m.joblib")
    page = {"report": str(tmp_path / "page")} if name == "chain" else {}  # most of the time is drawing
    kafeat.evaluate(config=recipe, data=table, label="y", rows=60, exact_rows=60, jobs=1, **page)
    [scored] = score_predictions([str(tmp_path / "m.joblib")], str(tmp_path / "t.parquet"))
    assert scored.scored.tested["model"]["score"] == pytest.approx(
        r2_score(table["y"], model.predict(X)), abs=1e-9
    )
    source, columns = model.source(X)
    rows = source.decoded(columns, model.input_dtype, model.chunk_rows)
    assert isinstance(rows, TextRows)
    np.testing.assert_array_equal(model.chain.exact(rows[:50], rows[50:90], dtype), exact)
    np.testing.assert_array_equal(model.exact_kernel(X[:50], X[50:90]), exact)
    np.testing.assert_array_equal(model.chain.numbers(rows), numbers)


def test_figures_do_not_depend_on_jobs_or_chunks(table: pa.Table) -> None:
    recipe = {"steps": MAPS["chain"], "chunk_rows": LEAST_ROWS}
    found = []
    for jobs, threads, rows in ((1, 1, LEAST_ROWS), (3, 2, LEAST_ROWS), (3, 1, 8 * MOST_ROWS)):
        with threadpool_limits(limits=threads, user_api="blas"):  # ours, and those of BLAS
            asked = {"data": table, "label": "y", "exact_rows": 100, "jobs": jobs}
            found.append(kafeat.evaluate(config={**recipe, "chunk_rows": rows}, **asked))
    one, three, whole = found
    assert figures(one) == figures(three)
    assert one["score_map"] == pytest.approx(whole["score_map"], abs=1e-6)


@pytest.mark.parametrize("jobs", [1, 3])
def test_sparse_rows_give_the_bytes_of_transform_and_predict(tmp_path, monkeypatch, jobs):
    rng = np.random.default_rng(0)
    lines = []
    for _ in range(3 * LEAST_ROWS):
        places = np.sort(rng.choice(600, 6, replace=False)) + 1
        lines.append(f"{rng.normal():.3f} " + " ".join(f"{j}:{rng.normal():.3f}" for j in places))
    path = tmp_path / "t.libsvm"
    path.write_text("\n".join(lines) + "\n")
    config = {"columns": {"exclude": ["label"]}, "steps": [{"kind": "fourier", "n_components": 32}, "ridge"]}
    fm, n = kafeat.fit(config, path, label="label"), len(lines)
    kafeat.transform(path, tmp_path / "z.npy", model=fm, features=True)
    kafeat.transform(path, tmp_path / "p.npy", model=fm, output_dtype="float64")
    Z, predicted = np.load(tmp_path / "z.npy"), np.load(tmp_path / "p.npy")
    dense_rows: list[int] = []
    made_dense = SparseRows.dense
    monkeypatch.setattr(
        SparseRows, "dense", lambda self, out=None: dense_rows.append(len(self)) or made_dense(self, out)
    )
    every = np.ones(n, dtype=bool)
    with rereadable(path, None) as data:
        subject = MapOnData(fm, data, jobs=jobs, reserved=["label"])
        numbers, made = subject.predictions(fm, every)
        np.testing.assert_array_equal(numbers, np.arange(n))
        np.testing.assert_array_equal(made, predicted)
        np.testing.assert_array_equal(subject.features().joined(every)[1], Z)
        some = np.array([1, 5, n - 1])
        numbers, X = subject.select_rows(np.isin(np.arange(n), some))
    np.testing.assert_array_equal(numbers, some)
    assert isinstance(X, SparseRows)
    assert max(dense_rows, default=0) <= MOST_ROWS
