"""Measures of single steps of a map on data: the closed-form error of homogeneous maps, and kernel PCA."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kafeat.chain.chain import Chain
from kafeat.contract.kernel_inputs import Coordinates, Gram
from kafeat.evaluation.records import ClosedForm, KernelPca
from kafeat.model.feature_map import FeatureMap
from kafeat.types import Floats

# The spectrum is drawn to this multiple of the map's last frequency, at so many points.
_BEYOND, _POINTS = 1.4, 201


def before(fm: FeatureMap, index: int, X: Floats) -> Floats:
    """Return the input of the step with this index."""
    return X if not index else Chain(fm.chain.steps[:index]).transform(X)


def error_curve(fm: FeatureMap, X: Floats) -> tuple[Floats, Floats, Floats] | None:
    """Return log(y/x), the closed-form error of the first homogeneous map there, and the weight of the ratio in X."""
    for index, fitted in enumerate(fm.chain.steps):
        if fitted.step.kind == "homogeneous":
            return fitted.step.error_curve(fitted.state, before(fm, index, X))  # type: ignore[attr-defined, no-any-return]  # the kind says so
    return None


@dataclass(frozen=True)
class SignatureCurves:
    """Signature and spectrum of a homogeneous map beside those of its kernel, and the weight of each ratio y/x."""

    ratios: Floats
    """log(y/x), from 0 on."""
    exact: Floats
    """The signature there."""
    near: Floats
    """That of the map."""
    weights: Floats
    """Weight of the ratio in the data."""
    frequencies: Floats
    """λ, from 0 on; empty if the map has no frequencies."""
    spectrum: Floats
    """κ(λ)."""
    sampled: tuple[Floats, Floats]
    """The frequencies of the map, and what it has in the place of κ there."""


def signature_curves(fm: FeatureMap, X: Floats) -> SignatureCurves | None:
    """Return the curves of the first homogeneous map for the ratios in rows X; None without such a map."""
    for index, fitted in enumerate(fm.chain.steps):
        if fitted.step.kind == "homogeneous":
            step: Any = fitted.step
            ratios, _, weights = step.error_curve(fitted.state, before(fm, index, X))
            exact, near = step.signatures(fitted.state, ratios)
            sampled = step.sampled_spectrum(fitted.state)
            if sampled is None:
                nothing = np.empty(0)
                return SignatureCurves(ratios, exact, near, weights, nothing, nothing, (nothing, nothing))
            frequencies = np.linspace(0.0, _BEYOND * sampled[0][-1], _POINTS)
            return SignatureCurves(
                ratios, exact, near, weights, frequencies, step.spectrum(frequencies), sampled
            )
    return None


def closed_form(fm: FeatureMap, X: Floats) -> ClosedForm:
    """Return the largest and the mean closed-form error of a homogeneous map over the ratios of rows X."""
    curve = error_curve(fm, X)
    if curve is None:
        return {}
    _, error, weights = curve
    return {
        "closed_form_error_max": float(np.abs(error).max()),
        "closed_form_error_mean": float(weights @ np.abs(error) / weights.sum()),
    }


def kernel_before_pca(fm: FeatureMap, X: Floats) -> Floats | None:
    """Return the centred exact kernel (n, n) of rows X of the steps before a last step pca; None without a map there.

    Principal components of a map's features are those of its kernel, so this is what they stand for.
    """
    if fm.chain.steps[-1].step.kind != "pca" or fm.chain.outputs is not None:
        return None
    rows = X.astype(np.float64)
    inputs = Chain(fm.chain.steps[:-1]).exact_pair(Coordinates(rows, rows))
    if not isinstance(inputs, Gram):
        return None
    K, means = inputs.dots, inputs.dots.mean(axis=0)
    centred: Floats = K - means - means[:, None] + means.mean()
    return centred


def components(fm: FeatureMap, Z: Floats) -> Floats:
    """Return components Z (n, r) of pca centred on these rows, and in the units of the kernel where pca whitens."""
    scaled = Z * fm.chain.steps[-1].state["scale"]
    centred: Floats = scaled - scaled.mean(axis=0)
    return centred


def kernel_pca(K: Floats, Z: Floats) -> KernelPca:
    """Compare components Z (n, r) with exact kernel PCA: of the centred kernel K (n, n) of the same rows.

    `kernel_pca_error_least` is the relative Frobenius error of the best matrix of rank r, `kernel_pca_spectrum` is
    Σ|λ̂_i − λ_i|/Σλ_i over the r largest eigenvalues, and `kernel_pca_subspace` the mean cos² of the angles between the
    spaces of the r leading eigenvectors: 1 if they are the same.
    """
    values, vectors = np.linalg.eigh(K)
    values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1]
    basis, singular, _ = np.linalg.svd(Z, full_matrices=False)
    r = int((singular > singular.max(initial=0.0) * len(Z) * np.finfo(np.float64).eps).sum())
    size, total = float(np.linalg.norm(values)), float(values[:r].sum())
    if not r or not total:
        return {"kernel_pca_error_least": 0.0, "kernel_pca_spectrum": 0.0, "kernel_pca_subspace": 1.0}
    return {
        "kernel_pca_error_least": float(np.linalg.norm(values[r:])) / size,
        "kernel_pca_spectrum": float(np.abs(singular[:r] ** 2 - values[:r]).sum()) / total,
        "kernel_pca_subspace": float(np.square(vectors[:, :r].T @ basis[:, :r]).sum()) / r,
    }
