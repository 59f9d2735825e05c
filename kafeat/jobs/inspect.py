"""What is in an artifact, as builtins."""

from __future__ import annotations

import os
from typing import Any

from kafeat.feature_map import FORMAT, FeatureMap, load
from kafeat.io.categories import Categories


def inspect(model: str | os.PathLike[str] | FeatureMap) -> dict[str, Any]:
    """Steps with parameters, sizes and scalar results of fitting; columns, dtype, versions and provenance.

    `contains_training_rows` says whether the state holds rows of the data that the map was fitted on. A map that no
    file can hold has no `sha256` and `bytes`. `pruned_from` is the width of a map of which some outputs are kept.
    `categories` are those that the fit has seen, of each input column that `one_hot` reads.
    `seen` is the range of each feature in the rows that the fit has read.
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
        "format": FORMAT,
        "kafeat": fm.version,
        "sha256": fm.digest,
        "bytes": None if fm.digest is None else len(fm.dumps()),
        "dtype": fm.dtype,
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
