"""Describe a model file as builtins, and the shares of columns in a metric that was learned from a label."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from kafeat.chain.chain import FittedStep, sources_of
from kafeat.model.feature_map import FeatureMap
from kafeat.model.load import load
from kafeat.model.predictor import FittedPredictor


def inspect(model: str | os.PathLike[str] | FeatureMap) -> dict[str, Any]:
    """Return steps with parameters, sizes and scalar results of fitting, columns, dtype, versions and provenance.

    `contains_training_rows` is true if the state holds rows of the training data. A map that cannot be saved has no
    `sha256` and `bytes`. `categories` holds the categories of each column that `one_hot` reads, and `times` the columns
    that `date_parts` reads. `dialect` is how text is read: words for missing values, columns with decimal commas, forms
    and zones of times. `seen` holds the smallest and the largest value of each feature in the training rows.
    `importance` holds shares of 1: how much a learned metric stretches each input. `directions` is the least number of
    eigenvalues that make up 90 % of the metric's trace. `float64_steps` is how many leading steps compute in float64:
    in a float32 map the scalers that come first, or all steps where float32 is not precise enough. `predictor` has the
    step that predicts, and the names, type and classes of its labels. It is None for a map without a predictor.
    `unit_scale` is the factor of `transform --unit-variance`, or None if it is not known.
    """
    fm = model if isinstance(model, FeatureMap) else load(model)
    return {
        "format": fm.format,
        "kafeat": fm.version,
        "sha256": fm.digest,
        "bytes": None if fm.digest is None else len(fm.dumps()),
        "dtype": fm.dtype,
        "float64_steps": len(fm.chain.steps) if fm.dtype == "float64" else fm.chain.cast_after,
        "chunk_rows": fm.chunk_rows,
        "seed": fm.config.seed,
        "n_features_in": len(fm.columns.inputs),
        "n_components": fm.n_components,
        "columns": [name for name, _ in fm.columns.inputs],
        "categories": fm.columns.categories,
        "times": [column.name for column in fm.columns.features if column.times],
        "dialect": fm.columns.dialect,
        "by_position": fm.columns.positional,
        "seen": None if fm.column_ranges is None else fm.column_ranges.named(fm.columns.inputs),
        "drift_test_rows": None if fm.feature_mean is None else fm.feature_mean.rows,
        "unit_scale": fm.unit_scale,
        "steps": [{**_step(fitted), **importance_of(fm, i)} for i, fitted in enumerate(fm.chain.steps)],
        "predictor": None if fm.predictor is None else _predictor(fm.predictor),
        "contains_training_rows": any(fitted.step.traits.keeps_rows for fitted in fm.chain.steps),
        "reference": fm.chain.exact_kernel_note(),
        "fitted_from": fm.provenance.to_plain(),
    }


def _predictor(predictor: FittedPredictor) -> dict[str, Any]:
    """Return the step that predicts, and the names, type and classes of its labels."""
    labels = predictor.labels
    return {
        **_step(predictor.fitted),
        "labels": list(labels.names),
        "type": labels.type,
        "classes": None if labels.classes is None else list(labels.classes),
    }


def importance_of(fm: FeatureMap, i: int) -> dict[str, Any]:
    """Return what the step with index `i` has learned about its inputs, or an empty dict if it learns no metric.

    `importance` maps each column to its share of the metric, largest first. `directions` is the least number of
    eigenvalues that make up 90 % of the metric's trace. A share shows how much the metric stretches a column, and not
    how useful the column is: a rare category is stretched much. After steps that mix columns, names are `input 0`, …
    """
    state = fm.chain.steps[i].state
    if "importance" not in state:
        return {}
    weights, spectrum = state["importance"], state["spectrum"]
    sources = sources_of(fm.chain.steps[:i]) if i else np.arange(len(weights))
    if sources is None:
        names: Sequence[str] = [f"input {j}" for j in range(len(weights))]
    else:
        names, weights = fm.columns.names, np.bincount(sources, weights, fm.chain.n_features_in)
    shares = {names[j]: float(weights[j]) for j in np.argsort(-weights, kind="stable")}
    directions = int(np.searchsorted(np.cumsum(spectrum), 0.9 * spectrum.sum()) + 1)
    return {"importance": shares, "directions": directions}


def _step(fitted: FittedStep) -> dict[str, Any]:
    """Return the recipe of a step and its state: scalars by value, arrays by shape, dtype and size."""
    return {
        **fitted.step.recipe(),
        "n_features_in": fitted.n_features_in,
        "fitted": {name: value.item() for name, value in fitted.state.items() if value.ndim == 0},
        "arrays": {
            name: {"shape": list(value.shape), "dtype": str(value.dtype), "bytes": value.nbytes}
            for name, value in fitted.state.items()
            if value.ndim
        },
        "contains_training_rows": fitted.step.traits.keeps_rows,
    }
