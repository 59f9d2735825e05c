"""Squared errors of kernel ridge on held-out rows, for every penalty, from one eigendecomposition of the kernel.

With the centred kernel K̃ = UΛUᵀ of n rows, the fitted values are HY with H = 1/n + U diag(Λ/(Λ + λ))Uᵀ. Without the
rows of a part G, their residuals are (I − H_GG)⁻¹(Y − HY)_G, exactly, because the columns do not depend on these rows.
Equal rows must be in one part, since a kernel that is nearly the identity predicts a row from its copy.

Source: Hastie, Tibshirani & Friedman 2009, section 7.10; for blocks of rows, Cook & Weisberg 1982, section 3.4.
"""

from __future__ import annotations

import numpy as np

from kafeat.contract.kernel_inputs import around_mean
from kafeat.maths.ridge import PENALTIES
from kafeat.types import Array, Floats


def errors_without_parts(K: Floats, Y: Floats, parts: Array) -> Floats:
    """Return the squared error of each row of K (n, n) with targets Y (n, k) when its part (n,) is left out, (p, n)."""
    values, vectors, _ = _decomposed(K)
    centred = Y - Y.mean(axis=0)
    turned, errors = vectors.T @ centred, np.empty((len(PENALTIES), len(K)))
    rows_of = [np.flatnonzero(parts == part) for part in np.unique(parts)]
    for shrunk, out in zip(_shrinkage(values), errors, strict=True):
        fitted = vectors @ (shrunk[:, None] * turned)
        for rows in rows_of:
            own = vectors[rows]
            left = np.eye(len(rows)) - 1.0 / len(K) - (own * shrunk) @ own.T
            out[rows] = np.square(np.linalg.solve(left, (centred - fitted)[rows])).sum(axis=1)
    return errors


def errors_of_others(K: Floats, Y: Floats, across: Floats, held: Floats) -> Floats:
    """Return the squared errors of other rows with targets (m, k) and kernel values (m, n) with K's, (p, m)."""
    values, vectors, means = _decomposed(K)
    level = Y.mean(axis=0)
    turned = vectors.T @ (Y - level)
    # The vector of ones is an eigenvector of the centred matrix, so the means of new rows cancel.
    projected = (across - means) @ vectors
    scale = np.divide(1.0, values, out=np.zeros_like(values), where=values > 0.0)
    predicted = (projected @ ((shrunk * scale)[:, None] * turned) for shrunk in _shrinkage(values))
    return np.array([np.square(one + level - held).sum(axis=1) for one in predicted])


def _decomposed(K: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the eigenvalues and eigenvectors of the centred matrix, and the means of its columns."""
    around, means = around_mean(K)
    values, vectors = np.linalg.eigh(around)
    least = len(K) * np.finfo(np.float64).eps * max(float(values[-1]), np.finfo(np.float64).tiny)
    return np.where(values > least, values, 0.0), vectors, means


def _shrinkage(values: Floats) -> list[Floats]:
    """Return Λ/(Λ + λ) for each penalty, relative to the mean eigenvalue."""
    unit = float(values.mean()) or 1.0
    return [values / (values + penalty * unit) for penalty in PENALTIES]
