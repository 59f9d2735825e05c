"""Fit a map: sample rows in one pass over the input, fit the chain on them, and note from what it came."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from kafeat.blas import one_blas_thread
from kafeat.chain import Chain
from kafeat.config import Config, load_config
from kafeat.errors import DataError, UsageError, ValueRefused
from kafeat.evaluation.task import task_of
from kafeat.feature_map import FeatureMap
from kafeat.io.columns import Columns
from kafeat.io.formats import open_source
from kafeat.io.memory import source_of
from kafeat.io.selection import choose, match
from kafeat.io.source import Source
from kafeat.jobs.labels import read_label
from kafeat.jobs.rows import matrices
from kafeat.jobs.search import settle
from kafeat.provenance import Origin, Provenance, printable
from kafeat.sampling import RowSample
from kafeat.seen import Seen
from kafeat.sparse import dense
from kafeat.step import Sample, takes_missing
from kafeat.types import Array, Floats

Progress = Callable[[int], None]

_LEAST_ROWS, _MOST_NUMBERS = 256, 1 << 25


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
    config: Config,
    source: Source,
    label: str | Array | None,
    progress: Progress | None = None,
    *,
    aside: Sequence[str] = (),
    held_out: Array | None = None,
) -> FeatureMap:
    """Fit on a source that is read once, from its first row to its last.

    Columns of `aside` are no features. The rows that `held_out` (n_rows,) names are read, and not fitted on.
    """
    name = label if isinstance(label, str) else None
    given = None if label is None or isinstance(label, str) else np.asarray(label)
    coded = {column: lenient for step in config.steps for column, lenient in step.coded_columns.items()}
    columns = choose(
        source,
        config.columns.include or None,
        [*config.columns.exclude, *aside],
        name,
        coded,
        missing=takes_missing(config.steps),
    )
    rows, sample, seen = _sample(config, source, columns, name, given, progress, held_out)
    columns = columns.settled(sample.X)
    sample = replace(sample, names=columns.names, n_categories=columns.n_categories)
    brought, given_origins = _brought(config, columns, name)
    sample = replace(sample, given=brought)
    stream = np.random.default_rng(np.random.SeedSequence(config.seed, spawn_key=(1,)))
    of_search = np.random.default_rng(np.random.SeedSequence(config.seed, spawn_key=(3,)))
    try:
        with one_blas_thread():
            steps, searches = settle(config.steps, sample, of_search)
        chain = Chain.fit(steps, sample, stream)
        if config.prune is not None:
            chain = replace(chain, outputs=_pruned(chain, sample, config.prune.keep))
    except ValueRefused as refused:
        in_file = ValueRefused(int(rows[refused.row]), refused.column, refused.problem)
        raise in_file.located(source.place, columns.names) from None
    except DataError as error:
        raise DataError(f"{source.place}: {error}") from None
    provenance = Provenance(
        sources=[
            Origin(name=printable(os.path.basename(source.place)), rows=sample.n_rows, sha256=source.digest())
        ],
        rows_fitted=len(sample.X),
        label=None if name is None else printable(name),
        config_sha256=config.digest(),
        given=given_origins,
        searches=searches,
    )
    return FeatureMap(
        chain,
        columns,
        config.dtype,
        config.chunk_rows,
        config,
        provenance,
        seen=_of_categories(seen, columns),
    )


def _of_categories(seen: Seen, columns: Columns) -> Seen:
    """Where a feature is a category, all of its codes: only the code of an unknown one lies outside."""
    n = np.array(columns.n_categories)
    return Seen(np.where(n > 0, 0.0, seen.low), np.where(n > 0, n - 1.0, seen.high))


def _pruned(chain: Chain, sample: Sample, keep: int) -> Array:
    """The outputs that a sparse linear model of the label uses."""
    if sample.label is None:
        raise UsageError("prune: expected a label to predict (--label COL), got none")
    try:
        from kafeat.evaluation.prune import MOST_ROWS, sparse_outputs
    except ImportError as error:
        raise UsageError(
            f"prune: expected scikit-learn, got: {error}; pip install 'kafeat[evaluate]'"
        ) from error
    every = -(-len(sample.X) // MOST_ROWS)
    Z, labels = chain.transform(sample.X[::every]), sample.label[::every]
    return sparse_outputs(Z, task_of(labels).targets(labels), keep)


def _brought(config: Config, columns: Columns, label: str | None) -> tuple[dict[str, Floats], list[Origin]]:
    """The rows that steps ask for besides the sample, with the columns of the map, and from what they came."""
    found: dict[str, Floats] = {}
    records: list[Origin] = []
    for step in config.steps:
        for name, rows in step.given_rows.items():
            if name in found:
                continue
            with open_source(rows, None) if isinstance(rows, str) else source_of(rows) as source:
                not_features = [label] if label in {field.name for field in source.fields} else []
                matched = match(source, columns, [name for name in not_features if name is not None])
                found[name] = _all_rows(source, matched, config)
                file = printable(os.path.basename(name))
                records.append(Origin(name=file, rows=len(found[name]), sha256=source.digest()))
    return found, records


def _all_rows(source: Source, columns: Columns, config: Config) -> Floats:
    parts = [np.empty((0, columns.n_features), dtype=config.dtype)]
    parts += [dense(X) for _, X in matrices(source, columns, (), config.chunk_rows, config.dtype)]
    return np.ascontiguousarray(np.concatenate(parts))


def _sample(
    config: Config,
    source: Source,
    columns: Columns,
    label: str | None,
    given: Array | None,
    progress: Progress | None,
    held_out: Array | None,
) -> tuple[Array, Sample, Seen]:
    """Row numbers and rows with the smallest hashes, and the range of all; every row is read and checked."""
    if given is not None and given.shape != (source.rows,):
        raise UsageError(f"label: expected an array of shape ({source.rows},), got {given.shape}")
    size = None if config.fit_rows == "all" else config.fit_rows
    chosen = RowSample(config.seed, size)
    keep = () if label is None else (label,)
    seen = Seen.nothing(columns.n_features)
    # What becomes of a row does not depend on its chunk here; of sparse ones whole chunks may become dense.
    height = min(config.chunk_rows, max(_LEAST_ROWS, _MOST_NUMBERS // columns.n_features))
    for chunk, X in matrices(source, columns, keep, height, config.dtype):
        rest = slice(None) if held_out is None else ~held_out[chunk.start : chunk.start + chunk.rows]
        seen = seen.adding(X[rest])
        offsets = chosen.choose(chunk.start, chunk.rows)
        if held_out is not None:
            offsets = offsets[~held_out[chunk.start + offsets]]
        labels = None
        if label is not None:
            labels = read_label(chunk, label)[offsets]
        elif given is not None:
            labels = given[chunk.start + offsets]
        chosen.add(chunk.start, chunk.rows, offsets, dense(X[offsets]), labels)
        if progress is not None:
            progress(chunk.rows)
    if not chosen.n_rows:
        raise DataError(f"{source.place}: expected at least one row to fit on, got none")
    rows, X, labels = chosen.result()
    return rows, Sample(np.ascontiguousarray(X), labels, chosen.n_rows), seen
