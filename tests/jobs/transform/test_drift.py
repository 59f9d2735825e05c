"""Values outside of what the fit has seen, and too many of them."""

import os
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kafeat
from kafeat.errors import GateError, UsageError
from kafeat.runtime.column_ranges import ColumnRanges
from tests.jobs.files import transform_file

RNG = np.random.default_rng(2)
X = RNG.uniform(-1.0, 1.0, size=(500, 2))


@pytest.fixture(scope="module")
def fm():
    # fewer rows are fitted on than are read: the range is that of all
    steps = [{"kind": "fourier", "n_components": 4, "frequencies": "iid"}]
    return kafeat.fit({"fit_rows": 20, "chunk_rows": 100, "steps": steps}, X)


def shares(fm, data, tmp_path, **rules):
    return transform_file(fm, data, tmp_path / "o.npy", drift=True, **rules).drift


def test_the_range_is_that_of_every_row(fm, tmp_path):
    np.testing.assert_array_equal(fm.column_ranges.low, X.min(axis=0))
    np.testing.assert_array_equal(fm.column_ranges.high, X.max(axis=0))
    assert shares(fm, X, tmp_path) == {"c0": 0.0, "c1": 0.0}


def test_shares_are_counted_on_both_sides(fm, tmp_path):
    data = X.copy()
    data[:50, 0] = 2.0
    data[50:75, 0] = -2.0
    assert shares(fm, data, tmp_path) == {"c0": 0.15, "c1": 0.0}


def test_too_much_of_it_writes_nothing(fm, tmp_path):
    data = X.copy()
    data[:50, 1] = 2.0
    (tmp_path / "o.npy").write_bytes(b"previous")
    with pytest.raises(GateError, match=r"in.npy: expected at most 9.00% .*, got 'c1' 10.00%") as caught:
        shares(fm, data, tmp_path, max_drift=0.09)
    assert caught.value.exit_code == 6
    assert (tmp_path / "o.npy").read_bytes() == b"previous"
    assert sorted(os.listdir(tmp_path)) == ["in.npy", "o.npy"]
    assert shares(fm, data, tmp_path, max_drift=0.1) == {"c0": 0.0, "c1": 0.1}


def test_bad_rows_do_not_count(fm, tmp_path):
    data = X.copy()
    data[0] = [np.nan, 5.0]
    data[1] = [0.0, 5.0]
    assert shares(fm, data, tmp_path, on_bad_rows="drop") == {"c0": 0.0, "c1": 1 / 499}


def test_missing_numbers_are_inside_and_unknown_categories_outside(tmp_path):
    table = pa.table({"a": [1.0, None, 3.0], "b": ["x", "y", "x"]})
    steps = [{"kind": "impute"}, {"kind": "one_hot", "columns": ["b"], "unknown": "ignore"}]
    fm = kafeat.fit({"steps": [*steps, {"kind": "fourier", "n_components": 4, "frequencies": "iid"}]}, table)
    pq.write_table(pa.table({"a": [None, 9.0, 2.0], "b": ["z", "x", "y"]}), tmp_path / "in.parquet")
    done = transform_file(fm, tmp_path / "in.parquet", tmp_path / "o.npy", drift=True)
    assert done.drift == {"a": 1 / 3, "b": 1 / 3}


def test_a_map_of_an_older_kafeat_says_so(fm, tmp_path):
    old = replace(fm, column_ranges=None)
    assert shares(old, X, tmp_path) is None
    with pytest.raises(UsageError, match="--max-drift: .*fit it again"):
        shares(old, X, tmp_path, max_drift=0.5)


@pytest.mark.parametrize(("plain", "what"), [
    ({"low": np.zeros(2)}, r"seen: expected \['high', 'low'\]"),
    ({"low": np.zeros(3), "high": np.ones(2)}, r"seen.low: expected the shape \(2,\)"),
    ({"low": np.zeros(2), "high": np.array([np.inf, 1.0])}, "seen.high: expected finite numbers"),
    ({"low": np.ones(2), "high": np.zeros(2)}, "every low at or below its high"),
    ({"low": np.array([np.nan, 0]), "high": np.ones(2)}, "every low at or below its high"),
])  # fmt: skip
def test_a_strangers_range_is_checked(plain, what):
    with pytest.raises(ValueError, match=what):
        ColumnRanges.from_plain(plain, 2)
