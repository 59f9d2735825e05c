"""A map applied: the same bytes however the rows are cut."""

import numpy as np
import pytest

import kafeat
from kafeat.errors import DataError, UsageError
from kafeat.runtime.run import shared_work
from tests.jobs.files import transform_file


@pytest.mark.parametrize("chunk_rows", [1000, 2560, 8192])
def test_bytes_do_not_depend_on_how_rows_in_memory_are_shared(tmp_path, chunk_rows):
    """One, three and eight threads get chunks of different heights; a file is cut into chunks of full height."""
    X = np.random.default_rng(0).standard_normal((9001, 7)).astype(np.float32)
    step = {"kind": "fourier", "n_components": 300, "frequencies": "iid", "weights": "uniform"}
    fm = kafeat.fit({"chunk_rows": chunk_rows, "steps": [step]}, X)
    transform_file(fm, X, tmp_path / "z.npy")
    want = np.load(tmp_path / "z.npy")
    assert len({shared_work(fm.program(), chunk_rows, len(X), jobs)[0] for jobs in (1, 3, 8)}) == (
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
    with pytest.raises(DataError, match=r"row 1235 .*: expected features that float16 can hold, got"):
        fm.transform(huge, out=np.empty((3000, 6), np.float16))


WRONG = [np.empty((2999, 6), "f4"), *(np.zeros((3000, 6), kind) for kind in ("i8", "f4"))]


@pytest.mark.parametrize("out", WRONG)
def test_a_place_that_does_not_fit_is_refused(small, out):
    fm, X = small
    out.flags.writeable = out.dtype != "f4" or len(out) != 3000
    told = r"out: expected a writeable array of floats of shape \(3000, 6\), got"
    with pytest.raises(UsageError, match=told):
        fm.transform(X, out=out)
