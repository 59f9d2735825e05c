"""A transform of files by a map in memory."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest

import kafeat
from tests.jobs.files import transform_file


def linear(X, Y):
    return X @ Y.T


@pytest.mark.parametrize("kernel", ["linear", linear])
def test_a_map_that_no_file_can_hold_transforms_files_too(tmp_path, kernel):
    X = np.random.default_rng(0).standard_normal((40, 3))
    fm = kafeat.fit({"steps": [{"kind": "nystroem", "kernel": kernel, "n_components": 3}]}, X)
    transform_file(fm, X, tmp_path / "out.parquet")
    written = pq.read_table(tmp_path / "out.parquet")
    # Columns and rows are products in two orders: the last bits may differ.
    np.testing.assert_allclose(np.column_stack(written.columns), fm.transform(X), rtol=0, atol=1e-5)
    notes = json.loads(written.schema.metadata[b"kafeat"])
    assert notes.get("map") == fm.digest  # SHA-256 of a file, where there can be one
    assert (fm.digest is None) == callable(kernel)
