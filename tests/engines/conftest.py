"""A map by name and its rows, which the tests of all engines cut into partitions."""

import numpy as np
import pyarrow as pa
import pytest

from kafeat.model.feature_map import FeatureMap
from tests.engines.maps import fitted


@pytest.fixture(scope="session")
def rows() -> pa.Table:
    """1,500 rows: a name with a dot, a whole number among the features, text and a date beside them."""
    draws = np.random.default_rng(0)
    return pa.table(
        {
            "id": [f"row {i}" for i in range(1500)],
            "z.z": draws.standard_normal(1500),
            "x": draws.standard_normal(1500).astype(np.float32),
            "y": draws.integers(-3, 3, 1500),
            "day": pa.array(range(1500), pa.int32()).cast(pa.date32()),
        }
    )


@pytest.fixture(scope="session")
def by_name(rows: pa.Table) -> FeatureMap:
    return fitted(rows)
