"""Fit a map: sample rows in one pass over the input, fit the chain on them, and note from what it came."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from kafeat.chain import Chain
from kafeat.config import Config, load_config
from kafeat.errors import DataError, UsageError, ValueRefused
from kafeat.feature_map import FeatureMap
from kafeat.io.columns import Columns, choose
from kafeat.io.formats import open_source
from kafeat.io.memory import source_of
from kafeat.io.source import Source
from kafeat.sampling import RowSample
from kafeat.step import Sample
from kafeat.stream import prefetch
from kafeat.types import Array

Progress = Callable[[int], None]


def fit(config: Any, data: Any, label: Any = None) -> FeatureMap:
    """Fit a feature map.

    `config` is a dict, the path of a YAML file, or a `Config`. `data` is a 2-D array (n_rows, n_features), a table
    (pyarrow, pandas, polars) or the path of a file; `label` names its label column, which is no feature, or is an
    array (n_rows,) of labels. Raises `ConfigError`, `DataError` and `SystemRefusedError` of `kafeat.errors`.
    """
    recipe = load_config(config)
    if isinstance(data, str | os.PathLike):
        with open_source(os.fspath(data), None) as source:
            return fit_source(recipe, source, label)
    return fit_source(recipe, source_of(data), label)


def fit_source(
    config: Config, source: Source, label: str | Array | None, progress: Progress | None = None
) -> FeatureMap:
    """Fit on a source that is read once, from its first row to its last."""
    name = label if isinstance(label, str) else None
    given = None if label is None or isinstance(label, str) else np.asarray(label)
    columns = choose(source, config.columns.include or None, config.columns.exclude, name)
    rows, sample = _sample(config, source, columns, name, given, progress)
    stream = np.random.default_rng(np.random.SeedSequence(config.seed, spawn_key=(1,)))
    try:
        chain = Chain.fit(config.steps, sample, stream)
    except ValueRefused as refused:
        in_file = ValueRefused(int(rows[refused.row]), refused.column, refused.problem)
        raise in_file.located(source.place, columns.names) from None
    except DataError as error:
        raise DataError(f"{source.place}: {error}") from None
    provenance = {
        "sources": [
            {"name": os.path.basename(source.place), "rows": sample.n_rows, "sha256": source.digest()}
        ],
        "rows_fitted": len(sample.X),
        "label": name,
        "config_sha256": config.digest(),
    }
    return FeatureMap(chain, columns, config.dtype, config.chunk_rows, config.to_plain(), provenance)


def _sample(
    config: Config,
    source: Source,
    columns: Columns,
    label: str | None,
    given: Array | None,
    progress: Progress | None,
) -> tuple[Array, Sample]:
    """Row numbers and rows with the smallest hashes; every row is read and checked on the way."""
    if given is not None and given.shape != (source.rows,):
        raise UsageError(f"label: expected an array of shape ({source.rows},), got {given.shape}")
    size = None if config.fit_rows == "all" else config.fit_rows
    chosen = RowSample(config.seed, size)
    keep = () if label is None else (label,)
    for chunk in prefetch(source.chunks(columns, keep, config.chunk_rows), 2):
        offsets = chosen.choose(chunk.start, chunk.rows)
        try:
            X = chunk.matrix(np.dtype(config.dtype))[offsets]
        except ValueRefused as refused:
            raise refused.moved(chunk.start).located(source.place, columns.names) from None
        labels = None
        if label is not None:
            labels = chunk.values(label)[offsets]
        elif given is not None:
            labels = given[chunk.start + offsets]
        chosen.add(chunk.start, chunk.rows, offsets, X, labels)
        if progress is not None:
            progress(chunk.rows)
    if not chosen.n_rows:
        raise DataError(f"{source.place}: expected at least one row to fit on, got none")
    rows, X, labels = chosen.result()
    return rows, Sample(np.ascontiguousarray(X), labels, chosen.n_rows)
