"""N-grams against scikit-learn's analyzers, and their hash against the same in whole numbers of Python."""

from collections import Counter
from unicodedata import normalize

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer

from kafeat.contract import ngrams
from kafeat.contract.ngrams import BUCKETS, count_ngrams
from kafeat.contract.tile import SparseRows

HOSTILE = [
    "", " ", "\n\t\r", "a", "ab", "abc", "Hello world hello", "x\u3000y\x1cz\n\tq", "é e\u0301 É E\u0301", "\u0301",
    "👩‍👩‍👧 🙂🙂", "שלום עולם مرحبا", "İstanbul ẞtraße ΟΔΟΣ", "ﬁ ǅ Ω", "\ud800 alone", "\x00 \x00\x00",
    "\u202eright\u202c", "\U0010ffff", "ก็", "中文没有空格", "a" * 700, "b " * 700,
]  # fmt: skip

analyze = CountVectorizer(analyzer="char_wb", ngram_range=(3, 5), lowercase=False).build_analyzer()


def folded(text: str) -> str:
    return normalize("NFC", normalize("NFC", text).casefold())


def grams(text: str) -> list[tuple[str, str]]:
    """The n-grams of scikit-learn, and the words."""
    grams = [("gram", one) for one in analyze(folded(text))]
    return [*grams, *(("word", one) for one in folded(text).split())]


def hashed(gram: tuple[str, str]) -> int:
    """The hash by Python's whole numbers. Model files depend on it: these numbers never change."""
    kind, text = gram
    if kind == "word":
        text = f" {text}"[::-1]
    value = 0
    for char in text:
        value = (value * 0x9E3779B97F4A7C15 + ord(char) + 1) % 2**64
    if kind == "word":
        value = value * 0x9E3779B97F4A7C15 % 2**64 ^ 0xC2B2AE3D27D4EB4F
    for _ in range(2):
        value ^= value >> 32
        value = value * 0xD6E8FEB86659FD93 % 2**64
    return value ^ value >> 32


def expected(text: str) -> dict[int, int]:
    """The signed counts of the buckets."""
    counts: Counter[int] = Counter()
    for gram in grams(text):
        h = hashed(gram)
        counts[h >> 50] += -1 if h >> 49 & 1 else 1
    return {bucket: n for bucket, n in counts.items() if n}


def counted(texts: list[str]) -> list[dict[int, int]]:
    rows = SparseRows(*count_ngrams(texts), BUCKETS)
    bounds = zip(rows.starts[:-1], rows.starts[1:], strict=True)
    return [dict(zip(rows.columns[a:b].tolist(), rows.values[a:b].tolist(), strict=True)) for a, b in bounds]


def test_hostile_texts_have_the_ngrams_of_scikit_learn() -> None:
    assert counted(HOSTILE) == [expected(text) for text in HOSTILE]


@given(st.lists(st.text(max_size=30), max_size=8))
def test_any_text_has_the_ngrams_of_scikit_learn(texts: list[str]) -> None:
    assert counted(texts) == [expected(text) for text in texts]


def test_columns_ascend_and_rows_do_not_depend_on_their_neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    together = counted(HOSTILE * 3)
    assert together == counted(HOSTILE) * 3
    assert all(list(row) == sorted(row) for row in together)
    monkeypatch.setattr(ngrams, "_AT_ONCE", 3)
    assert counted(HOSTILE * 3) == together


def test_buckets_and_signs_are_spread() -> None:
    words = [f"{i:x}" for i in range(25_000)]
    hashes = ngrams._hashes(words)[0]
    assert len(np.unique(hashes)) == len({one for word in words for one in grams(word)})
    kinds = np.unique(hashes)
    n = len(kinds)
    # χ² with B − 1 degrees of freedom has the variance 2(B − 1): six deviations
    observed = np.bincount((kinds >> np.uint64(50)).astype(np.int64), minlength=BUCKETS)
    chi2 = float(((observed - n / BUCKETS) ** 2).sum() / (n / BUCKETS))
    assert abs(chi2 - (BUCKETS - 1)) < 6 * np.sqrt(2 * (BUCKETS - 1))
    negative = int(((kinds >> np.uint64(49)) & np.uint64(1)).sum())
    assert abs(negative - n / 2) < 6 * np.sqrt(n) / 2
