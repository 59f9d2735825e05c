"""Sparse features go to sparse files without dense ones on the way, and are those of the dense outputs."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file

import kafeat
from kafeat.errors import DataError, GateError, UsageError
from kafeat.io.options import OutputOptions
from kafeat.io.storage.location import parse_location
from kafeat.jobs.transform.options import RowOptions
from kafeat.samplers.intersection_bins import _BinsTransform
from tests.jobs.files import transform_file, transform_parts, verify_file
from tests.recipes import fit_once

N, D = 700, 30
RNG = np.random.default_rng(0)
COUNTS = RNG.gamma(1.0, size=(N, D)) * (RNG.random((N, D)) < 0.2)
BINS = [{"kind": "intersection_bins", "n_bins": 5}]
PROJECTION = [{"kind": "minmax"}, {"kind": "projection", "matrix": "sparse", "n_components": 20}]


def fit(steps=BINS, **more):
    columns = {"columns": {"exclude": ["y"]}}
    return fit_once({"chunk_rows": 128, "fit_rows": 400, "steps": steps, **columns, **more}, table())


def table(X=COUNTS):
    return pa.table({f"x{i}": X[:, i] for i in range(D)} | {"y": np.arange(N) % 3})


@pytest.fixture
def source(tmp_path):
    pq.write_table(table(), tmp_path / "in.parquet", row_group_size=90)
    return str(tmp_path / "in.parquet")


def matrix_of(path):
    if str(path).endswith(".npz"):
        return sp.load_npz(path).toarray()
    return load_svmlight_file(str(path))[0].toarray().astype("f4")


@pytest.mark.sampled
@pytest.mark.parametrize("ending", ["npz", "svm", "libsvm.zst"])
@pytest.mark.parametrize("steps", [BINS, PROJECTION], ids=["bins", "projection"])
def test_outputs_are_those_of_dense_formats_for_any_number_of_jobs(source, tmp_path, steps, ending):
    fm = fit(steps)
    outs = [str(tmp_path / f"{jobs}.{ending}") for jobs in (1, 2, 5)]
    dense = transform_file(fm, source, tmp_path / "dense.npy", drift=True, jobs=1)
    for jobs, out in zip((1, 2, 5), outs, strict=True):
        done = transform_file(fm, source, out, drift=True, jobs=jobs)
        assert (done.rows, done.columns) == (N, fm.n_components)
        assert (done.clipped, done.drift) == (dense.clipped, dense.drift)
        # a sum of 700 float32 numbers of 1 or so, in another order
        assert done.drift_test.distance == pytest.approx(dense.drift_test.distance, rel=1e-4)
    assert len({Path(out).read_bytes() for out in outs}) == 1
    fm.save(tmp_path / "m.joblib")
    verified = verify_file(tmp_path / "m.joblib", source, outs[0])
    assert verified.rows_compared == N
    Z = np.load(tmp_path / "dense.npy")
    if ending != "libsvm.zst":
        # the bins are the same numbers; a projection adds at most 30 products in another order
        near = 0 if steps is BINS else 30 * 1.2e-7 * 4
        np.testing.assert_allclose(matrix_of(outs[0]), Z, rtol=0, atol=near)
    assert (verified.largest_difference == 0.0) or steps is PROJECTION


def test_no_dense_features_are_made(source, tmp_path, monkeypatch):
    def refuse(*_):
        raise AssertionError("made dense")

    fm = fit()
    monkeypatch.setattr(_BinsTransform, "apply", refuse)
    fm.save(tmp_path / "m.joblib")
    for ending in ("npz", "svm"):
        transform_file(fm, source, tmp_path / f"o.{ending}", jobs=1)
        verify_file(tmp_path / "m.joblib", source, tmp_path / f"o.{ending}")


def test_a_kept_number_is_the_label_and_the_output_is_an_input(source, tmp_path):
    transform_file(fit(), source, tmp_path / "o.svm", keep=["y"])
    X, y = load_svmlight_file(str(tmp_path / "o.svm"))
    assert np.array_equal(y, np.arange(N) % 3)
    second = kafeat.fit({"dtype": "float64", "steps": ["standardize"]}, tmp_path / "o.svm")
    assert second.n_features_in == D * 5
    transform_file(fit(), source, tmp_path / "o.npz")
    same = second.transform(sp.load_npz(tmp_path / "o.npz"))
    np.testing.assert_allclose(same, second.transform(X), rtol=1e-5, atol=1e-5)


SEVENTHS = np.arange(N) / 7
LABELS = {f"float{8 * int(kind[1])}": pa.array(SEVENTHS.astype(kind)) for kind in ("f2", "f4", "f8")}
LABELS |= {"int64": pa.array(np.arange(N) % 3), "bool": pa.array(np.arange(N) % 2 == 0)}
LABELS["dictionary"] = LABELS["int64"].dictionary_encode()


@pytest.mark.sampled
@pytest.mark.parametrize("kind", LABELS)
def test_verify_compares_the_label(tmp_path, kind):
    fm, out = fit(), tmp_path / "o.svm"
    data = table().set_column(D, "y", LABELS[kind])
    pq.write_table(data, tmp_path / "in.parquet")
    model, source = str(tmp_path / "m.joblib"), str(tmp_path / "in.parquet")
    fm.save(model)
    transform_file(fm, source, out, keep=["y"])
    assert verify_file(model, source, out, label="y").rows_compared == N
    assert verify_file(model, source, out, label="y", on_bad_rows="drop").rows_compared == N
    lines = out.read_text().splitlines()
    lines[400] = "9 " + lines[400].partition(" ")[2]
    out.write_text("\n".join(lines) + "\n")
    with pytest.raises(GateError, match=r"row 401 .*column 'label': expected .* as in the input, got 9"):
        verify_file(model, source, out, label="y")


def test_verify_refuses_labels_that_no_column_explains(source, tmp_path):
    fm, out, model = fit(), str(tmp_path / "o.svm"), str(tmp_path / "m.joblib")
    fm.save(model)
    transform_file(fm, source, out, keep=["y"])
    told = r"row 2 .*: expected the label 0, .*, got 1; give --label the column"
    with pytest.raises(GateError, match=told):
        verify_file(model, source, out)
    transform_file(fm, source, out)
    assert verify_file(model, source, out).rows == N
    with pytest.raises(GateError, match="row 2 .*expected 1.0 as in the input, got 0"):
        verify_file(model, source, out, label="y")
    transform_file(fm, source, tmp_path / "o.npz")
    with pytest.raises(UsageError, match="--label: expected an output of LIBSVM"):
        verify_file(model, source, tmp_path / "o.npz", label="y")


@pytest.mark.sampled
@pytest.mark.parametrize("ending", ["npz", "svm", "svm.gz"])
@pytest.mark.parametrize("steps", [BINS, [*BINS, {"kind": "ridge"}]], ids=["features", "predictions"])
def test_an_output_of_no_rows_is_an_input(tmp_path, ending, steps):
    fm = kafeat.fit({"columns": {"exclude": ["y"]}, "steps": steps}, table(), label="y")
    header = tmp_path / "in.csv"  # which does not tell that y holds numbers
    header.write_text(",".join(table().column_names) + "\n")
    out, model = str(tmp_path / f"o.{ending}"), str(tmp_path / "m.joblib")
    fm.save(model)
    writing = OutputOptions(keep=["y"] if "svm" in ending else [])
    for rule in ("drop", "error"):
        transform_file(fm, header, out, writing=writing, on_bad_rows=rule)
        assert verify_file(model, header, out).rows == 0
    width = 5 * D if steps is BINS else 3
    second = kafeat.fit({"steps": ["standardize"]}, sp.random(9, width, 0.5, "csr", rng=RNG))
    assert transform_file(second, out, tmp_path / "z.npy").rows == 0


@pytest.mark.parametrize("ending", ["npz", "svm"])
@pytest.mark.parametrize("steps", [BINS, [{"kind": "minmax"}, *BINS]], ids=["bins", "chain"])
def test_bad_rows_are_an_error_or_left_out(tmp_path, ending, steps):
    X, bad = COUNTS.copy(), [3, 130, 131, 699]
    X[3, 2], X[130, 0], X[131, 4], X[699, 1] = np.nan, -50.0, np.inf, -50.0
    pq.write_table(table(X), tmp_path / "in.parquet")
    fm, source = fit(steps), str(tmp_path / "in.parquet")
    told = r"row 4 .*column 'x2': expected a finite number, got nan.*--on-bad-rows drop leaves such rows out$"
    with pytest.raises(DataError, match=told):
        transform_file(fm, source, tmp_path / f"o.{ending}")
    drop = RowOptions(on_bad_rows="drop", drift=True, rejects=parse_location(str(tmp_path / "r.csv")))
    found = transform_file(fm, source, tmp_path / f"o.{ending}", rules=drop)
    dense = transform_file(fm, source, tmp_path / "o.npy", rules=replace(drop, rejects=None))
    assert (found.bad_rows, found.rows, found.clipped) == (4, N - 4, dense.clipped)
    assert np.array_equal(matrix_of(tmp_path / f"o.{ending}"), np.load(tmp_path / "o.npy"))
    told = (tmp_path / "r.csv").read_text().splitlines()[1:]
    assert [int(line.split(",")[0]) for line in told] == [row + 1 for row in bad]


def test_bad_rows_are_left_out_of_features_of_two_bytes(tmp_path):
    """SciPy picks no rows of float16, so an output with a bad row in it ended with its error."""
    X = table()
    X = X.set_column(0, "x0", pa.array([-1.0 if i == 3 else value for i, value in enumerate(COUNTS[:, 0])]))
    pq.write_table(X, tmp_path / "in.parquet")
    fm, writing = fit(), OutputOptions(output_dtype="float16")
    asked = {"writing": writing, "on_bad_rows": "drop", "drift_test": 1e-9}
    done = transform_file(fm, tmp_path / "in.parquet", tmp_path / "out.svm", **asked)
    assert (done.rows, done.bad_rows) == (N - 1, 1)
    want = fm.transform(np.delete(COUNTS, 3, axis=0)).astype(np.float16).astype("f4")
    np.testing.assert_array_equal(matrix_of(tmp_path / "out.svm"), want)


def test_parts_and_resumed_parts_are_sparse_too(source, tmp_path):
    fm = fit()
    writing, out = OutputOptions(output_format="npz"), tmp_path / "out"
    transform_parts(fm, source, out, writing=writing, rows_per_file=256)
    names = sorted(path.name for path in out.glob("*.npz"))
    assert np.array_equal(np.concatenate([matrix_of(out / name) for name in names]), fm.transform(table()))
    before = {name: (out / name).read_bytes() for name in names}
    (out / names[1]).unlink()
    again = transform_parts(fm, source, out, writing=writing, rows_per_file=256, resume=True)
    assert again.kept == len(names) - 1
    assert before == {name: (out / name).read_bytes() for name in names}


def test_predictions_are_numbers_for_libsvm(source, tmp_path):
    fm = kafeat.fit({"columns": {"exclude": ["y"]}, "steps": [*BINS, "ridge"]}, source, label="y")
    transform_file(fm, source, tmp_path / "p.svm", keep=["y"])
    P, _ = load_svmlight_file(str(tmp_path / "p.svm"))
    assert P.shape == (N, 3)
    np.testing.assert_allclose(P.sum(axis=1), 1.0, atol=1e-6)
    fm.save(tmp_path / "m.joblib")
    assert verify_file(tmp_path / "m.joblib", source, tmp_path / "p.svm", label="y").rows_compared == N
    transform_file(fm, source, tmp_path / "f.npz", features=True)
    assert matrix_of(tmp_path / "f.npz").shape == (N, 5 * D)
