"""Row samples are the same for every chunking, and each row is as likely as the other."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2

from kafeat.maths.row_sample import RowSample, row_hashes


def sample(n: int, size: int | None, seed: int, cuts: list[int], largest: bool = False):
    """Rows chosen of n, shown in pieces that end at `cuts`; row i holds i and 2i, its label is −i."""
    chosen = RowSample(seed, size, largest)
    edges = [0, *sorted({cut for cut in cuts if 0 < cut < n}), n]
    for start, stop in pairwise(edges):
        offsets = chosen.choose(start, stop - start)
        numbers = start + offsets
        X = np.column_stack([numbers, 2 * numbers]).astype(float)
        chosen.add(start, stop - start, offsets, X, label=-numbers)
    assert chosen.n_rows == n
    rows, X, about = chosen.result()
    return rows, X, about["label"]


@given(
    n=st.integers(1, 6000), size=st.one_of(st.none(), st.integers(1, 400)), seed=st.integers(0, 2**63 - 1),
    cuts=st.lists(st.integers(1, 6000), max_size=30), largest=st.booleans(),
)  # fmt: skip
def test_any_chunking_gives_the_same_rows(n, size, seed, cuts, largest):
    rows, X, label = sample(n, size, seed, cuts, largest)
    hashes = row_hashes(seed, 0, n)
    order = np.argsort(~hashes if largest else hashes)
    want = np.sort(order[: n if size is None else size])
    assert rows.tolist() == want.tolist()
    assert (np.column_stack([rows, 2 * rows]) == X).all()
    assert (label == -rows).all()


def test_few_candidates_are_read_of_a_long_file() -> None:
    # A row that comes i-th is a candidate with probability about size/i: size (1 + ln(n/size)) in all, plus what is
    # kept until the first compaction. Reading all 200,000 would be no sample.
    chosen, read = RowSample(0, 500), 0
    for start in range(0, 200_000, 1000):
        offsets = chosen.choose(start, 1000)
        read += len(offsets)
        chosen.add(start, 1000, offsets, offsets[:, None].astype(float), label=None)
    assert read < 12_000
    assert len(chosen.result()[0]) == 500
    assert chosen.result()[2] == {}


def test_rows_are_equally_likely() -> None:
    n, size, draws = 40, 10, 4000
    counts = np.zeros(n)
    for seed in range(draws):
        counts[np.argsort(row_hashes(seed, 0, n))[:size]] += 1
    # as for draws without replacement: Σ(count − draws·p)²/(draws·p(1 − p)·n/(n − 1)) follows chi2 with n − 1 degrees
    p = size / n
    statistic = ((counts - draws * p) ** 2).sum() / (draws * p * (1 - p) * n / (n - 1))
    assert chi2.ppf(1e-6, n - 1) < statistic < chi2.ppf(1 - 1e-6, n - 1)


def test_hashes_are_different_and_start_anywhere() -> None:
    hashes = row_hashes(3, 0, 100_000)
    assert len(np.unique(hashes)) == 100_000
    assert (row_hashes(3, 70_000, 100) == hashes[70_000:70_100]).all()
    assert (row_hashes(4, 0, 100) != hashes[:100]).all()
    assert row_hashes(3, 2**62, 5).shape == (5,)
