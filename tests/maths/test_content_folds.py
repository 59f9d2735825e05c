"""Folds by content: the same for equal rows, whatever they are read from, and as even as chance."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from kafeat.contract.folds import uneven_folds
from kafeat.contract.tile import SparseRows
from kafeat.io.readers.memory import reader_of
from kafeat.maths import content_folds
from kafeat.maths.content_folds import content_hashes, folds_of, group_hashes, sparse_hashes
from tests.io.tables import every_format, read

ROWS = hnp.arrays(np.float64, st.tuples(st.integers(1, 9), st.integers(1, 6)), elements=st.floats())


def splitmix64(state: int) -> int:
    """The output for a state, as its authors publish it (Steele, Lea & Flood 2014)."""
    z = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
    return z ^ (z >> 31)


def plain_hash(row: np.ndarray, seed: int) -> int:
    """The definition, number by number."""
    keys = [splitmix64((seed + i * 0x9E3779B97F4A7C15) % 2**64) for i in range(1, len(row) + 2)]
    with np.errstate(over="ignore"):
        narrow = [np.float32(x) for x in row]
    bits = [0x7FC00000 if np.isnan(x) else int(np.float32(x + np.float32(0)).view(np.uint32)) for x in narrow]
    return splitmix64((keys[0] + sum(k * b for k, b in zip(keys[1:], bits, strict=True))) % 2**64)


@given(ROWS, st.integers(0, 2**63 - 1))
def test_the_hash_is_its_definition_in_every_dtype(X: np.ndarray, seed: int) -> None:
    expected = [plain_hash(row, seed) for row in X]
    with np.errstate(over="ignore"):
        narrow = X.astype(np.float32)
    for rows in (X, np.asfortranarray(X), narrow):
        assert content_hashes(rows, seed).tolist() == expected


@given(ROWS)
def test_numpy_gives_the_hashes_of_the_compiled_loop(X: np.ndarray) -> None:
    compiled = content_hashes(X, 5)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(content_folds, "loop", lambda *_, **__: None)
        np.testing.assert_array_equal(content_hashes(X, 5), compiled)


@given(ROWS, st.integers(0, 2**63 - 1))
def test_sparse_parts_have_the_hashes_of_their_rows(X: np.ndarray, seed: int) -> None:
    parts = []
    for part in np.array_split(X, min(2, X.shape[1]), axis=1):
        rows, columns = np.nonzero(part)
        starts = np.searchsorted(rows, np.arange(len(X) + 1))
        parts.append(SparseRows(part[rows, columns], columns, starts, part.shape[1]))
    np.testing.assert_array_equal(sparse_hashes(parts, seed), content_hashes(X, seed))


def test_every_format_gives_the_same_folds(tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(40, 3)) * [1.0, 1e-8, 1e8]
    X[3] = [-0.0, 0.1, 2**24 + 1]
    expected = content_hashes(X, 7)
    sources = [*every_format(tmp_path, X), reader_of(X), reader_of(X.astype(np.float32))]
    for source in sources:
        for dtype in ("float32", "float64"):
            np.testing.assert_array_equal(content_hashes(read(source, dtype), 7), expected)


@pytest.fixture(scope="module")
def close_hashes() -> list[np.ndarray]:
    """The hashes of two rows that differ in the last bit, for 10,000 seeds."""
    close = np.array([[1.0, 2.0], [1.0, np.nextafter(np.float32(2), np.float32(3))]])
    return [content_hashes(close, seed) for seed in range(10_000)]


@pytest.mark.parametrize("n_folds", [2, 4, 5, 8])
def test_two_rows_share_a_fold_by_chance_alone(close_hashes: list[np.ndarray], n_folds: int) -> None:
    """Over seeds, any two rows share a fold with probability 1/K: 5 standard errors of 10,000 draws."""
    same = np.mean([np.ptp(folds_of(hashes, n_folds)) == 0 for hashes in close_hashes])
    assert abs(same - 1 / n_folds) < 5 * np.sqrt((1 / n_folds) * (1 - 1 / n_folds) / 10_000)
    of_many = folds_of(content_hashes(np.arange(40_000.0)[:, None], 3), n_folds)
    assert np.abs(np.bincount(of_many) / 40_000 - 1 / n_folds).max() < 5 * np.sqrt(0.25 / 40_000)


def test_rows_of_a_group_share_a_fold_and_groups_are_spread() -> None:
    groups = np.repeat(np.arange(-5000, 5000), 2)
    of_rows = folds_of(group_hashes(groups, 11), 4)
    np.testing.assert_array_equal(of_rows[::2], of_rows[1::2])
    assert np.abs(np.bincount(of_rows[::2]) / 10_000 - 0.25).max() < 5 * np.sqrt(0.25 * 0.75 / 10_000)
    assert (group_hashes(groups, 12) != group_hashes(groups, 11)).all()


def test_uneven_folds_are_told() -> None:
    assert uneven_folds(np.array([50, 100, 150, 100])) is None
    assert uneven_folds(np.array([67, 200, 67, 66])) is None
    told = uneven_folds(np.array([49, 101, 150, 100]))
    assert told is not None
    assert told.startswith("expected about 100 rows in each of 4 folds, got from 49 to 150")
    assert uneven_folds(np.array([201, 67, 66, 66])) is not None
