"""Features of Dask DataFrames and arrays: `kafeat.dask.transform(ddf, model)`.

Lazy, and partition by partition: a task is one thread, and needs memory for one partition and its features. The
workers need kafeat.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from kafeat.dataframes.options import Frame, frame_of
from kafeat.dataframes.shared_map import SharedMap, shared
from kafeat.errors import DataError, UsageError, quoted
from kafeat.io.columns.fields import indices_of
from kafeat.io.columns.numbers import is_text
from kafeat.io.columns.selection import match
from kafeat.io.readers.array import check_array
from kafeat.io.readers.base import Reader
from kafeat.io.readers.memory import BatchReader, MemoryReader, TableReader
from kafeat.io.writers.arrow_columns import lists_of
from kafeat.model.feature_map import FeatureMap
from kafeat.runtime.threads import InMemory, run_here
from kafeat.types import Array, Floats

try:
    import dask
    import dask.array as da
    import dask.dataframe as dd
    import pandas as pd
    from dask.base import tokenize
except ImportError as error:
    raise ImportError(f"kafeat.dask: expected dask, got: {error}; pip install 'kafeat[dask]'") from error

_DTYPES = ("float16", "float32", "float64")
_KEY = "kafeat-transform"


def transform(
    ddf: dd.DataFrame | da.Array,
    model: str | os.PathLike[str] | FeatureMap,
    *,
    keep: Sequence[str] = (),
    layout: Literal["columns", "list"] = "columns",
    prefix: str | None = None,
    dtype: Literal["float16", "float32", "float64"] | None = None,
) -> dd.DataFrame | da.Array:
    """z of every row, lazily: of a DataFrame a DataFrame of the kept columns and the features; of an array an array.

    `model` is a path that every worker can read, or a `FeatureMap`, whose bytes become one task of the graph. Every
    process loads it once; a file that is not the one seen here is refused. A large map costs less as a path, above all
    with the scheduler `processes`, which sends everything along with every task.

    *DataFrame*: index, divisions and partitions stay. Columns are matched by name, as `FeatureMap.transform` does it
    for tables; a map without names takes the numeric columns by position, without the kept ones. `keep` names columns
    to copy, or is "all". The features are the columns `f0 ... f{D-1}` (`prefix`), or with `layout="list"` one
    column `features` of Arrow lists of fixed size; in the map's dtype, or in `dtype`. Columns of lists stay lists
    where Dask does not take them for text: set `dataframe.convert-string` to False before reading them.

    *Array* (n, n_features_in), by position: (n, D), chunked by rows as before; chunks along the columns are joined.
    Only `dtype` applies.

    Within a partition rows are cut into chunks of the map's height. Where partitions begin may change the last bit of a
    feature, since a matrix product's last bit can depend on the place of a row in its tile: a partition has the
    bytes that its rows would have as a file of their own.

    Raises `UsageError` and, for columns that are missing or no numbers, `DataError` at once where the types tell. A
    value that cannot stand is a `DataError` of `compute`, which names the partition, the row in it and the column.
    """
    sent = shared(model)
    if isinstance(ddf, da.Array):
        if len(keep) or layout != "columns" or prefix is not None:
            raise UsageError("ddf: expected a DataFrame with keep, layout or prefix, got an array")
        return _transform_array(ddf, sent, dtype)
    if not isinstance(ddf, dd.DataFrame):
        raise UsageError(f"ddf: expected a Dask DataFrame or array, got {type(ddf).__name__}")
    fm, labels = sent.map, {str(label): label for label in ddf.columns}
    names = BatchReader("<DataFrame>", pa.schema([(str(label), pa.null()) for label in ddf.columns]))
    frame = frame_of(names, fm, keep, layout, prefix, dtype, _DTYPES)
    reads = _reads(names, fm, frame)
    needed = [labels[name] for name in dict.fromkeys([*reads, *frame.keep])]
    part = ddf if needed == list(ddf.columns) else ddf[needed]
    _check_types(part._meta, fm, reads)
    return part.map_partitions(
        _partition,
        _task(_Work(sent, frame, tuple(reads))),
        meta=_assembled(part._meta, frame, frame.empty(0, fm.n_components)),
        enforce_metadata=False,  # every task would carry the names of all features
        token=_KEY,
    )


@dataclass(frozen=True)
class _Work:
    """What every task needs: the map, what is made, and of which columns."""

    sent: SharedMap
    frame: Frame
    reads: tuple[str, ...] = ()


def _reads(names: Reader, fm: FeatureMap, frame: Frame) -> list[str]:
    """The columns that may be features."""
    if not fm.columns.positional:
        wanted = [column.name for column in fm.columns.features]
    else:
        wanted = [field.name for field in names.fields if field.name not in frame.not_features]
    indices_of(names, wanted)
    return wanted


def _check_types(meta: pd.DataFrame, fm: FeatureMap, reads: Sequence[str]) -> None:
    """Refuse at once what the types show. Objects show nothing, and what Dask takes for text may be lists."""
    table = _table(meta, reads, "<DataFrame>")
    if not any(pa.types.is_null(kind) or is_text(kind) for kind in table.schema.types):
        match(TableReader(table, "<DataFrame>"), fm.columns, ())


def _task(work: _Work) -> Any:
    """One task that all others depend on: a literal would be sent along with each of them."""
    return dask.delayed(work, name=f"kafeat-map-{tokenize(work)}", traverse=False)


def _partition(part: pd.DataFrame, work: _Work, partition_info: dict[str, Any] | None = None) -> pd.DataFrame:
    fm, frame = work.sent.map, work.frame
    out = frame.empty(len(part), fm.n_components)
    if len(part):  # an empty column of objects does not show what it would hold
        number = "" if partition_info is None else f" {partition_info['number']}"
        place = f"<partition{number}>"
        _fill(TableReader(_table(part, work.reads, place), place), fm, out)
    return _assembled(part, frame, out)


def _fill(source: Reader, fm: FeatureMap, out: Floats) -> None:
    columns = match(source, fm.columns, ())
    chunks = source.chunks(columns, (), fm.chunk_rows)
    for _ in run_here(fm.transformer, np.dtype(fm.dtype), chunks, InMemory(out)):
        pass


def _table(part: pd.DataFrame, reads: Iterable[str], place: str) -> pa.Table:
    """Those columns in Arrow; column by column, as pyarrow would take the index for one and use threads."""
    labels = {str(label): label for label in part.columns}
    arrays = {}
    for name in reads:
        column = part[labels[name]]
        try:
            # A NaN of NumPy's stays one, to be named as what it is.
            plain = isinstance(column.dtype, np.dtype) and column.dtype.kind in "fiu"
            arrays[name] = pa.array(column.to_numpy() if plain else column)
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise DataError(f"{place}: column {quoted(name)}: expected numbers, got: {error}") from None
    return pa.table(arrays)


def _assembled(part: pd.DataFrame, frame: Frame, features: Floats) -> pd.DataFrame:
    """The kept columns of a partition and its features, with its index; also what they look like without rows."""
    if frame.layout == "columns":
        made = pd.DataFrame(features, index=part.index, columns=list(frame.names), copy=False)
    else:
        kind = pa.list_(pa.field("item", pa.from_numpy_dtype(frame.dtype), nullable=False), features.shape[1])
        lists = pd.arrays.ArrowExtensionArray(lists_of(features, kind))
        made = pd.DataFrame({frame.names[0]: lists}, index=part.index)
    if not frame.keep:
        return made
    labels = {str(label): label for label in part.columns}
    return pd.concat([part[[labels[name] for name in frame.keep]], made], axis=1)


def _transform_array(array: da.Array, sent: SharedMap, dtype: str | None) -> da.Array:
    fm = sent.map
    check_array("<array>", array.shape, array.dtype)
    match(MemoryReader(np.empty((0, array.shape[1]), array.dtype)), fm.columns, ())
    frame = frame_of(BatchReader("<array>", pa.schema([])), fm, (), "list", None, dtype, _DTYPES)
    work = _Work(sent, frame)
    if array.numblocks[1] > 1:
        array = array.rechunk({1: -1})
    return da.map_blocks(
        _block,
        array,
        _task(work),
        name=f"{_KEY}-{tokenize(array, work)}",
        chunks=(array.chunks[0], (fm.n_components,)),
        dtype=frame.dtype,
        meta=np.empty((0, 0), frame.dtype),
    )


def _block(block: Array, work: _Work, block_id: tuple[int, ...] | None = None) -> Floats:
    fm = work.sent.map
    out = work.frame.empty(len(block), fm.n_components)
    number = "" if block_id is None else f" {block_id[0]}"
    _fill(MemoryReader(block, f"<block{number}>"), fm, out)
    return out
