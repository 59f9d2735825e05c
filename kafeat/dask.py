"""Transform Dask DataFrames and arrays: `kafeat.dask.transform(ddf, model)`, and `predict` for predictions.

The result is lazy. A task runs in one thread, and needs memory for one partition and its features. Workers need kafeat.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from kafeat.dataframes import Content, Frame
from kafeat.errors import DataError, UsageError, quoted
from kafeat.io.columns.fields import indices_of
from kafeat.io.columns.numbers import is_text
from kafeat.io.columns.selection import match
from kafeat.io.readers.array import check_array
from kafeat.io.readers.base import Reader
from kafeat.io.readers.memory import BatchReader, MemoryReader, TableReader
from kafeat.io.writers.arrow_columns import lists_of
from kafeat.jobs.transform.outputs import Outputs
from kafeat.model.feature_map import FeatureMap
from kafeat.model.shared import SharedMap, shared
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
    unit_variance: bool = False,
) -> dd.DataFrame | da.Array:
    """Return the features of every row of a Dask DataFrame or array, lazily.

    Each process loads the map once. Pass a large map by its path, above all with the scheduler `processes`, which sends
    a map in memory with every task.

    A DataFrame keeps its index, divisions and partitions. Columns are matched by name; a map without names reads the
    numeric columns by position. Columns of lists must not be converted to text: set `dataframe.convert-string` to False
    before reading them. Arrays are matched by position; their chunks along the columns are joined.

    Other partitions may change the last bit of a feature, because rounding can depend on where a row stands in a block
    of rows. A partition gives the same features as a file with the same rows.

    Parameters
    ----------
    ddf : dask.dataframe.DataFrame or dask.array.Array (n_rows, n_features_in)
        Input rows.
    model : str, path or FeatureMap
        A map, or a path that every worker can read. Workers raise an error if their file differs from the client's.
    keep : list of str or "all", default ()
        Passthrough columns, which are copied unchanged; only for DataFrames.
    layout : {"columns", "list"}, default "columns"
        A column for each feature, or one column of Arrow lists of fixed size; only for DataFrames.
    prefix : str or None, default None
        Prefix of the feature columns, or name of the list column; None gives f0, f1, … or features.
    dtype : {"float16", "float32", "float64"} or None, default None
        Type of the features; None: the type of the map.
    unit_variance : bool, default False
        True multiplies all features by one factor, so that the mean of their variances is about 1.

    Returns
    -------
    dask.dataframe.DataFrame or dask.array.Array (n_rows, n_components)
        Passthrough columns and features of a DataFrame, or the features of an array.

    Raises
    ------
    kafeat.errors.UsageError
        An argument is invalid.
    kafeat.errors.DataError
        A column is missing or has a wrong type. `compute` raises it for invalid values, with partition, row and column.
    kafeat.errors.ArtifactError
        The model file is invalid.

    Examples
    --------
    >>> import dask.array as da, kafeat, kafeat.dask, numpy as np
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> fm = kafeat.fit({"steps": [{"kind": "fourier", "n_components": 64}]}, X)
    >>> kafeat.dask.transform(da.from_array(X, chunks=(100, 3)), fm).shape
    (200, 64)
    """
    content: Content = "unit variance" if unit_variance else "features"
    return _lazy(ddf, model, Frame(keep, layout, prefix, dtype, content))


def predict(
    ddf: dd.DataFrame | da.Array,
    model: str | os.PathLike[str] | FeatureMap,
    *,
    keep: Sequence[str] = (),
    prefix: str | None = None,
    dtype: Literal["float16", "float32", "float64"] | None = None,
) -> dd.DataFrame | da.Array:
    """Return the prediction for every row of a Dask DataFrame or array, lazily.

    The model ends in a predictor. Columns are those of `kafeat predict`.

    Parameters
    ----------
    ddf, model, keep
        As for `transform`.
    prefix : str or None, default None
        Prefix of the prediction columns; None: no prefix.
    dtype : {"float16", "float32", "float64"} or None, default None
        Type of probabilities and predicted numbers; None: float64.

    Returns
    -------
    dask.dataframe.DataFrame or dask.array.Array (n_rows, k)
        For a DataFrame: passthrough columns, then `prediction` and a column `probability_CLASS` for each class, or a
        column `prediction_LABEL` for each of several labels. For an array: the probabilities or the predicted numbers.

    Raises
    ------
    kafeat.errors.UsageError
        An argument is invalid, or the model does not end in a predictor.
    kafeat.errors.KafeatError
        As for `transform`.

    Examples
    --------
    >>> import dask.array as da, kafeat, kafeat.dask, numpy as np
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> config = {"steps": [{"kind": "fourier", "n_components": 64}, {"kind": "ridge"}]}
    >>> fm = kafeat.fit(config, X, label=X[:, 0] > 0.0)
    >>> kafeat.dask.predict(da.from_array(X, chunks=(100, 3)), fm).shape
    (200, 2)
    """
    return _lazy(ddf, model, Frame(keep, "columns", prefix, dtype, "predictions"))


def _lazy(
    ddf: dd.DataFrame | da.Array, model: str | os.PathLike[str] | FeatureMap, asked: Frame
) -> dd.DataFrame | da.Array:
    sent = shared(model)
    if isinstance(ddf, da.Array):
        if len(asked.keep) or asked.layout != "columns" or asked.prefix is not None:
            raise UsageError("ddf: expected a DataFrame for keep, layout or prefix, got an array")
        return _transform_array(ddf, sent, replace(asked, layout="list"))
    if not isinstance(ddf, dd.DataFrame):
        raise UsageError(f"ddf: expected a Dask DataFrame or array, got {type(ddf).__name__}")
    fm, labels = sent.map, {str(label): label for label in ddf.columns}
    names = BatchReader("<DataFrame>", pa.schema([(str(label), pa.null()) for label in ddf.columns]))
    frame = asked.checked(names, fm, _DTYPES)
    reads = _reads(names, fm, asked.not_features)
    needed = [labels[name] for name in dict.fromkeys([*reads, *frame.keep])]
    part = ddf if needed == list(ddf.columns) else ddf[needed]
    _check_types(part._meta, fm, reads)
    outputs = frame.outputs(fm)
    return part.map_partitions(
        _partition,
        _task(_TaskInputs(sent, frame, tuple(reads))),
        meta=_assembled(part._meta, frame, outputs, frame.memory(outputs).buffer(0, 0)),
        enforce_metadata=False,  # otherwise Dask stores the names of all features in every task
        token=_KEY,
    )


@dataclass(frozen=True)
class _TaskInputs:
    """The input of every task: the map, the output columns, and the columns to read."""

    sent: SharedMap
    frame: Frame
    reads: tuple[str, ...] = ()


def _reads(names: Reader, fm: FeatureMap, not_features: Sequence[str]) -> list[str]:
    """Return the names of the columns that the map may read as features."""
    if not fm.columns.positional:
        reads = [column.name for column in fm.columns.features]
    else:
        reads = [field.name for field in names.fields if field.name not in not_features]
    indices_of(names, reads)
    return reads


def _check_types(meta: pd.DataFrame, fm: FeatureMap, reads: Sequence[str]) -> None:
    """Raise an error for wrong types before a task runs. Objects and text may be lists, which only tasks can check."""
    table = _table(meta, reads, "<DataFrame>")
    if not any(pa.types.is_null(kind) or is_text(kind) for kind in table.schema.types):
        match(TableReader(table, "<DataFrame>"), fm.columns, ())


def _task(work: _TaskInputs) -> Any:
    """Return the inputs as one task on which all others depend. As a literal, they would be sent with each task."""
    return dask.delayed(work, name=f"kafeat-map-{tokenize(work)}", traverse=False)


def _partition(
    part: pd.DataFrame, work: _TaskInputs, partition_info: dict[str, Any] | None = None
) -> pd.DataFrame:
    fm, frame = work.sent.map, work.frame
    outputs = frame.outputs(fm)
    out = frame.memory(outputs).buffer(0, len(part))
    if len(part):  # An empty column of objects does not show its type, so empty partitions are not read.
        number = "" if partition_info is None else f" {partition_info['number']}"
        place = f"<partition{number}>"
        fm.fill(outputs.program(), TableReader(_table(part, work.reads, place), place), 1, out)
    return _assembled(part, frame, outputs, out)


def _table(part: pd.DataFrame, reads: Iterable[str], place: str) -> pa.Table:
    """Convert columns to Arrow one by one, because `pa.Table.from_pandas` would add the index and use threads."""
    labels = {str(label): label for label in part.columns}
    arrays = {}
    for name in reads:
        column = part[labels[name]]
        try:
            # Convert the NumPy array, so that NaN stays NaN and does not become null in messages.
            plain = isinstance(column.dtype, np.dtype) and column.dtype.kind in "fiu"
            arrays[name] = pa.array(column.to_numpy() if plain else column)
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise DataError(f"{place}: column {quoted(name)}: expected numbers, got: {error}") from None
    return pa.table(arrays)


def _assembled(part: pd.DataFrame, frame: Frame, outputs: Outputs, features: Floats) -> pd.DataFrame:
    """Return the passthrough columns of a partition and its features or predictions, with its index."""
    names = frame.names(outputs)
    if outputs.what == "features" and frame.layout == "list":
        number = pa.from_numpy_dtype(outputs.dtype)
        kind = pa.list_(pa.field("item", number, nullable=False), features.shape[1])
        lists = pd.arrays.ArrowExtensionArray(lists_of(features, kind))
        made = pd.DataFrame({names[0]: lists}, index=part.index)
    else:
        numbers = features.astype(outputs.dtype, order="F", copy=False)
        made = pd.DataFrame(numbers, index=part.index, columns=names, copy=False)
    if outputs.classes is not None:
        chosen = outputs.fm.needed_predictor().predicted(features)
        dtype = "str" if chosen.dtype.kind == "O" else chosen.dtype
        made.insert(0, outputs.classes.names[0], pd.Series(chosen, index=part.index, dtype=dtype))
    if not frame.keep:
        return made
    labels = {str(label): label for label in part.columns}
    return pd.concat([part[[labels[name] for name in frame.keep]], made], axis=1)


def _transform_array(array: da.Array, sent: SharedMap, asked: Frame) -> da.Array:
    fm = sent.map
    check_array("<array>", array.shape, array.dtype)
    match(MemoryReader(np.empty((0, array.shape[1]), array.dtype)), fm.columns, ())
    frame = asked.checked(BatchReader("<array>", pa.schema([])), fm, _DTYPES)
    work, outputs = _TaskInputs(sent, frame), frame.outputs(fm)
    if array.numblocks[1] > 1:
        array = array.rechunk({1: -1})
    return da.map_blocks(
        _block,
        array,
        _task(work),
        name=f"{_KEY}-{tokenize(array, work)}",
        chunks=(array.chunks[0], (outputs.width,)),
        dtype=outputs.dtype,
        meta=np.empty((0, 0), outputs.dtype),
    )


def _block(block: Array, work: _TaskInputs, block_id: tuple[int, ...] | None = None) -> Floats:
    fm, outputs = work.sent.map, work.frame.outputs(work.sent.map)
    out = work.frame.memory(outputs).buffer(0, len(block))
    number = "" if block_id is None else f" {block_id[0]}"
    fm.fill(outputs.program(), MemoryReader(block, f"<block{number}>"), 1, out)
    return out.astype(outputs.dtype, copy=False)
