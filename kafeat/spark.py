"""Features of Spark DataFrames: `kafeat.spark.transform(df, model)`.

Nothing is collected and nothing shuffled: every partition is streamed through the map where it lies, by one thread.
The executors need kafeat and pyarrow.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from kafeat.dataframes.options import Frame, frame_of
from kafeat.dataframes.shared_map import SharedMap, shared
from kafeat.errors import UsageError
from kafeat.io.columns.columns import Columns
from kafeat.io.columns.selection import match
from kafeat.io.readers.memory import BatchReader
from kafeat.io.writers.arrow_columns import columns_of
from kafeat.io.writers.arrow_columns import shared as shared_memory
from kafeat.model.feature_map import FeatureMap
from kafeat.runtime.threads import run_here
from kafeat.types import Floats

try:
    from pyspark import TaskContext
    from pyspark.sql import DataFrame
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import ArrayType, DoubleType, FloatType, StructField, StructType
except ImportError as error:
    raise ImportError(f"kafeat.spark: expected pyspark, got: {error}; pip install 'kafeat[spark]'") from error

# What is handed to Spark at a time; its workers and the JVM hold a few of these.
_BATCH_BYTES = 32 << 20


def transform(
    df: DataFrame,
    model: str | os.PathLike[str] | FeatureMap,
    *,
    keep: Sequence[str] = (),
    layout: Literal["columns", "list"] = "columns",
    prefix: str | None = None,
    dtype: Literal["float32", "float64"] | None = None,
) -> DataFrame:
    """z of every row: a DataFrame of the kept columns and the features, lazily, by `mapInArrow`.

    `model` is a path that every executor can read, or a `FeatureMap`, whose bytes are sent along. Every Python worker
    loads it once; a file that is not the one the driver has seen is refused. Columns are matched by name, as
    `FeatureMap.transform` does it for tables; a map without names takes the numeric columns by position, without the
    kept ones. `keep` names columns to copy, with their Spark types, or is "all". The features are the columns
    `f0 ... f{D-1}` (`prefix`), or with `layout="list"` one column `features` of array<float>; in the map's
    dtype, or in `dtype`. Columns of Spark ML's vectors are read after `pyspark.ml.functions.vector_to_array`.

    Partitions and rows keep their order. Within a partition rows are cut into chunks of the map's height, so that
    `spark.sql.execution.arrow.maxRecordsPerBatch` changes no byte. Where the partitions begin may change the last bit
    of a feature, since a matrix product's last bit can depend on the place of a row in its tile: equal bytes to
    those of a file are promised for a DataFrame of one partition in the file's order only.

    Raises `UsageError` and, for columns that are missing or no numbers, `DataError` at once. A value that cannot
    stand ends the job when it runs: Spark shows the `DataError`, which names partition, row and column.
    """
    if not hasattr(df, "mapInArrow"):
        raise UsageError(f"df: expected a Spark DataFrame, got {type(df).__name__}")
    sent = shared(model)
    fm = sent.map
    source = BatchReader("<DataFrame>", _arrow_schema(df))
    frame = frame_of(source, fm, keep, layout, prefix, dtype, ("float32", "float64"))
    columns = match(source, fm.columns, frame.not_features)
    needed = list(dict.fromkeys([*(column.name for column in columns.features), *frame.keep]))

    # A function of its own, as Spark asks for its name; what it needs is pickled with it.
    def kafeat_transform(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return _partition((batch.rename_columns(needed) for batch in batches), sent, columns, frame)

    # On the way columns are numbered: mapInArrow takes no names with dots.
    numbered = df.select(*map(_quoted, needed)).toDF(*(f"c{i}" for i in range(len(needed))))
    return numbered.mapInArrow(kafeat_transform, _schema(df, frame))


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
    rows = max(1, _BATCH_BYTES // (fm.n_components * frame.dtype.itemsize))
    for done in run_here(fm.transformer, np.dtype(fm.dtype), chunks, _Fresh(frame, fm.n_components)):
        kept = [] if done.chunk.passthrough is None else done.chunk.passthrough.combine_chunks().columns
        arrays = [*kept, *_arrays(done.features, frame)]
        table = pa.Table.from_arrays(arrays, names=[*frame.keep, *frame.names])
        yield from table.to_batches(max_chunksize=rows)


class _Fresh:
    """New memory for every chunk: Spark may hold on to what it got."""

    def __init__(self, frame: Frame, width: int) -> None:
        self._frame, self._width = frame, width

    def buffer(self, start: int, rows: int) -> Floats:
        return self._frame.empty(rows, self._width)

    def filled(self, start: int, block: Floats) -> None:
        return


def _arrays(features: Floats, frame: Frame) -> list[pa.Array]:
    if frame.layout == "columns":
        return columns_of(features)
    rows, width = features.shape
    ends = np.arange(0, (rows + 1) * width, width, dtype=np.int32)
    kind = pa.list_(pa.field("element", pa.from_numpy_dtype(frame.dtype), nullable=False))
    return [pa.ListArray.from_arrays(shared_memory(ends), shared_memory(features.reshape(-1)), type=kind)]


def _schema(df: DataFrame, frame: Frame) -> StructType:
    number = FloatType() if frame.dtype == np.float32 else DoubleType()
    kind = number if frame.layout == "columns" else ArrayType(number, containsNull=False)
    kept = [df.schema[name] for name in frame.keep]
    return StructType([*kept, *(StructField(name, kind, nullable=False) for name in frame.names)])


def _arrow_schema(df: DataFrame) -> pa.Schema:
    """The columns as Python will see them; types that Arrow lacks are none that a map reads."""
    fields: list[Any] = []
    for field in df.schema:
        try:
            fields.append(to_arrow_schema(StructType([field])).field(0))
        except Exception:
            fields.append(pa.field(field.name, pa.null()))
    return pa.schema(fields)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
