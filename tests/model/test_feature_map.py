"""A map applied: the same bytes however the rows are cut."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.random_projection import GaussianRandomProjection

import kafeat
from kafeat.errors import DataError, UsageError
from kafeat.model.load import loads
from kafeat.runtime.run import shared_height
from tests.jobs.files import transform_file


@pytest.mark.parametrize("chunk_rows", [1000, 2560, 8192])
def test_bytes_do_not_depend_on_how_rows_in_memory_are_shared(tmp_path: Path, chunk_rows: int) -> None:
    """One, three and eight threads get chunks of different heights; a file is cut into chunks of full height."""
    X = np.random.default_rng(0).standard_normal((9001, 7)).astype(np.float32)
    step = {"kind": "fourier", "n_components": 300, "frequencies": "iid", "weights": "uniform"}
    fm = kafeat.fit({"chunk_rows": chunk_rows, "steps": [step]}, X)
    np.save(tmp_path / "x.npy", X)
    transform_file(fm, str(tmp_path / "x.npy"), str(tmp_path / "z.npy"))
    want = np.load(tmp_path / "z.npy")
    assert len({shared_height(fm.program(), chunk_rows, len(X), jobs) for jobs in (1, 3, 8)}) == (
        1 if chunk_rows == 1000 else 3
    )
    for jobs in (1, 3, 8):
        assert (fm.transform(X, jobs=jobs) == want).all()


@pytest.fixture(scope="module")
def small():
    X = np.random.default_rng(0).standard_normal((3000, 4)).astype(np.float32)
    return kafeat.fit({"steps": [{"kind": "projection", "n_components": 6}]}, X), X


@pytest.mark.parametrize("order", ["C", "F"])
def test_features_go_where_they_are_wanted(small, order):
    fm, X = small
    out = np.full((3000, 6), np.nan, np.float32, order=order)
    assert fm.transform(X, out=out) is out
    np.testing.assert_allclose(
        out, fm.transform(X), rtol=1e-6, atol=1e-6
    )  # another order of the same product


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["f2", "f8"])
def test_features_are_rounded_to_another_dtype(small, order, dtype):
    fm, X = small
    exact = np.empty((3000, 6), np.float32, order=order)
    out = np.empty((3000, 6), dtype, order=order)
    fm.transform(X, out=exact)
    assert fm.transform(X, out=out).tobytes() == exact.astype(dtype).tobytes()


def test_features_that_another_dtype_cannot_hold_are_refused(small):
    fm, X = small
    huge = X.copy()
    huge[1234, 2] = 1e9
    with pytest.raises(
        DataError, match=r"row 1235 \(index 1234\): expected features that float16 can hold, got"
    ):
        fm.transform(huge, out=np.empty((3000, 6), np.float16))


@pytest.mark.parametrize(
    "out", [np.empty((2999, 6), "f4"), np.empty((3000, 6), "i8"), np.zeros((3000, 6), "f4")]
)
def test_a_place_that_does_not_fit_is_refused(small, out):
    fm, X = small
    out.flags.writeable = out.dtype != "f4" or len(out) != 3000
    with pytest.raises(
        UsageError, match=r"out: expected a writeable array of floats of shape \(3000, 6\), got"
    ):
        fm.transform(X, out=out)


@pytest.mark.parametrize("scaler", [{"kind": "standardize"}, {"kind": "robust"}, {"kind": "minmax"}])
@pytest.mark.parametrize(
    "step",
    [
        {"kind": "pca"},
        {"kind": "pca", "whiten": True},
        {"kind": "projection", "n_components": 12},
        {"kind": "projection", "n_components": 16, "matrix": "srht"},
        {"kind": "projection", "n_components": 30, "matrix": "sparse", "density": 0.5},
    ],
)
def test_the_way_back_of_a_map_that_loses_nothing(scaler, step):
    X = 3.0 + np.random.default_rng(0).normal(size=(50, 9))
    fm = kafeat.fit({"dtype": "float64", "steps": [scaler, step]}, X)
    np.testing.assert_allclose(fm.inverse_transform(fm.transform(X)), X, rtol=0, atol=1e-11)


def test_the_way_back_of_a_narrow_projection_is_that_of_scikit_learn():
    X = np.random.default_rng(0).normal(size=(50, 9))
    fm = kafeat.fit({"dtype": "float64", "steps": [{"kind": "projection", "n_components": 4}]}, X)
    peer = GaussianRandomProjection(4).fit(X)
    peer.components_ = fm.chain.steps[0].state["matrix"]
    Z = fm.transform(X)
    np.testing.assert_allclose(fm.inverse_transform(Z), peer.inverse_transform(Z), rtol=0, atol=1e-12)
    # the features of the rows are the features that were given
    np.testing.assert_allclose(fm.transform(fm.inverse_transform(Z)), Z, rtol=0, atol=1e-12)


PREIMAGES = {"kind": "nystroem", "preimages": True, "landmarks": "uniform"}


def test_the_way_back_of_nystroem_brings_back_most():
    X = 3.0 + np.random.default_rng(0).normal(size=(400, 4))
    fm = kafeat.fit(
        {"dtype": "float64", "steps": [{"kind": "standardize"}, {**PREIMAGES, "n_components": 60}]}, X
    )
    # columns are smooth functions of the features: a tenth of their variance is lost at most, also of other rows
    new = 3.0 + np.random.default_rng(1).normal(size=(200, 4))
    assert ((fm.inverse_transform(fm.transform(new)) - new) ** 2).mean() < 0.1
    back = fm.inverse_transform(fm.transform(X))
    assert loads(fm.dumps()).inverse_transform(fm.transform(X)).tobytes() == back.tobytes()


def test_preimages_of_noisy_digits_are_less_noisy(digits):
    """Projected onto leading directions of the kernel, digits lose noise: what kernel PCA was used for first."""
    rng = np.random.default_rng(0)
    X, clean = digits[:1200], digits[1200:1500]
    noisy = clean + 4.0 * rng.normal(size=clean.shape)
    step = {**PREIMAGES, "n_components": 40, "n_landmarks": 300}
    fm = kafeat.fit({"dtype": "float64", "steps": [step]}, X)
    back = fm.inverse_transform(fm.transform(noisy))
    assert ((back - clean) ** 2).mean() < 0.5 * ((noisy - clean) ** 2).mean()


@pytest.mark.parametrize("rows", [2, 4, 7])
def test_few_rows_have_a_way_back_too(rows):
    X = np.random.default_rng(0).normal(size=(rows, 2))
    fm = kafeat.fit({"dtype": "float64", "steps": [{**PREIMAGES, "n_components": 2}]}, X)
    assert np.isfinite(fm.inverse_transform(fm.transform(X))).all()


def test_maps_without_a_way_back():
    X = np.random.default_rng(0).random(size=(50, 4))
    for step in (
        {"kind": "homogeneous"},
        {"kind": "minmax", "clip": True},
        {"kind": "nystroem", "n_components": 4},
    ):
        fm = kafeat.fit({"steps": [step]}, X)
        with pytest.raises(
            UsageError, match=f"inverse_transform: {step['kind']}: expected steps that have an inverse"
        ):
            fm.inverse_transform(fm.transform(X))
    fm = kafeat.fit({"steps": [{"kind": "standardize"}]}, X)
    with pytest.raises(UsageError, match=r"Z: expected the shape \(n, 4\), got \(2, 3\)"):
        fm.inverse_transform(np.zeros((2, 3)))


def test_a_map_with_one_step_that_cannot_be_saved_has_no_digest() -> None:
    X = np.random.default_rng(0).standard_normal((40, 3))
    steps = [{"kind": "standardize"}, {"kind": "nystroem", "kernel": lambda X, Y: X @ Y.T, "n_components": 3}]
    assert kafeat.fit({"steps": steps}, X).digest is None
