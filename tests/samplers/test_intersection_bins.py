"""Maji and Berg's bound, from its definition."""

import numpy as np
import pytest

import kafeat
from kafeat.errors import DataError
from kafeat.samplers.intersection_bins import IntersectionBins
from tests.jobs.files import transform_file
from tests.recipes import fit_step

EPS = np.finfo(float).eps


def by_definition(x: float, maximum: float, n: int) -> np.ndarray:
    """Ones below ⌊R⌋, R − ⌊R⌋ at ⌊R⌋, zeros above, all over √N; times √max."""
    R = x / maximum * n
    code = np.zeros(n + 1)
    code[: int(R)] = 1.0
    code[int(R)] = R - int(R)
    return code[:n] * np.sqrt(maximum / n)


@pytest.mark.parametrize("n", [1, 3, 7])
def test_is_the_definition(features, n: int) -> None:
    X = np.random.default_rng(0).uniform(0, 5, size=(20, 3))
    Z = features(IntersectionBins(n_bins=n), X)
    maximum = X.max(axis=0)
    for row, z in zip(X, Z, strict=True):
        want = np.column_stack([by_definition(x, m, n) for x, m in zip(row, maximum, strict=True)]).ravel()
        np.testing.assert_allclose(z, want, rtol=0, atol=8 * n * EPS * 5)


@pytest.mark.parametrize("n", [1, 2, 5, 20])
def test_error_is_within_the_bound_and_reaches_it(features, n: int) -> None:
    x = np.linspace(0, 2, 40 * n + 1)[:, None]
    Z = features(IntersectionBins(n_bins=n), x)
    off = np.abs(Z @ Z.T - np.minimum(x, x.T))
    assert off.max() <= 2 / (4 * n) + 8 * n * EPS
    assert off.max() >= 2 / (4 * n) - 8 * n * EPS  # in the middle of a bin, which is on the grid


def test_values_above_the_maximum_clip() -> None:
    fm = fit_step(np.array([[0.0, 0.0], [2.0, 0.0]]), "intersection_bins")
    np.testing.assert_array_equal(fm.transform(np.array([[9.0, 3.0]])), fm.transform(np.array([[2.0, 0.0]])))


BINS = {"kind": "intersection_bins"}


@pytest.mark.parametrize("jobs", [1, 3])
@pytest.mark.parametrize("steps", [
    [BINS],
    [{"kind": "minmax"}, BINS, {"kind": "projection", "n_components": 3}],
    [{"kind": "union", "maps": [{"steps": [{"kind": "minmax"}, BINS]}, {"steps": [{"kind": "minmax"}]}]}],
], ids=["alone", "in a chain", "in a union"])  # fmt: skip
def test_clipped_values_are_counted(tmp_path, steps, jobs: int) -> None:
    """Of 4 columns seen up to 1, in chunks of whole tiles and padded ones: a tile's padding repeats its last row."""
    seen = np.vstack([np.zeros(4), np.ones(4)])
    X = np.random.default_rng(0).uniform(0, 1.2, size=(1500, 4))
    X[-1] = 2.0
    np.save(tmp_path / "x.npy", X)
    fm = kafeat.fit({"dtype": "float64", "chunk_rows": 600, "steps": steps}, seen)
    done = transform_file(fm, str(tmp_path / "x.npy"), str(tmp_path / "z.npy"), jobs=jobs)
    assert done.clipped == (X > 1.0).sum()
    np.save(tmp_path / "x.npy", np.minimum(X, 1.0))
    assert transform_file(fm, str(tmp_path / "x.npy"), str(tmp_path / "z.npy"), jobs=jobs).clipped == 0


def test_negative_values_are_refused() -> None:
    with pytest.raises(DataError, match=r"row 1 .*column 'c0': expected a value of at least 0, got -1"):
        kafeat.fit({"steps": [{"kind": "intersection_bins"}]}, np.array([[-1.0]]))
