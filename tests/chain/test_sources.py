"""The input column that each output of a chain belongs to."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import kafeat
from kafeat.chain.chain import Chain, sources_of
from kafeat.jobs.inspect import importance_of

STEPS = [
    {"kind": "missing_indicator"},
    {"kind": "date_parts", "columns": ["time"], "cyclic": True},
    {"kind": "one_hot", "columns": ["town", "kind"], "unknown": "ignore", "min_frequency": 3},
    {"kind": "impute"},
    {"kind": "quantile"},
]


def table() -> pa.Table:
    rng = np.random.default_rng(0)
    x = rng.standard_normal(200)
    x[::7] = np.nan
    towns = rng.choice(["a", "b", "c", "d"], 200, p=[0.5, 0.3, 0.19, 0.01])
    return pa.table(
        {
            "kind": rng.choice(["u", "v"], 200),
            "x": x,
            "time": [f"2024-{month:02}-03" for month in rng.integers(1, 13, 200)],
            "town": towns,
            "y": rng.random(200),
            "label": (towns == "a") + 0.01 * rng.random(200),
        }
    )


def test_an_output_changes_with_the_column_that_it_belongs_to_only() -> None:
    steps = [*STEPS, {"kind": "clip"}, {"kind": "standardize"}]
    fm = kafeat.fit({"steps": steps}, table(), label="label")
    chain, n = fm.chain, fm.chain.n_features_in
    sources = sources_of(chain.steps)
    assert sources is not None
    assert len(sources) == chain.steps[-1].n_features_out
    low, high = fm.column_ranges.low, fm.column_ranges.high
    X = np.random.default_rng(1).uniform(low, high, (300, n))
    whole = [name not in ("x", "y") for name in fm.columns.names]  # codes of categories, and seconds
    X[:, whole] = np.rint(X[:, whole])
    X[::5, fm.columns.names.index("x")] = np.nan
    features = Chain(chain.steps).transform(X)
    for j in range(n):
        changed = X.copy()
        changed[:, j] = np.roll(X[:, j], 1)
        moved = (Chain(chain.steps).transform(changed) != features).any(axis=0)
        assert moved.any()
        assert set(sources[moved]) == {j}


def test_importance_is_told_by_input_columns_where_steps_made_several_of_one() -> None:
    fm = kafeat.fit({"steps": [*STEPS, {"kind": "metric"}]}, table(), label="label")
    shares = importance_of(fm, len(STEPS))["importance"]
    assert set(shares) == {"kind", "x", "time", "town", "y"}
    assert sum(shares.values()) == pytest.approx(1.0)
    assert max(shares, key=shares.get) == "town"


def test_outputs_that_mix_columns_belong_to_none() -> None:
    fm = kafeat.fit(
        {"steps": [*STEPS, {"kind": "pca", "n_components": 3}, {"kind": "metric"}]}, table(), label="label"
    )
    assert set(importance_of(fm, len(STEPS) + 1)["importance"]) == {"input 0", "input 1", "input 2"}
