"""A map by name and its rows, which the tests of all engines cut into partitions."""

import numpy as np
import pyarrow as pa
import pytest

from kafeat.model.feature_map import FeatureMap
from tests.engines.maps import fitted
from tests.recipes import words


@pytest.fixture(scope="session")
def rows() -> pa.Table:
    """1,500 rows: a name with a dot, a whole number among the features, text and a date beside them."""
    draws = np.random.default_rng(0)
    names, days = [f"row {i}" for i in range(1500)], pa.array(range(1500), pa.int32()).cast(pa.date32())
    z, x, y = draws.standard_normal(1500), draws.standard_normal(1500), draws.integers(-3, 3, 1500)
    return pa.table([names, z, x.astype(np.float32), y, days], names=words("id z.z x y day"))


@pytest.fixture(scope="session")
def by_name(rows: pa.Table) -> FeatureMap:
    return fitted(rows)
