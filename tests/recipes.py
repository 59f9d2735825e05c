"""A small recipe of every kind, for tests that go through all of them."""

from __future__ import annotations

from typing import Any

from kafeat.contract.step import N_COMPONENTS
from kafeat.registry import step_class

# What a kind needs beside its defaults: tables have columns c0, c1, …, at least 20 rows, and some numbers near 100.
NEEDED: dict[str, dict[str, Any]] = {
    "one_hot": {"columns": ["c0"], "unknown": "ignore"},
    "date_parts": {"columns": ["c0"]},
    "target": {"columns": ["c0"]},
    "union": {"maps": [{"steps": [{"kind": "standardize"}]}]},
    "product": {"maps": [{"steps": [{"kind": "standardize"}]}]},
    "projection": {"n_components": 4},
    "nystroem": {"n_components": 4},
    "positive_exponential": {"gamma": 1e-3},
    "trees": {"n_components": 8, "n_trees": 10, "min_leaf_rows": 2},
}


def small(kind: str) -> dict[str, Any]:
    """The defaults of a kind, with eight outputs where the default has hundreds."""
    width = step_class(kind).model_fields.get("n_components")
    few = {"n_components": 8} if width is not None and width.default == N_COMPONENTS.default else {}
    return {"kind": kind, **few, **NEEDED.get(kind, {})}
