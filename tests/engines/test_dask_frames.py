"""kafeat.dask: partitions through a map, on every scheduler."""

import doctest
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

dask = pytest.importorskip("dask")
dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")
import dask.array as da  # noqa: E402
import pandas as pd  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402

import kafeat.dask  # noqa: E402
from kafeat.errors import DataError, UsageError  # noqa: E402
from kafeat.io.options import OutputOptions  # noqa: E402
from kafeat.model.feature_map import FeatureMap  # noqa: E402
from tests.engines.maps import LABELS, NAMES, WIDTH, features, predicting  # noqa: E402
from tests.jobs.files import transform_file  # noqa: E402

# Dask itself calls pandas in ways that pandas 3.1 will no longer take.
pytestmark = pytest.mark.filterwarnings("ignore:The inplace keyword in DataFrame:DeprecationWarning:dask")


@pytest.fixture(scope="module")
def frame(rows: pa.Table) -> pd.DataFrame:
    """With an index of its own."""
    return rows.to_pandas().set_index(np.arange(10, 1510))


@pytest.fixture(scope="module")
def ddf(frame: pd.DataFrame) -> dd.DataFrame:
    return dd.from_pandas(frame, npartitions=3)


def expected(fm: FeatureMap, ddf: dd.DataFrame, order: str = "F") -> np.ndarray:
    parts = [part.compute(scheduler="sync") for part in ddf.partitions]
    tables = [pa.Table.from_pandas(part, preserve_index=False) for part in parts]
    return np.concatenate([features(fm, table, table.num_rows, order) for table in tables])


@pytest.mark.parametrize("scheduler", ["sync", "threads", "processes"])
def test_a_partition_has_the_bytes_of_its_rows(by_name, ddf, frame, scheduler):
    made = kafeat.dask.transform(ddf, by_name)
    assert made.divisions == ddf.divisions
    done = made.compute(scheduler=scheduler)
    assert list(done.columns) == NAMES
    pd.testing.assert_index_equal(done.index, frame.index)
    assert done.to_numpy().tobytes() == expected(by_name, ddf).tobytes()
    pd.testing.assert_frame_equal(done.iloc[:0], made._meta)


@pytest.mark.parametrize("kind", LABELS)
def test_predictions_are_those_of_a_file(rows, ddf, kind, tmp_path):
    fm = predicting(rows, LABELS[kind](rows))
    made = kafeat.dask.predict(ddf, fm, keep=["id"])
    done = made.compute(scheduler="sync")
    pd.testing.assert_frame_equal(done.iloc[:0], made._meta)
    parts = []
    for part in ddf.partitions:
        pq.write_table(pa.Table.from_pandas(part.compute(), preserve_index=False), tmp_path / "in.parquet")
        writing = OutputOptions(keep=["id"], fsync=False)
        transform_file(fm, tmp_path / "in.parquet", tmp_path / "out.parquet", writing=writing)
        parts.append(pq.read_table(tmp_path / "out.parquet").to_pandas())
    file = pd.concat(parts).set_index(done.index)
    pd.testing.assert_frame_equal(done.iloc[:, 1:], file.iloc[:, 1:], check_exact=True)
    small = kafeat.dask.predict(ddf, fm, prefix="m_", dtype="float32").compute(scheduler="sync")
    assert list(small.columns) == [f"m_{name}" for name in file.columns[1:]]
    assert small.iloc[:, -1].dtype == np.float32


def test_predictions_of_arrays_are_numbers(rows):
    X = np.column_stack([rows[name].to_numpy() for name in ("x", "y", "z.z")])
    config = {"steps": [{"kind": "standardize"}, {"kind": "ridge"}]}
    fm = kafeat.fit(config, X, label=X[:, 0] > 0.0)
    made = kafeat.dask.predict(da.from_array(X, chunks=(500, 2)), fm)
    assert made.shape == (1500, 2)
    np.testing.assert_allclose(made.compute(scheduler="sync"), fm.predict_proba(X), rtol=1e-12)


def test_predictions_have_names_of_their_own(rows, ddf):
    fm = predicting(rows, LABELS["boolean"](rows))
    clash = ddf.rename(columns={"id": "prediction"})
    with pytest.raises(UsageError, match="other names than the predictions, got prediction; choose another"):
        kafeat.dask.predict(clash, fm, keep=["prediction"])


def test_features_of_unit_variance(by_name, ddf):
    made = kafeat.dask.transform(ddf, by_name, unit_variance=True).compute(scheduler="sync")
    plain = expected(by_name, ddf)
    assert made.to_numpy().tobytes() == (plain * np.float32(by_name.unit_scale)).tobytes()


def test_kept_columns_come_first_as_they_were(by_name, ddf):
    made = kafeat.dask.transform(ddf, by_name, keep=["day", "id"], prefix="z").compute(scheduler="sync")
    assert list(made.columns) == ["day", "id", *(f"z{i}" for i in range(WIDTH))]
    pd.testing.assert_frame_equal(made[["day", "id"]], ddf[["day", "id"]].compute(scheduler="sync"))
    every = kafeat.dask.transform(ddf, by_name, keep="all").compute(scheduler="sync")
    assert list(every.columns) == [*ddf.columns, *NAMES]
    assert (every["f5"] == made["z5"]).all()


def test_lists_go_through_parquet(tmp_path, by_name, ddf):
    made = kafeat.dask.transform(ddf, by_name, keep=["id"], layout="list", dtype="float64")
    made.to_parquet(tmp_path / "features")
    read = pq.read_table(tmp_path / "features")
    flat = read["features"].combine_chunks().flatten().to_numpy().reshape(-1, WIDTH)
    assert flat.dtype == np.float64
    assert (flat == expected(by_name, ddf, "C").astype(np.float64)).all()
    assert read["id"].to_pylist() == ddf["id"].compute(scheduler="sync").to_list()


def test_a_column_of_lists_is_read(tmp_path):
    X = np.random.default_rng(1).standard_normal((50, 4)).astype(np.float32)
    table = pa.table({"v": pa.array(list(X), pa.list_(pa.float32())), "row": range(50)})
    pq.write_table(table, tmp_path / "v.parquet")
    config = {"columns": {"include": ["v"]}, "steps": [{"kind": "projection", "n_components": 3}]}
    fm = kafeat.fit(config, table)
    ddf = dd.read_parquet(tmp_path / "v.parquet")
    made = kafeat.dask.transform(ddf, fm).compute(scheduler="sync")
    assert made.to_numpy().tobytes() == features(fm, X, 50).tobytes()
    # Objects of which there are none do not show that they would be lists.
    assert kafeat.dask.transform(ddf[ddf["row"] > 50], fm).compute(scheduler="sync").shape == (0, 3)


@pytest.mark.parametrize("layout", ["columns", "list"])
def test_one_partition_has_the_bytes_of_the_file(tmp_path, digits_table, layout):
    """Wide enough that the two memory orders differ in their last bits."""
    pq.write_table(digits_table, tmp_path / "in.parquet")
    fm = kafeat.fit({"steps": [{"kind": "projection", "n_components": 400}]}, digits_table, label="label")
    writing = OutputOptions(keep=["label"], layout=layout)
    transform_file(fm, tmp_path / "in.parquet", tmp_path / "out.parquet", writing=writing)
    made = kafeat.dask.transform(dd.read_parquet(tmp_path / "in.parquet"), fm, keep=["label"], layout=layout)
    done = pa.Table.from_pandas(made.compute(scheduler="threads"), preserve_index=False)
    assert done.column_names == pq.read_schema(tmp_path / "out.parquet").names
    want = pq.read_table(tmp_path / "out.parquet")
    assert done.select(want.column_names).cast(want.schema).equals(want)


def test_partitions_without_rows(by_name, ddf, frame):
    some = kafeat.dask.transform(ddf[ddf["x"] > 2.5], by_name, keep=["id"], layout="list")
    none = kafeat.dask.transform(ddf[ddf["x"] > 1e9], by_name, keep=["id"], layout="list")
    assert len(some.compute(scheduler="sync")) == (frame["x"] > 2.5).sum() > 0
    empty = none.compute(scheduler="sync")
    assert len(empty) == 0
    assert (empty.dtypes == none.dtypes).all()


def test_columns_without_names_are_numbers_that_are_not_kept(frame):
    X = frame[["x", "y", "z.z"]].to_numpy()
    fm = kafeat.fit({"steps": [{"kind": "projection", "n_components": 3}]}, X)
    numbered = frame[["id", "x", "y", "z.z"]].set_axis(["id", 0, 1, 2], axis=1).assign(label=1)
    ddf = dd.from_pandas(numbered, npartitions=1)
    made = kafeat.dask.transform(ddf, fm, keep=["label"]).compute(scheduler="sync")
    assert made[["f0", "f1", "f2"]].to_numpy().tobytes() == features(fm, X, 1500).tobytes()
    with pytest.raises(DataError, match="expected 3 feature columns, got 4"):
        kafeat.dask.transform(ddf[[0, 1, 2, "label"]], fm)


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_a_bad_value_is_named_by_partition_row_and_column(by_name, frame, wrong):
    bad = frame.copy()
    bad.iloc[700, 2] = wrong
    made = kafeat.dask.transform(dd.from_pandas(bad, npartitions=3), by_name)
    message = rf"<partition 1>: row 201 \(index 200\), column 'x': expected a finite number, got {wrong}"
    with pytest.raises(DataError, match=message):
        made.compute(scheduler="threads")


transform = kafeat.dask.transform


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda ddf, fm: transform(ddf[["x", "y"]], fm), DataError, "expected the column 'z.z', got x, y"),
    (lambda ddf, fm: transform(ddf, fm, keep=["ids"]), DataError, r"keep: .* \(did you mean 'id'\?\)"),
    (lambda ddf, fm: transform(ddf, fm, keep="id"), UsageError, "expected a list of columns or 'all'"),
    (lambda ddf, fm: transform(ddf, fm, keep=["x"], layout="list", prefix="x"), UsageError, "another prefix"),
    (lambda ddf, fm: transform(ddf, fm, layout="rows"), UsageError, "expected columns or list, got 'rows'"),
    (lambda ddf, fm: transform(ddf, fm, dtype="int8"), UsageError, "dtype: expected one of float16"),
    (lambda ddf, fm: transform(ddf.compute(scheduler="sync"), fm), UsageError, "array, got DataFrame"),
    (lambda ddf, fm: transform(ddf, 7), UsageError, "model: expected a path or a FeatureMap, got int"),
    (lambda ddf, fm: transform(ddf.assign(x=np.datetime64("2026-01-01")), fm), DataError,
     "<DataFrame>: column 'x': expected numbers, got timestamp"),
    (lambda ddf, fm: transform(da.zeros((9, 3)), fm, keep=["x"]), UsageError, "got an array"),
    (lambda ddf, fm: transform(da.zeros((9, 2)), fm), DataError, "expected 3 feature columns, got 2"),
    (lambda ddf, fm: kafeat.dask.predict(ddf, fm), UsageError, "model that ends in a predictor, got a map"),
])  # fmt: skip
def test_wrong_calls_are_refused_at_once(by_name, ddf, call, error, message):
    with pytest.raises(error, match=message):
        call(ddf, by_name)


def test_text_is_refused_where_it_is_met(by_name, ddf):
    """Dask's text may be lists, so that only the partition tells."""
    made = transform(ddf.assign(x="one"), by_name)
    with pytest.raises(DataError, match=r"<partition \d>: column 'x': expected numbers, got (large_)?string"):
        made.compute(scheduler="sync")


@pytest.mark.parametrize("dtype", [None, "float16"])
def test_blocks_of_an_array(by_name, dtype):
    X = np.random.default_rng(2).standard_normal((1000, 3)).astype(np.float32)
    made = kafeat.dask.transform(da.from_array(X, chunks=(400, 2)), by_name, dtype=dtype)
    assert made.shape == (1000, WIDTH)
    assert made.chunks == ((400, 400, 200), (WIDTH,))
    blocks = [X[i : i + 400] for i in (0, 400, 800)]
    want = np.concatenate([features(by_name, block, len(block), "C") for block in blocks])
    done = made.compute(scheduler="threads")
    assert done.dtype == made.dtype == np.dtype(dtype or "float32")
    assert done.tobytes() == want.astype(done.dtype).tobytes()


def test_a_bad_value_of_an_array_is_named_by_block(by_name):
    X = np.zeros((10, 3))
    X[7, 1] = np.inf
    with pytest.raises(DataError, match=r"<block 1>: row 3 .*column 'c1': expected a finite number"):
        kafeat.dask.transform(da.from_array(X, chunks=(5, 3)), by_name).compute(scheduler="sync")


def test_keys_say_kafeat_and_the_map_is_one_task(by_name, ddf):
    graph = kafeat.dask.transform(ddf, by_name).__dask_graph__()
    keys = [key[0] if isinstance(key, tuple) else key for key in graph]
    assert sum(key.startswith("kafeat-map-") for key in keys) == 1
    assert sum(key.startswith("kafeat-transform-") for key in keys) == 3


@pytest.fixture(scope="module")
def client() -> Iterator[distributed.Client]:
    """Two processes on this machine."""
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.mark.slow
def test_a_cluster_of_processes(tmp_path, client, by_name, ddf):
    assert len(client.scheduler_info()["workers"]) == 2
    want = expected(by_name, ddf)
    by_name.save(tmp_path / "map.joblib")
    for model in (by_name, tmp_path / "map.joblib"):
        made = kafeat.dask.transform(ddf, model, keep=["id"]).compute()
        assert made[NAMES].to_numpy().tobytes() == want.tobytes()
    with pytest.raises(DataError, match=r"<partition \d>: row 1 .*column 'x': expected a finite number"):
        kafeat.dask.transform(ddf.assign(x=np.nan), by_name).compute()


def test_the_example_of_the_docstring_runs():
    results = doctest.testmod(kafeat.dask)
    assert (results.attempted > 0, results.failed) == (True, 0)
