"""Compare a map with its exact kernel on rows of a file."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from typing import Any

import numpy as np

from kafeat.errors import DataError, UsageError, quoted
from kafeat.evaluation.fidelity import fidelity
from kafeat.evaluation.usefulness import usefulness
from kafeat.feature_map import FeatureMap, load
from kafeat.io.memory import source_of
from kafeat.io.selection import match
from kafeat.io.source import Source
from kafeat.jobs.labels import read_label
from kafeat.jobs.rows import matrices
from kafeat.jobs.transform import Input
from kafeat.sampling import RowSample
from kafeat.types import Array, Floats


def evaluate(
    model: str | os.PathLike[str] | FeatureMap,
    data: Any,
    label: str | None = None,
    rows: int = 2000,
    reading: Input | None = None,
) -> dict[str, Any]:
    """What the map is worth: errors against the exact kernel and, with a label, scores of ridge models.

    The rows are those with the largest hashes of (seed, row number): where the file has rows enough, none that the
    fit has seen. The keys of the result are documented in docs/evaluate.md.
    """
    fm = model if isinstance(model, FeatureMap) else load(model)
    if isinstance(data, str | os.PathLike):
        with (reading or Input()).open(os.fspath(data)) as source:
            return _evaluate(fm, source, label, rows)
    return _evaluate(fm, source_of(data), label, rows)


def _evaluate(fm: FeatureMap, source: Source, label: str | None, rows: int) -> dict[str, Any]:
    unknown = next((fitted.step.no_exact for fitted in fm.chain.steps if fitted.step.no_exact), None)
    if unknown:
        raise UsageError(f"evaluate: {unknown}")
    seed = fm.config.seed
    sample = RowSample(seed, rows, largest=True)
    X, labels = _read(fm, source, label, sample)
    coded = replace(fm, columns=fm.columns.as_read)
    started = time.perf_counter()
    Z = np.empty((len(X), fm.n_components), dtype=fm.dtype)
    Z[...] = coded.transform(X)
    transformed = time.perf_counter()
    K = coded.exact_kernel(X)
    exact = time.perf_counter()
    report: dict[str, Any] = {
        "rows": len(X),
        "rows_seen_in_fit": _seen(fm, source, sample.n_rows, len(X)),
        "n_components": fm.n_components,
        "n_features_in": fm.n_features_in,
        "dtype": fm.dtype,
        "transform_seconds": transformed - started,
        "exact_seconds": exact - transformed,
        "reference": fm.chain.reference(),
        **fidelity(K, Z.astype(np.float64)),
    }
    if labels is not None:
        split = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(2,)))
        report.update(
            usefulness(fm.chain.numbers(X).astype(np.float64), Z.astype(np.float64), K, labels, split)
        )
    # A ratio to nothing has no value: null in JSON.
    return {
        key: None if isinstance(value, float) and not np.isfinite(value) else value
        for key, value in report.items()
    }


def _read(
    fm: FeatureMap, source: Source, label: str | None, sample: RowSample
) -> tuple[Floats, Array | None]:
    keep = () if label is None else (label,)
    columns = match(source, fm.columns, keep)
    if label is not None and label in {column.name for column in columns.features}:
        raise DataError(
            f"{source.place}: label {quoted(label)}: expected a column that is no feature of the map, got one"
        )
    for chunk, X in matrices(source, columns, keep, fm.chunk_rows, fm.dtype):
        offsets = sample.choose(chunk.start, chunk.rows)
        labels = None if label is None else read_label(chunk, label)[offsets]
        sample.add(chunk.start, chunk.rows, offsets, X[offsets], labels)
    if sample.n_rows < 2:
        raise DataError(f"{source.place}: expected at least two rows to evaluate on, got {sample.n_rows}")
    _, rows, found = sample.result()
    return np.ascontiguousarray(rows), found


def _seen(fm: FeatureMap, source: Source, n_rows: int, sampled: int) -> int | None:
    """How many of the evaluated rows the fit has seen; None where the map comes from other data."""
    if source.digest() not in {origin.sha256 for origin in fm.provenance.sources}:
        return None
    # The fit took the smallest hashes and the evaluation the largest: they meet only where rows are few.
    return max(0, fm.provenance.rows_fitted + sampled - n_rows)
