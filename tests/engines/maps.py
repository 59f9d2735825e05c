"""The map that the tests of all engines use."""

from __future__ import annotations

import pyarrow as pa

import kafeat
from kafeat.model.feature_map import FeatureMap

CHUNK_ROWS = 256
WIDTH = 24


def fitted(table: pa.Table, seed: int = 0, **config: object) -> FeatureMap:
    step = {"kind": "fourier", "n_components": WIDTH, "frequencies": "iid", "weights": "uniform"}
    columns = {"include": ["x", "y", "z.z"]}
    return kafeat.fit(
        {"columns": columns, "chunk_rows": CHUNK_ROWS, "seed": seed, "steps": [step], **config}, table
    )
