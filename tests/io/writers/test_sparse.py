"""Sparse files: what SciPy and scikit-learn read from them, and labels that LIBSVM can hold."""

import gzip
import io

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file

from kafeat.contract.tile import SparseRows
from kafeat.errors import InvalidValueError
from kafeat.io.writers import libsvm
from tests.io.tables import read
from tests.io.writers.opening import open_writer

RNG = np.random.default_rng(0)
HEIGHT = 7


def matrix(rows, dtype="float64", width=5):
    """Rows with many zeros, rows of zeros only, and a last column of zeros."""
    X = RNG.normal(size=(rows, width)) * (RNG.random((rows, width)) < 0.4)
    X[:, -1] = 0.0
    return X.astype(dtype)


def save(path, X, format, *, sparse, labels=None, good=None, **options):
    schema = None if labels is None else pa.schema([pa.field("y", labels.type)])
    more = {"names": [f"f{i}" for i in range(X.shape[1])], "dtype": X.dtype, "passthrough_schema": schema}
    with open_writer(path, format, **more, **options) as writer:
        for start in range(0, len(X), HEIGHT):
            rows = slice(start, start + HEIGHT)
            kept = None if labels is None else pa.table({"y": labels[rows]})
            mask = None if good is None else good[rows]
            if sparse:
                part = sp.csr_array(X[rows])
                writer.write(SparseRows(part.data, part.indices, part.indptr, X.shape[1]), kept, mask)
            else:
                writer.write(X[rows], kept, mask)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("rows", [0, 1, 40])
def test_libsvm_is_what_scikit_learn_reads(tmp_path, dtype, rows):
    X, labels = matrix(rows, dtype), pa.array(RNG.integers(-3, 3, rows))
    for sparse in (True, False):
        save(tmp_path / f"{sparse}.svm", X, "libsvm", sparse=sparse, labels=labels)
        Z, y = load_svmlight_file(str(tmp_path / f"{sparse}.svm"), n_features=None if rows else X.shape[1])
        assert Z.shape == X.shape  # also if the last column is 0 in every row
        assert np.array_equal(Z.toarray().astype(dtype), X)
        assert np.array_equal(y, labels)
        if rows:  # without rows our reader knows no width, and only a map that has one can read the file
            assert read(tmp_path / f"{sparse}.svm", dtype).tobytes() == (X + 0.0).tobytes()
    assert (tmp_path / "True.svm").read_bytes() == (tmp_path / "False.svm").read_bytes()


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("rows", [0, 40])
def test_npz_is_what_scipy_reads(tmp_path, dtype, rows):
    X = matrix(rows, dtype)
    for sparse in (True, False) if dtype != "float16" else (False,):  # SciPy has no sparse float16
        save(tmp_path / f"{sparse}.npz", X, "npz", sparse=sparse)
        with np.load(tmp_path / f"{sparse}.npz") as arrays:
            parts = [arrays[name] for name in ("data", "indices", "indptr")]
            assert arrays["data"].dtype == dtype
            wide = [parts[0].astype(float), *parts[1:]]
            assert np.array_equal(sp.csr_array(tuple(wide), shape=arrays["shape"]).toarray(), X)
    if dtype != "float16":
        assert np.array_equal(sp.load_npz(tmp_path / "True.npz").toarray(), X)
        assert (tmp_path / "True.npz").read_bytes() == (tmp_path / "False.npz").read_bytes()


@pytest.mark.parametrize("format", ["npz", "libsvm"])
@pytest.mark.parametrize("sparse", [True, False])
def test_only_good_rows_are_written(tmp_path, format, sparse):
    X, good = matrix(20), RNG.random(20) < 0.5
    labels = pa.array(np.arange(20)) if format == "libsvm" else None
    save(tmp_path / "out", X, format, sparse=sparse, labels=labels, good=good)
    if format == "npz":
        assert np.array_equal(sp.load_npz(tmp_path / "out").toarray(), X[good])
    else:
        Z, y = load_svmlight_file(str(tmp_path / "out"))
        assert np.array_equal(Z.toarray(), X[good])
        assert np.array_equal(y, np.flatnonzero(good))


def test_text_in_pieces_is_the_same_text(tmp_path, monkeypatch):
    X = matrix(40)
    save(tmp_path / "one.libsvm.gz", X, "libsvm", sparse=True)
    monkeypatch.setattr(libsvm, "_ENTRIES", 3)
    save(tmp_path / "many.libsvm.gz", X, "libsvm", sparse=True)
    one, many = (gzip.decompress((tmp_path / f"{name}.libsvm.gz").read_bytes()) for name in ("one", "many"))
    assert one == many
    Z, y = load_svmlight_file(io.BytesIO(one))
    assert np.array_equal(Z.toarray(), X)
    assert not y.any()


@pytest.mark.parametrize(("labels", "text"), [
    (pa.array([True, False]), [b"1", b"0"]),
    (pa.array([0.1, 1e300]), [b"0.1", b"1e+300"]),
    (pa.array([-(2**53) + 1, 7], pa.int64()), [b"-9007199254740991", b"7"]),
    (pa.array([3, 4]).dictionary_encode(), [b"3", b"4"]),
])  # fmt: skip
def test_labels_of_every_kind_of_number(tmp_path, labels, text):
    save(tmp_path / "o.svm", matrix(2), "libsvm", sparse=True, labels=labels)
    assert [line.split()[0] for line in (tmp_path / "o.svm").read_bytes().splitlines()] == text


@pytest.mark.parametrize(("labels", "got"), [
    (pa.array([1, None]), "null"), (pa.array([1.0, np.nan]), "nan"), (pa.array([1.0, np.inf]), "inf"),
    (pa.array([1, 2**53]), "9007199254740992"),
])  # fmt: skip
def test_a_label_that_libsvm_cannot_hold_is_refused_with_its_row(tmp_path, labels, got):
    with pytest.raises(InvalidValueError, match=f"row 2 .*'y': expected a finite number .* got {got}"):
        save(tmp_path / "o.svm", matrix(2), "libsvm", sparse=True, labels=labels)
    bad_is_dropped = np.array([True, False])
    save(tmp_path / "o.svm", matrix(2), "libsvm", sparse=True, labels=labels, good=bad_is_dropped)
    assert len((tmp_path / "o.svm").read_bytes().splitlines()) == 1
