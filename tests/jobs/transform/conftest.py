"""Rows with labels of every type, and models of them: each is fitted once a run."""

from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kafeat

CLASSES = {
    "text": np.array(["no", 'say, "yes"', "perhaps"]),
    "integer": np.array([-1, 0, 1]),
    "number": np.array([0.0, 1.0, 2.0]),
    "boolean": np.array([False, True]),
}
CONFIG = {
    "chunk_rows": 100,
    "columns": {"include": ["x0", "x1", "x2"]},
    "steps": ["standardize", {"kind": "ridge", "penalty": 0.01}],
}


@pytest.fixture(scope="session")
def table():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((700, 3))
    y = X @ [1.0, 2.0, 3.0] + rng.standard_normal(700)
    codes = np.digitize(X[:, 0], [0.0, 0.8])
    labels = {kind: classes[np.minimum(codes, len(classes) - 1)] for kind, classes in CLASSES.items()}
    labels |= {"y": y, "z": 2.0 * y, "c": np.where(y > 0.0, "yes", "no")}
    return pa.table({**{f"x{j}": X[:, j] for j in range(3)}, **labels, "id": np.arange(700)})


@pytest.fixture(scope="session")
def model(table):
    """The model of some labels."""

    @cache
    def model(*labels, intervals=True):
        return kafeat.fit(CONFIG, table, list(labels) if len(labels) > 1 else labels[0], intervals=intervals)

    return model


@pytest.fixture
def data(table, tmp_path):
    pq.write_table(table, tmp_path / "data.parquet")
    return tmp_path / "data.parquet"
