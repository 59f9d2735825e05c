"""The map that the tests of all engines use."""

import numpy as np
import pyarrow as pa

import kafeat
from kafeat.model.feature_map import FeatureMap

CHUNK_ROWS = 256
WIDTH = 24
NAMES = [f"f{i}" for i in range(WIDTH)]
STEP = {"kind": "fourier", "n_components": WIDTH, "frequencies": "iid", "weights": "uniform"}
CONFIG = {"columns": {"include": ["x", "y", "z.z"]}, "chunk_rows": CHUNK_ROWS}


def fitted(table: pa.Table, seed: int = 0, **config: object) -> FeatureMap:
    return kafeat.fit({**CONFIG, "seed": seed, "steps": [STEP], **config}, table)


def predicting(table: pa.Table, label: np.ndarray, **ridge: object) -> FeatureMap:
    """The same map with a predictor of a label, an array (n,) or (n, k)."""
    return kafeat.fit({**CONFIG, "steps": [STEP, {"kind": "ridge", **ridge}]}, table, label=label)


def features(fm: FeatureMap, X: object, rows: int, order: str = "F") -> np.ndarray:
    """Features of the rows by the map itself, in the memory order of the output: the last bit may depend on it."""
    return fm.transform(X, out=np.empty((rows, fm.n_components), fm.dtype, order=order), jobs=1)


LABELS = {
    "text": lambda table: np.where(table["x"].to_numpy() > 0.0, "über", "or, else"),
    "boolean": lambda table: table["x"].to_numpy() > 0.0,
    "integer": lambda table: table["y"].to_numpy(),
    "number": lambda table: np.floor(table["y"].to_numpy() / 2.0) + 0.5,
    "numbers": lambda table: np.column_stack([table["x"].to_numpy(), table["z.z"].to_numpy()]),
}
"""Labels of every type."""
