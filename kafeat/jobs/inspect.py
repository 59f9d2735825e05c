"""What is in an artifact, as builtins."""

from __future__ import annotations

import os
from typing import Any

from kafeat.io.columns.categories import Categories
from kafeat.model.feature_map import FeatureMap, load


def inspect(model: str | os.PathLike[str] | FeatureMap) -> dict[str, Any]:
    """Steps with parameters, sizes and scalar results of fitting; columns, dtype, versions and provenance.

    `contains_training_rows` says whether the state holds rows of the data that the map was fitted on. A map that no
    file can hold has no `sha256` and `bytes`. `pruned_from` is the width of a map of which some outputs are kept.
    `categories` are those that the fit has seen, of each input column that `one_hot` reads.
    `seen` is the range of each feature in the rows that the fit has read. `float64_steps` says how many steps, from the
    first on, compute in float64; in a map of float32 these are the scalers that come first, or all where float32 would
    not do.
    """
    fm = model if isinstance(model, FeatureMap) else load(model)
    steps = [
        {
            **fitted.step.recipe(),
            "n_features_in": fitted.n_features_in,
            "fitted": {name: value.item() for name, value in fitted.state.items() if value.ndim == 0},
            "arrays": {
                name: {"shape": list(value.shape), "dtype": str(value.dtype), "bytes": value.nbytes}
                for name, value in fitted.state.items()
                if value.ndim
            },
            "contains_training_rows": fitted.step.keeps_rows,
        }
        for fitted in fm.chain.steps
    ]
    return {
        "format": fm.format,
        "kafeat": fm.version,
        "sha256": fm.digest,
        "bytes": None if fm.digest is None else len(fm.dumps()),
        "dtype": fm.dtype,
        "float64_steps": len(steps) if fm.dtype == "float64" else fm.chain.cast_after,
        "chunk_rows": fm.chunk_rows,
        "seed": fm.config.seed,
        "n_features_in": fm.n_features_in,
        "n_components": fm.n_components,
        "pruned_from": None if fm.chain.outputs is None else fm.chain.n_outputs,
        "columns": list(fm.columns.names),
        "categories": {
            column.name: list(column.categories.values)
            for column in fm.columns.features
            if isinstance(column.categories, Categories)
        },
        "by_position": fm.columns.positional,
        "seen": None if fm.seen is None else _ranges(fm),
        "steps": steps,
        "contains_training_rows": any(fitted.step.keeps_rows for fitted in fm.chain.steps),
        "reference": fm.chain.reference(),
        "fitted_from": fm.provenance.to_plain(),
    }


def _ranges(fm: FeatureMap) -> dict[str, list[float | None]]:
    """Least and largest value; null where all were missing."""
    if fm.seen is None:
        return {}
    ends = zip(fm.columns.names, fm.seen.low.tolist(), fm.seen.high.tolist(), strict=True)
    return {name: [None if value != value else value for value in (low, high)] for name, low, high in ends}
