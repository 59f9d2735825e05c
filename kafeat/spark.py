"""Transform Spark DataFrames: `kafeat.spark.transform(df, model)`, and `predict` for predictions.

Rows are neither collected nor shuffled: each partition is transformed by one thread of its executor. kafeat and pyarrow
must be installed on the executors.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Literal

import numpy as np
import pyarrow as pa

from kafeat.dataframes import Content, Frame
from kafeat.errors import UsageError
from kafeat.io.columns.columns import Columns
from kafeat.io.columns.selection import match
from kafeat.io.readers.memory import BatchReader
from kafeat.io.writers.arrow_columns import columns_of
from kafeat.io.writers.arrow_columns import shared as shared_memory
from kafeat.jobs.transform.outputs import Outputs
from kafeat.model.feature_map import FeatureMap
from kafeat.model.shared import SharedMap, shared
from kafeat.runtime.run import run
from kafeat.types import Floats

try:
    from pyspark import TaskContext
    from pyspark.sql import DataFrame
    from pyspark.sql.types import (
        ArrayType,
        BinaryType,
        BooleanType,
        ByteType,
        DataType,
        DateType,
        DecimalType,
        DoubleType,
        FloatType,
        IntegerType,
        LongType,
        ShortType,
        StringType,
        StructField,
        StructType,
        TimestampNTZType,
        TimestampType,
    )
except ImportError as error:
    raise ImportError(f"kafeat.spark: expected pyspark, got: {error}; pip install 'kafeat[spark]'") from error

# Bytes in a batch for Spark. Its Python workers and the JVM each have a few batches in memory.
_BATCH_BYTES = 32 << 20


def transform(
    df: DataFrame,
    model: str | os.PathLike[str] | FeatureMap,
    *,
    keep: Sequence[str] = (),
    layout: Literal["columns", "list"] = "columns",
    prefix: str | None = None,
    dtype: Literal["float32", "float64"] | None = None,
    unit_variance: bool = False,
) -> DataFrame:
    """Return the features of every row of a Spark DataFrame, lazily, by `mapInArrow`.

    Each Python worker loads the map once. Columns are matched by name; a map without names reads the numeric columns by
    position. Convert columns of Spark ML's vectors by `pyspark.ml.functions.vector_to_array` first.

    Partitions and rows keep their order, and `spark.sql.execution.arrow.maxRecordsPerBatch` changes no byte. Other
    partitions may change the last bit of a feature, because rounding can depend on where a row stands in a block of
    rows. Only a single partition, in the order of a file, gives the same bytes as the file.

    Parameters
    ----------
    df : pyspark.sql.DataFrame
        Input rows.
    model : str, path or FeatureMap
        A map, or a path that every executor can read. Workers raise an error if their file differs from the driver's.
    keep : list of str or "all", default ()
        Passthrough columns, which are copied unchanged with their Spark types.
    layout : {"columns", "list"}, default "columns"
        A column for each feature, or one column of type array<float> or array<double>.
    prefix : str or None, default None
        Prefix of the feature columns, or name of the list column; None gives f0, f1, … or features.
    dtype : {"float32", "float64"} or None, default None
        Type of the features; None: the type of the map.
    unit_variance : bool, default False
        True multiplies all features by one factor, so that the mean of their variances is about 1.

    Returns
    -------
    pyspark.sql.DataFrame
        Passthrough columns, then the features.

    Raises
    ------
    kafeat.errors.UsageError
        An argument is invalid.
    kafeat.errors.DataError
        A column is missing or has a wrong type. An invalid value ends the Spark job with this error.
    kafeat.errors.ArtifactError
        The model file is invalid.

    Examples
    --------
    >>> import kafeat, kafeat.spark, numpy as np
    >>> from pyspark.sql import SparkSession
    >>> X = np.random.default_rng(0).normal(size=(20, 2))
    >>> fm = kafeat.fit({"steps": [{"kind": "fourier", "n_components": 4}]}, X)
    >>> df = SparkSession.builder.getOrCreate().createDataFrame(X.tolist(), ["a", "b"])
    >>> kafeat.spark.transform(df, fm).columns
    ['f0', 'f1', 'f2', 'f3']
    """
    content: Content = "unit variance" if unit_variance else "features"
    return _lazy(df, model, Frame(keep, layout, prefix, dtype, content))


def predict(
    df: DataFrame,
    model: str | os.PathLike[str] | FeatureMap,
    *,
    keep: Sequence[str] = (),
    prefix: str | None = None,
    dtype: Literal["float32", "float64"] | None = None,
) -> DataFrame:
    """Return the prediction for every row of a Spark DataFrame, lazily, by `mapInArrow`.

    The model ends in a predictor. Columns are those of `kafeat predict`.

    Parameters
    ----------
    df, model, keep
        As for `transform`.
    prefix : str or None, default None
        Prefix of the prediction columns; None: no prefix.
    dtype : {"float32", "float64"} or None, default None
        Type of probabilities and predicted numbers; None: float64.

    Returns
    -------
    pyspark.sql.DataFrame
        Passthrough columns, then `prediction` and a column `probability_CLASS` for each class, or a column
        `prediction_LABEL` for each of several labels.

    Raises
    ------
    kafeat.errors.UsageError
        An argument is invalid, the model does not end in a predictor, or a class is a number beyond Spark's `long`.
    kafeat.errors.KafeatError
        As for `transform`.

    Examples
    --------
    >>> import kafeat, kafeat.spark, numpy as np
    >>> from pyspark.sql import SparkSession
    >>> X = np.random.default_rng(0).normal(size=(20, 2))
    >>> config = {"steps": [{"kind": "fourier", "n_components": 4}, {"kind": "ridge"}]}
    >>> fm = kafeat.fit(config, X, label=X[:, 0] > 0.0)
    >>> df = SparkSession.builder.getOrCreate().createDataFrame(X.tolist(), ["a", "b"])
    >>> kafeat.spark.predict(df, fm).columns
    ['prediction', 'probability_false', 'probability_true']
    """
    return _lazy(df, model, Frame(keep, "columns", prefix, dtype, "predictions"))


def _lazy(df: DataFrame, model: str | os.PathLike[str] | FeatureMap, asked: Frame) -> DataFrame:
    if not hasattr(df, "mapInArrow"):
        raise UsageError(f"df: expected a Spark DataFrame, got {type(df).__name__}")
    sent = shared(model)
    fm = sent.map
    schema = pa.schema([pa.field(field.name, _arrow_type(field.dataType)) for field in df.schema])
    source = BatchReader("<DataFrame>", schema)
    frame = asked.checked(source, fm, ("float32", "float64"))
    columns = match(source, fm.columns, asked.not_features)
    needed = list(dict.fromkeys([*(column.name for column in columns.features), *frame.keep]))

    # A named function, because Spark shows its name. Spark pickles it with the variables that it uses.
    def kafeat_transform(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return _partition((batch.rename_columns(needed) for batch in batches), sent, columns, frame)

    # Columns are numbered for the transfer, because mapInArrow accepts no names with dots.
    numbered = df.select(*map(_quoted, needed)).toDF(*(f"c{i}" for i in range(len(needed))))
    return numbered.mapInArrow(kafeat_transform, _schema(df, frame, frame.outputs(fm)))


def _partition(
    batches: Iterator[pa.RecordBatch], sent: SharedMap, columns: Columns, frame: Frame
) -> Iterator[pa.RecordBatch]:
    first = next(batches, None)
    if first is None:
        return
    fm, context = sent.map, TaskContext.get()
    place = "<partition>" if context is None else f"<partition {context.partitionId()}>"
    chunks = BatchReader(place, first.schema, chain([first], batches)).chunks(
        columns, frame.keep, fm.chunk_rows
    )
    outputs = frame.outputs(fm)
    rows = max(1, _BATCH_BYTES // (outputs.width * outputs.dtype.itemsize))
    # New memory for every chunk, because Spark may keep references to it.
    for done in run(outputs.program(), chunks, frame.memory(outputs), 1, in_memory=True):
        kept = [] if done.chunk.passthrough is None else done.chunk.passthrough.combine_chunks().columns
        arrays = [*kept, *_arrays(done.floats.astype(outputs.dtype, copy=False), frame.layout)]
        table = pa.Table.from_arrays(arrays, names=[*frame.keep, *frame.names(outputs)])
        if outputs.classes is not None:
            classes = outputs.classes.table(None, done.floats)
            table = table.add_column(len(frame.keep), classes.field(0), classes.column(0))
        yield from table.to_batches(max_chunksize=rows)


def _arrays(features: Floats, layout: str) -> list[pa.Array]:
    if layout == "columns":
        return columns_of(features)
    rows, width = features.shape
    ends = np.arange(0, (rows + 1) * width, width, dtype=np.int32)
    kind = pa.list_(pa.field("element", pa.from_numpy_dtype(features.dtype), nullable=False))
    return [pa.ListArray.from_arrays(shared_memory(ends), shared_memory(features.reshape(-1)), type=kind)]


def _schema(df: DataFrame, frame: Frame, outputs: Outputs) -> StructType:
    number = FloatType() if outputs.dtype == np.float32 else DoubleType()
    kind = number if frame.layout == "columns" else ArrayType(number, containsNull=False)
    kept = [df.schema[name] for name in frame.keep]
    if outputs.classes is not None:
        kept.append(StructField(outputs.classes.names[0], _class_type(outputs.fm), nullable=False))
    return StructType([*kept, *(StructField(name, kind, nullable=False) for name in frame.names(outputs))])


def _class_type(fm: FeatureMap) -> DataType:
    labels, classes = fm.needed_predictor().labels, fm.classes
    if classes is not None and classes.dtype.kind == "u":
        raise UsageError(
            f"model: expected classes that Spark's long can hold, got {max(classes)}: "
            "convert such classes to text before you fit the model"
        )
    kinds = {"text": StringType(), "integer": LongType(), "number": DoubleType(), "boolean": BooleanType()}
    return kinds[labels.type]


_ARROW: dict[type[DataType], pa.DataType] = {
    BooleanType: pa.bool_(), ByteType: pa.int8(), ShortType: pa.int16(), IntegerType: pa.int32(), LongType: pa.int64(),
    FloatType: pa.float32(), DoubleType: pa.float64(), StringType: pa.string(), BinaryType: pa.binary(),
    DateType: pa.date32(), TimestampType: pa.timestamp("us", "UTC"), TimestampNTZType: pa.timestamp("us"),
}  # fmt: skip
"""The Arrow type of each Spark type in `mapInArrow`. Spark's own conversion differs between versions."""


def _arrow_type(kind: DataType) -> pa.DataType:
    """Return the Arrow type of a column, or null for maps, structs, intervals and the like, which no map reads."""
    if isinstance(kind, DecimalType):
        return pa.decimal128(kind.precision, kind.scale)
    if isinstance(kind, ArrayType):
        return pa.list_(pa.field("element", _arrow_type(kind.elementType), kind.containsNull))
    return _ARROW.get(type(kind), pa.null())


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
