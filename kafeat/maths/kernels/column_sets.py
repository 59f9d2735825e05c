"""Kernels over sets of columns: sums over sets of the products of the terms in each set, by recurrence.

Nothing is subtracted, so sums of positive terms keep their digits.

Source: Shawe-Taylor & Cristianini 2004, section 9.2 (all-subsets and ANOVA kernels by dynamic programming).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from kafeat.contract.kernel_inputs import Gram, KernelInputs
from kafeat.maths.kernel import KernelParameters, TiledKernel, as_coordinates
from kafeat.maths.kernel_tiles import KernelTile, Landmarks
from kafeat.types import Floats


def degree_warning(kind: str, degree: int, n_columns: int) -> str | None:
    """If sets need more columns than the input has, the kernel is 0: return a warning. Otherwise return None."""
    if degree <= n_columns:
        return None
    return f"{kind}: degree: sets of {degree} columns need more than the {n_columns} of the input, so the kernel is 0"


def sets_of_size(terms: Iterable[Floats], sums: Floats, product: Floats) -> Floats:
    """Return Σ_{|S| = size} Π_{i ∈ S} t_i in the last part of `sums`, with size = len(sums).

    `sums` (size, …) and `product` (…) are buffers. A new term t increases the sum over sets of q terms by t times the
    sum over sets of q − 1 terms.
    """
    sums[...] = 0.0
    for term in terms:
        for q in range(len(sums) - 1, 0, -1):
            np.multiply(term, sums[q - 1], out=product)
            sums[q] += product
        sums[0] += term
    return sums[-1]


def larger_sets(terms: Iterable[Floats], least: int, sums: Floats, product: Floats) -> Floats:
    """Return Σ_{|S| ≥ least} Π_{i ∈ S} t_i, least = 1 or 2, in sums[0]. `sums` (2, …) and `product` (…) are buffers."""
    total: Floats
    total, single = sums
    total[...] = 0.0
    single[...] = 0.0 if least == 2 else 1.0
    for term in terms:
        # Add t to each set in `total`, and to each set of `least` − 1 terms. `single` sums the products of the latter.
        np.add(total, single, out=product)
        product *= term
        total += product
        if least == 2:
            single += term
    return total


def all_sets(terms: Iterable[Floats], out: Floats, share: float = 1.0) -> Floats:
    """Fill `out` with Π_i (share + t_i): for share = 1, Σ_S Π_{i ∈ S} t_i over all sets S. Terms are overwritten."""
    out[...] = 1.0
    for term in terms:
        term += term.dtype.type(share)
        out *= term
    return out


def outer_terms(X: Floats, Y: Floats, product: Floats) -> Iterator[Floats]:
    """Yield for each column i the products x_i y_i of all rows of X (n, d) and Y (m, d), in the same buffer (n, m)."""
    for x, y in zip(X.T, Y.T, strict=True):
        yield np.multiply(x[:, None], y[None, :], out=product)


class AnovaKernel(TiledKernel):
    """Σ over sets of `degree` columns of Π γ x_i y_i over the set: a polynomial kernel without powers of a column."""

    needs_coordinates = True
    scaled = True

    def gram(self, inputs: KernelInputs, p: KernelParameters) -> Gram:
        c = as_coordinates(inputs)

        def sums(x: Floats, y: Floats) -> Floats:
            shape = (len(x), len(y))
            terms = outer_terms(p.gamma * x, y, np.empty(shape))
            return sets_of_size(terms, np.empty((p.degree, *shape)), np.empty(shape))

        def norms(x: Floats) -> Floats:
            return sets_of_size(p.gamma * x.T**2, np.empty((p.degree, len(x))), np.empty(len(x)))

        return Gram(sums(c.x, c.y), (norms(c.x), norms(c.y)))

    def tile(self, landmarks: Landmarks, p: KernelParameters) -> KernelTile:
        # each of `degree` factors gets an equal part of the scale
        factor = p.gamma / landmarks.scale ** (1.0 / p.degree)

        def write(X: Floats, rows: Floats, out: Floats, scratch: Floats) -> None:
            out[...] = sets_of_size(outer_terms(X, rows, scratch[-2]), scratch[:-2], scratch[-1])

        return KernelTile(
            landmarks.doubles * factor, landmarks.dtype, write, p.degree + 2, len(landmarks.rows)
        )


class AllSubsetsKernel(TiledKernel):
    """Π_i (1 + γ x_i y_i), the sum of the ANOVA kernels of every degree."""

    needs_coordinates = True
    scaled = True

    def gram(self, inputs: KernelInputs, p: KernelParameters) -> Gram:
        c = as_coordinates(inputs)

        def product(x: Floats, y: Floats) -> Floats:
            shape = (len(x), len(y))
            return all_sets(outer_terms(p.gamma * x, y, np.empty(shape)), np.empty(shape))

        def norms(x: Floats) -> Floats:
            return np.prod(1.0 + p.gamma * x**2, axis=1)

        return Gram(product(c.x, c.y), (norms(c.x), norms(c.y)))

    def tile(self, landmarks: Landmarks, p: KernelParameters) -> KernelTile:
        # every factor gets an equal part of the scale, so that no partial product exceeds the range of the dtype
        share = landmarks.scale ** (-1.0 / landmarks.rows.shape[1])

        def write(X: Floats, rows: Floats, out: Floats, scratch: Floats) -> None:
            all_sets(outer_terms(X, rows, scratch[0]), out, share)

        rows = landmarks.doubles * (p.gamma * share)
        return KernelTile(rows, landmarks.dtype, write, width=len(rows))
