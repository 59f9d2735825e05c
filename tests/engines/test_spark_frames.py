"""kafeat.spark: partitions through a map, by Python workers of a local Spark."""

import datetime
import doctest
import sys
from collections.abc import Iterator
from itertools import starmap
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

pytest.importorskip("pyspark")
from pyspark.errors import PythonException
from pyspark.sql import SparkSession, types

import kafeat.spark
from kafeat.errors import DataError, UsageError
from kafeat.io.readers.memory import BatchReader
from kafeat.model.shared import shared
from tests.engines.maps import CHUNK_ROWS, LABELS, NAMES, WIDTH, features, fitted, predicting

BATCH_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"

# Of PySpark's own calls, whatever is asked of it.
pytestmark = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    """Two Python workers; none of them retries."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
        session = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
        session.sparkContext.setLogLevel("OFF")
        yield session
        session.stop()


@pytest.fixture(scope="module")
def df(spark: SparkSession, rows: pa.Table):
    """Three partitions, in the order of the rows."""
    text, number, whole = types.StringType(), types.DoubleType(), types.LongType()
    kinds = {"z.z": number, "x": types.FloatType(), "y": whole, "day": types.DateType()}
    fields = [
        types.StructField("id", text, False, {"note": "kept"}),
        *starmap(types.StructField, kinds.items()),
    ]
    values = list(zip(*(column.to_pylist() for column in rows.columns), strict=True))
    return spark.createDataFrame(spark.sparkContext.parallelize(values, 3), types.StructType(fields))


def collected(made: Any, dtype: Any = np.float32) -> np.ndarray:
    return np.array([[row[name] for name in NAMES] for row in made.collect()], dtype)


@pytest.mark.parametrize("kind", ["text", "integer", "number", "numbers"])
def test_predictions_are_those_of_the_model(df, rows, kind):
    fm = predicting(rows, LABELS[kind](rows))
    made = kafeat.spark.predict(df, fm, keep=["id"], prefix="m_")
    done = made.toArrow().sort_by("id")
    rows = rows.sort_by("id")
    names = [f"m_{name}" for name in fm.predictor.output_names]
    assert done.column_names == ["id", *([] if fm.classes is None else ["m_prediction"]), *names]
    numbers = np.column_stack([done[name].to_numpy() for name in names])
    if fm.classes is not None:
        assert done["m_prediction"].to_pylist() == fm.predict(rows).tolist()
    # Partitions end within a tile, which may change the last bits of its features in float32.
    expected = fm.predict(rows) if fm.classes is None else fm.predict_proba(rows)
    np.testing.assert_allclose(numbers, np.reshape(expected, numbers.shape), atol=1e-4)


def test_a_class_beyond_long_is_refused(df, rows):
    label = np.where(rows["x"].to_numpy() > 0.0, np.uint64(2**63), np.uint64(1))
    fm = predicting(rows, label, task="classification")
    told = "expected classes that Spark's long can hold, got 9223372036854775808"
    with pytest.raises(UsageError, match=told):
        kafeat.spark.predict(df, fm)


@pytest.mark.parametrize("batch_rows", [37, 10_000])
def test_a_partition_has_the_bytes_of_its_rows(spark, df, rows, by_name, batch_rows):
    spark.conf.set(BATCH_ROWS, batch_rows)
    made = kafeat.spark.transform(df, by_name)
    assert made.schema == types.StructType([types.StructField(n, types.FloatType(), False) for n in NAMES])
    sizes = df.rdd.glom().map(len).collect()
    assert sizes == [500, 500, 500]
    want = np.concatenate([features(by_name, rows.slice(i, 500), 500) for i in (0, 500, 1000)])
    assert collected(made).tobytes() == want.tobytes()


def test_kept_columns_keep_their_types(df, rows, by_name):
    made = kafeat.spark.transform(df, by_name, keep=["day", "id", "z.z"], prefix="k", dtype="float64")
    assert made.schema[:3] == types.StructType([df.schema["day"], df.schema["id"], df.schema["z.z"]])
    assert made.schema["id"].metadata == {"note": "kept"}
    assert made.schema["k0"].dataType == types.DoubleType()
    first = made.collect()[1]
    assert (first["day"], first["id"], first["z.z"]) == (
        datetime.date(1970, 1, 2), "row 1", rows["z.z"][1].as_py(),
    )  # fmt: skip
    assert kafeat.spark.transform(df, by_name, keep="all").columns == [*df.columns, *NAMES]


def test_lists(df, rows, by_name):
    made = kafeat.spark.transform(df.coalesce(1), by_name, keep=["id"], layout="list")
    assert made.schema["features"].dataType == types.ArrayType(types.FloatType(), False)
    done = made.collect()
    assert [row["id"] for row in done] == rows["id"].to_pylist()
    assert np.array([row["features"] for row in done], "f4").tobytes() == by_name.transform(rows).tobytes()


def test_columns_of_arrays_and_without_names(spark):
    X = np.random.default_rng(1).standard_normal((90, 3)).astype(np.float32)
    fm = kafeat.fit({"steps": [{"kind": "projection", "n_components": WIDTH}]}, X)
    schema = "label int, v array<float>"
    df = spark.createDataFrame([(i, row.tolist()) for i, row in enumerate(X)], schema).coalesce(1)
    done = collected(kafeat.spark.transform(df, fm, keep=["label"]))
    assert done.tobytes() == features(fm, X, 90).tobytes()
    with pytest.raises(DataError, match="expected 3 feature columns, got 2"):
        kafeat.spark.transform(df.drop("v").selectExpr("label", "label as other"), fm)


def test_a_bad_value_is_named_by_partition_row_and_column(spark, df, by_name):
    spark.conf.set(BATCH_ROWS, 37)
    bad = df.selectExpr("if(id = 'row 799', null, x) as x", "y", "`z.z`")
    message = r"DataError: <partition 1>: row 300 .*, column 'x': expected a finite number, got null"
    with pytest.raises(PythonException, match=message):
        kafeat.spark.transform(bad, by_name).collect()


def test_times_are_instants_of_any_zone_or_hours_as_they_are_written(spark):
    hours = [datetime.datetime(2024, 3, 1, 2, 30) + datetime.timedelta(hours=7 * i) for i in range(40)]
    names = {"at": "timestamp", "wall": "timestamp_ntz"}
    parts = {"kind": "date_parts", "parts": ["day", "hour"]}
    steps = [{**parts, "columns": ["at"], "timezone": "Asia/Tokyo"}, {**parts, "columns": ["wall"]}]
    instants = [hour.replace(tzinfo=datetime.UTC) for hour in hours]
    table = pa.table({"at": pa.array(instants, pa.timestamp("us", "UTC")), "wall": hours})
    fm = kafeat.fit({"dtype": "float64", "steps": steps}, table)
    schema = ", ".join(f"{name} {kind}" for name, kind in names.items())
    made = spark.createDataFrame(list(zip(instants, hours, strict=True)), schema)
    for zone in ("UTC", "America/New_York"):
        spark.conf.set("spark.sql.session.timeZone", zone)
        done = kafeat.spark.transform(made, fm, keep=["at"]).toArrow()
        features = np.column_stack([done[f"f{i}"].to_numpy() for i in range(fm.n_components)])
        assert features.tobytes() == fm.transform(table).tobytes()
        assert done["at"].cast(pa.timestamp("us", "UTC")).to_pylist() == instants
    spark.conf.unset("spark.sql.session.timeZone")


# Features by their SQL, and columns that are none with what a message calls them.
NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal(9,2)")
FEATURES = [f"cast(id / 2 as {kind})" for kind in NUMBERS]
OTHERS = {
    "X'00'": "binary", "'a'": "string", "map('a', 1)": "null", "named_struct('a', 1)": "null",
    "interval '1' day": "null", "array(now())": r"list<element: timestamp\[us, tz=UTC\] not null>",
    "interval '1' year": "null",
}  # fmt: skip


def test_every_type_is_a_feature_or_is_kept(spark):
    values = [*FEATURES, "id > 3", *OTHERS]
    names = [f"f{i}" for i in range(len(FEATURES) + 1)]
    df = spark.range(9).selectExpr(*(f"{value} as f{i}" for i, value in enumerate(values)))
    table = df.select(*names).toArrow()
    fm = kafeat.fit({"dtype": "float64", "steps": ["standardize"]}, table)
    kept = df.columns[len(names) : -1]  # Spark hands no intervals of years to Arrow
    done = kafeat.spark.transform(df, fm, keep=kept, prefix="z")
    assert done.schema[: len(kept)] == df.select(*kept).schema
    features = np.array([[row[f"z{i}"] for i in range(len(names))] for row in done.collect()])
    np.testing.assert_array_equal(features, fm.transform(table))
    for name, got in zip(df.columns[len(names) :], OTHERS.values(), strict=True):
        with pytest.raises(DataError, match=f"'f0': expected numbers, got {got}"):
            kafeat.spark.transform(df.withColumn("f0", df[name]), fm)


transform = kafeat.spark.transform


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda df, fm: transform(df.withColumn("x", df.id), fm), DataError, "'x': expected numbers, got"),
    (lambda df, fm: transform(df, fm, dtype="float16"), UsageError, "one of float32, float64, got"),
    (lambda df, fm: transform([1], fm), UsageError, "df: expected a Spark DataFrame, got list"),
])  # fmt: skip
def test_wrong_calls_are_refused_at_once(df, by_name, call, error, message):
    with pytest.raises(error, match=message):
        call(df, by_name)


def test_workers_read_a_map_by_its_path(tmp_path, df, rows):
    place = tmp_path / "map.joblib"
    fm = fitted(rows, seed=1)
    fm.save(place)
    done = collected(kafeat.spark.transform(df.coalesce(1), place))
    assert done.tobytes() == features(fm, rows, 1500).tobytes()


def test_batches_of_any_height_become_chunks_of_the_map(rows, by_name):
    """In this process, where the chunks show."""
    table = rows.select(["x", "y", "z.z", "id"])
    options = kafeat.spark.Frame(["id"])
    frame = options.checked(BatchReader("rows", table.schema), by_name, ("float32",))
    batches = iter(table.to_batches(max_chunksize=41))
    made = list(kafeat.spark._partition(batches, shared(by_name), by_name.columns, frame))
    assert [len(batch) for batch in made] == [CHUNK_ROWS] * 5 + [1500 - 5 * CHUNK_ROWS]
    assert pa.Table.from_batches(made)["id"].to_pylist() == rows["id"].to_pylist()


def test_what_is_handed_over_at_a_time_is_bounded(monkeypatch, rows, by_name):
    monkeypatch.setattr(kafeat.spark, "_BATCH_BYTES", 100 * WIDTH * 4)
    for layout in ("columns", "list"):
        options = kafeat.spark.Frame(layout=layout)
        frame = options.checked(BatchReader("rows", rows.schema), by_name, ("float32",))
        batches = iter(rows.select(["x", "y", "z.z"]).to_batches())
        made = list(kafeat.spark._partition(batches, shared(by_name), by_name.columns, frame))
        assert max(len(batch) for batch in made) == 100
        assert sum(len(batch) for batch in made) == 1500


def test_the_example_of_the_docstring_runs(spark):
    results = doctest.testmod(kafeat.spark)
    assert (results.attempted > 0, results.failed) == (True, 0)
