"""Count the n-grams of texts by signed feature hashing. A column of text has `BUCKETS` features, most of them 0."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from unicodedata import normalize

import numpy as np
import numpy.typing as npt

from kafeat.types import Array

_BITS = 14
BUCKETS = 1 << _BITS
"""The number of features of a column of text."""
LENGTHS = (3, 4, 5)
"""The lengths of the n-grams, in characters."""

_SPACE = 0x20
_SPACES = [*range(0x09, 0x0E), *range(0x1C, 0x21), 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B)]
_SPACES += [0x2028, 0x2029, 0x202F, 0x205F, 0x3000]
_IS_SPACE = np.isin(np.arange(_SPACES[-1] + 2), _SPACES)
# Number of characters to count at a time, so that the arrays fit into the L2 cache.
_AT_ONCE = 1 << 15

Hashes = npt.NDArray[np.uint64]
# The hash of an n-gram c₁ … c_n is `_mixed` of c₁ Mⁿ⁻¹ + … + c_n modulo 2⁶⁴. For a word with the space c₀ before it, it
# is `_mixed` of (c₀ M + c₁ M² + …) XOR _WORD.
_M, _MIX, _WORD = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93), np.uint64(0xC2B2AE3D27D4EB4F)


def count_ngrams(texts: Sequence[str]) -> tuple[Array, Array, Array]:
    """Count words and character n-grams. Return CSR arrays: counts (float64), buckets and the start of each row.

    Case is folded and characters are composed (NFC). White space separates words, and n-grams see a space before and
    after each text. A hash maps each word or n-gram to a bucket and a sign, and counts in the same bucket are added.
    """
    folded = [_folded(text) for text in texts]
    counted = [_count(folded[rows], rows.start) for rows in _blocks(folded)]
    row_of, buckets, counts = (np.concatenate(parts) for parts in zip(*counted, strict=True))
    starts = np.searchsorted(row_of, np.arange(len(texts) + 1))
    return counts.astype(np.float64), buckets, starts


def _folded(text: str) -> str:
    return text.lower() if text.isascii() else normalize("NFC", normalize("NFC", text).casefold())


def _blocks(texts: Sequence[str]) -> Iterator[slice]:
    """Yield slices of the texts, each with about `_AT_ONCE` characters."""
    start, size = 0, 0
    for row, text in enumerate(texts):
        size += len(text) + 1
        if size >= _AT_ONCE:
            yield slice(start, row + 1)
            start, size = row + 1, 0
    yield slice(start, len(texts))


def _count(texts: Sequence[str], first: int) -> tuple[Array, Array, Array]:
    """Return the row (counted from `first`), the bucket and the count of each nonzero entry, in order."""
    hashes, rows = _hashes(texts)
    key = (rows.astype(np.uint64) << np.uint64(_BITS + 1)) | (hashes >> np.uint64(63 - _BITS))
    key.sort()
    signs = 1 - 2 * (key & np.uint64(1)).astype(np.int64)
    entry = (key >> np.uint64(1)).astype(np.int64)
    begins = np.flatnonzero(np.diff(entry, prepend=-1))
    counts = np.add.reduceat(signs, begins) if len(begins) else signs
    entry, counts = entry[begins][counts != 0], counts[counts != 0]
    return first + (entry >> _BITS), entry & (BUCKETS - 1), counts


def _hashes(texts: Sequence[str]) -> tuple[Hashes, Array]:
    """Return the hash of each n-gram and word of the texts, and its row."""
    code = np.frombuffer("\n".join(["", *texts, ""]).encode("utf-32-le", "surrogatepass"), np.uint32)
    row_of = np.repeat(np.arange(len(texts)), [len(text) + 1 for text in texts])
    row_of = np.append(row_of, len(texts) - 1) if texts else np.zeros(len(code), np.int64)
    space = _IS_SPACE[np.minimum(code, len(_IS_SPACE) - 1)]
    kept = ~(space & np.append(False, space[:-1]))  # keep one space between two words
    space, row_of = space[kept], row_of[kept]
    letters = np.where(space, _SPACE, code[kept]).astype(np.uint64) + np.uint64(1)
    hashes, rows = _of_words(letters, space, row_of)
    polynomial, inside = letters[:-1] * _M + letters[1:], ~space[1:-1]
    for n in LENGTHS:
        # an n-gram may begin or end with a space, but has none inside
        polynomial = polynomial[:-1] * _M + letters[n - 1 :]
        inside = inside if n == LENGTHS[0] else inside[:-1] & ~space[n - 2 : -1]
        found = np.flatnonzero(inside)
        hashes.append(polynomial[found])
        rows.append(row_of[found + 1])
    return _mixed(np.concatenate(hashes)), np.concatenate(rows)


def _of_words(letters: Hashes, space: Array, row_of: Array) -> tuple[list[Hashes], list[Array]]:
    """Return the hashes of the words, not yet mixed, and their rows."""
    edges = np.flatnonzero(space)
    lengths = np.diff(edges)
    if not len(lengths):
        return [np.empty(0, np.uint64)], [np.empty(0, np.int64)]
    place = np.arange(edges[-1]) - np.repeat(edges[:-1], lengths)
    powers = np.multiply.accumulate(np.full(int(lengths.max()), _M))
    words = np.add.reduceat(letters[: edges[-1]] * powers[place], edges[:-1])
    return [words ^ _WORD], [row_of[edges[:-1] + 1]]


def _mixed(hashes: Hashes) -> Hashes:
    """Make every bit of a hash depend on all bits, as the finalizers of Murmur3 and SplitMix do."""
    for _ in range(2):
        hashes ^= hashes >> np.uint64(32)
        hashes *= _MIX
    hashes ^= hashes >> np.uint64(32)
    return hashes
