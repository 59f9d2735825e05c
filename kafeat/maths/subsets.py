"""Sums over sets of terms of the products of the terms in a set, by recurrence over the terms.

Nothing is subtracted, so sums of positive terms keep their digits.

Source: Shawe-Taylor & Cristianini 2004, section 9.2 (all-subsets and ANOVA kernels by dynamic programming).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from kafeat.types import Floats


def degree_warning(kind: str, degree: int, n_columns: int) -> str | None:
    """Return a sentence about sets of more columns than there are, over which every sum is 0, or None."""
    if degree <= n_columns:
        return None
    return f"{kind}: degree: sets of {degree} columns need more than the {n_columns} of the input, so the kernel is 0"


def sets_of_size(terms: Iterable[Floats], sums: Floats, product: Floats) -> Floats:
    """Return Σ_{|S| = size} Π_{i ∈ S} t_i, the last part of the buffer `sums` (size, …); `product` (…) is one too.

    A sum over sets of q terms with a new term t is the one without it, and t times the one over q − 1 terms.
    """
    sums[...] = 0.0
    for term in terms:
        for q in range(len(sums) - 1, 0, -1):
            np.multiply(term, sums[q - 1], out=product)
            sums[q] += product
        sums[0] += term
    result: Floats = sums[-1]
    return result


def larger_sets(terms: Iterable[Floats], least: int, sums: Floats, product: Floats) -> Floats:
    """Return Σ_{|S| ≥ least} Π_{i ∈ S} t_i, least = 1 or 2, a part of `sums` (2, …); `product` (…) is a buffer."""
    total: Floats
    total, single = sums
    total[...] = 0.0
    single[...] = 0.0 if least == 2 else 1.0
    for term in terms:
        # a set with t has others beside it: those that are enough already, and those that t completes
        np.add(total, single, out=product)
        product *= term
        total += product
        if least == 2:
            single += term
    return total


def all_sets(terms: Iterable[Floats], out: Floats, share: float = 1.0) -> Floats:
    """Write Π (share + t_i), a sum over all sets of the terms if `share` is 1, into `out`. The terms are written to."""
    out[...] = 1.0
    for term in terms:
        term += term.dtype.type(share)
        out *= term
    return out


def outer_terms(X: Floats, Y: Floats, product: Floats) -> Iterator[Floats]:
    """Yield the terms x_i y_i of every row of X (n, d) with every row of Y (m, d), all in the buffer (n, m)."""
    for x, y in zip(X.T, Y.T, strict=True):
        yield np.multiply(x[:, None], y[None, :], out=product)
