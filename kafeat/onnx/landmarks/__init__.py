"""Kernels between rows and fixed landmarks as operators, by the names of the kernels; the forms of `kernel_tiles`."""

from __future__ import annotations

from kafeat.onnx.landmarks import distance, entrywise, products
from kafeat.onnx.landmarks.products import Form

KERNELS: dict[str, Form] = {
    "rbf": distance.rbf,
    "matern": distance.matern,
    "rational_quadratic": distance.rational_quadratic,
    "linear": products.linear,
    "polynomial": products.polynomial,
    "sigmoid": products.sigmoid,
    "cosine": products.cosine,
    "hellinger": products.hellinger,
    "precomputed": products.precomputed,
    "laplacian": entrywise.laplacian,
    "intersection": entrywise.intersection,
    "jensen_shannon": entrywise.jensen_shannon,
    "chi2": entrywise.chi2,
    "additive_chi2": entrywise.additive_chi2,
}
