"""The data of the figures are those of the matrices and of the kernel."""

from __future__ import annotations

import numpy as np

import kafeat
from kafeat.pictures.figure_data import map_figures


def test_spectra_and_lines_are_those_of_the_kernel() -> None:
    X = np.random.default_rng(0).standard_normal((60, 3))
    steps = [{"kind": "fourier", "gamma": 0.5, "n_components": 64}]
    fm = kafeat.fit({"dtype": "float64", "steps": steps}, X)
    K, Z = fm.exact_kernel(X), fm.transform(X)
    figures = map_figures({}, fm.chain, np.dtype(np.float64), X, K, Z, between=True)
    for values, matrix in zip(figures.spectra, (K, Z @ Z.T), strict=True):
        assert (np.diff(values) <= 0.0).all()
        np.testing.assert_allclose(values, np.linalg.eigvalsh(matrix)[::-1], rtol=0, atol=1e-12)
    assert figures.line is not None
    _, exact, near = figures.line
    far = int(np.argmin(K[0]))
    np.testing.assert_allclose(exact[[0, -1]], K[0, [0, far]], rtol=1e-12)
    np.testing.assert_allclose(near[[0, -1]], (Z[[0, far]] @ Z[0]), rtol=0, atol=1e-12)


def test_landmarks_of_one_column_have_no_plane() -> None:
    X = np.random.default_rng(0).standard_normal((40, 1))
    fm = kafeat.fit({"steps": [{"kind": "nystroem", "n_components": 4}]}, X)
    x = fm.matrix(X)
    K, Z = fm.exact_kernel(X), fm.transform(X).astype(np.float64)
    assert map_figures({}, fm.chain, np.dtype(np.float32), x, K, Z, between=False).landmarks is None
