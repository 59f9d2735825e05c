"""Rows are divided by groups and times: no group is on both sides, and no row held out is before one learned from."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafeat.contract.folds import FOLDS, Folded, Folds, RowKeys, cuts_by
from kafeat.errors import DataError

keys = st.lists(st.integers(0, 9), min_size=2, max_size=60).filter(lambda values: len(set(values)) > 1)


@given(keys, st.integers(1, 59), st.integers(0, 5))
def test_whole_groups_are_held_out_and_some_rows_stay(values, count, seed):
    rows = RowKeys(np.array(values, dtype=float), ordered=False)
    held = rows.last(min(count, len(values) - 1), np.random.default_rng(seed))
    assert held.any()
    assert not held.all()
    assert not set(rows.values[held]) & set(rows.values[~held])


@given(keys, st.integers(1, 59))
def test_the_latest_rows_are_held_out(values, count):
    rows = RowKeys(np.array(values, dtype=float), ordered=True)
    held = rows.last(min(count, len(values) - 1), np.random.default_rng(0))
    assert held.any()
    assert rows.values[held].min() > rows.values[~held].max()


@given(keys, st.booleans(), st.integers(2, 5))
def test_every_cut_keeps_groups_and_the_order_of_times(values, ordered, n):
    rows = RowKeys(np.array(values, dtype=float), ordered)
    for train, held in cuts_by(rows, n):
        assert train.any()
        assert held.any()
        assert not (train & held).any()
        assert not set(rows.values[train]) & set(rows.values[held])
        if ordered:
            assert rows.values[train].max() < rows.values[held].min()
        else:
            assert (train | held).all()


@pytest.mark.parametrize("ordered", [False, True])
def test_one_group_or_time_alone_is_refused(ordered):
    rows = RowKeys(np.zeros(30), ordered)
    for divide in (lambda: rows.last(6, np.random.default_rng(0)), lambda: cuts_by(rows, 3)):
        with pytest.raises(DataError, match="split_by: expected .* among the rows, got one"):
            divide()


def test_parts_are_about_equal():
    values = np.random.default_rng(0).integers(0, 200, size=6000).astype(float)
    for ordered, parts in ((False, FOLDS), (True, FOLDS + 1)):
        folds = Folds.by(RowKeys(values, ordered))
        counts = np.bincount(folds.parts(values))
        assert len(counts) == folds.count == parts
        assert counts.min() > 0.9 * 6000 / parts


def test_without_keys_rows_take_turns():
    np.testing.assert_array_equal(Folded.of(None, 7).parts, [0, 1, 2, 0, 1, 2, 0])
    assert [cut.held for cut in Folds().cuts] == [0, 1, 2]


def test_groups_are_shuffled_and_times_are_not():
    values = np.repeat(np.arange(50.0), 3)
    groups = RowKeys(values, ordered=False).shuffled(np.random.default_rng(0)).values
    assert len(np.unique(groups)) == 50
    assert (groups != values).any()
    assert len(np.unique(np.column_stack([groups, values]), axis=0)) == 50
    assert RowKeys(values, ordered=True).shuffled(np.random.default_rng(0)).values is values
