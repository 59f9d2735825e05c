"""LIBSVM and SciPy's sparse matrices: parsing, widths, labels, bad rows, and the sparse way through a map."""

import gzip
import hashlib
import json
import subprocess
import sys
import zipfile
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

import kafeat
from kafeat.contract.tile import SparseRows
from kafeat.errors import DataError
from kafeat.io.readers import libsvm
from kafeat.io.readers.libsvm import cut, parsed, tidied
from kafeat.io.readers.memory import reader_of
from kafeat.io.storage.location import parse_location
from kafeat.jobs.transform.options import RowOptions
from kafeat.runtime.column_ranges import ColumnRanges
from tests.io.tables import open_reader, read
from tests.jobs.files import transform_file, verify_file
from tests.zygote import apart

WIDTH = 400


@pytest.fixture(scope="module")
def matrix():
    """Thin rows, some thick ones, and one of nothing."""
    rng = np.random.default_rng(0)
    X = sp.random_array((700, WIDTH), density=0.01, format="lil", dtype=np.float64, rng=rng)
    X[::50] = rng.random((14, WIDTH))
    X[3] = 0.0
    return sp.csr_matrix(X.tocsr().astype(np.float32))


@pytest.fixture(scope="module")
def files(matrix, tmp_path_factory):
    folder = tmp_path_factory.mktemp("sparse")
    labels = np.arange(matrix.shape[0]) % 3 - 1
    dump_svmlight_file(matrix.astype(np.float64), labels, str(folder / "x.svm"), zero_based=False)
    sp.save_npz(folder / "x.npz", matrix)
    np.save(folder / "x.npy", matrix.toarray())
    return folder


floats = st.floats(allow_nan=False, allow_infinity=False)
numbers = floats.map(repr) | st.sampled_from(["+1", "-.5", "1.", "2E-3"])
entries = st.dictionaries(st.integers(1, 3000), numbers, max_size=5)
lines = st.tuples(numbers, entries, st.sampled_from([" ", "\t", "  "]))
extras = st.sampled_from(["", " ", " \r", " # 1:2 x", "\t#"])


blanks = st.sampled_from(["", "\n", " \n", "# 3:4\n"])


@given(st.lists(st.tuples(lines, extras, blanks), max_size=12), st.integers(1, 5))
def test_lines_are_read_as_they_are_written(rows, height):
    text = "".join(
        f"{blank}{label}{gap}qid:7{gap}{gap.join(f'{i}:{x}' for i, x in sorted(pairs.items()))}{extra}\n"
        for (label, pairs, gap), extra, blank in rows
    )
    chunks = [parsed(chunk) for chunk, _ in cut([tidied(text.encode())], height)]
    found = [row for chunk in chunks for row in rows_of(chunk)]
    pairs = [(label, sorted(pairs.items())) for (label, pairs, _), _, _ in rows]
    truth = [(float(label), [(i - 1, float(x)) for i, x in entries]) for label, entries in pairs]
    assert found == truth


def rows_of(entries):
    for row, label in enumerate(entries.labels.tolist()):
        part = slice(entries.starts[row], entries.starts[row + 1])
        yield label, list(zip(entries.columns[part].tolist(), entries.values[part].tolist(), strict=True))


def test_scikit_learn_reads_the_same(files):
    with open_reader(files / "x.svm") as source:
        X = read(source)
    assert np.array_equal(X, load_svmlight_file(str(files / "x.svm"), zero_based=False)[0].toarray())


def test_a_broken_line_is_the_only_one(files):
    text = b"1 1:1\n" * 5 + b"0 1:1 007:2\n" + b"-1 2:0x10\n" + b"2 3:1_0\n" + b"1 2:4\n"
    found = parsed(text)
    assert {row: problem for row, (problem, _) in found.broken.items()} == {
        5: "expected index:value, got '007:2'",
        6: "expected a number after the index 2, got '0x10'",
        7: "expected a number after the index 3, got '1_0'",
    }
    assert list(rows_of(found))[8] == (1.0, [(1, 4.0)])
    assert list(rows_of(found))[5][1] == []


def test_every_index_of_a_line_has_a_bound():
    ((row, (problem, _)),) = parsed(b"1 1:2 2147483647:1\n1 1:2 2147483648:1\n").broken.items()
    assert (row, problem) == (1, "expected an index from 1 to 2,147,483,647, got 2147483648")


def test_the_last_line_may_have_no_newline(tmp_path):
    (tmp_path / "x.svm").write_text("1 1:2\n0 2:3")
    assert read(tmp_path / "x.svm").tolist() == [[2.0, 0.0], [0.0, 3.0]]


def test_lines_that_are_cut_by_the_blocks_of_reading(files, monkeypatch):
    whole = read(files / "x.svm")
    for block in (97, 4096):
        monkeypatch.setattr(libsvm, "BLOCK", block)
        assert np.array_equal(read(files / "x.svm", height=33), whole)


def recipe(**step):
    return {"steps": [{"n_components": 16, **step}], "chunk_rows": 300, "fit_rows": 200}


STEPS = [
    {"kind": "fourier", "frequencies": "iid", "weights": "uniform"},
    {"kind": "fourier", "features": "offset", "frequencies": "iid", "weights": "uniform"},
    {"kind": "fourier", "frequencies": "structured", "weights": "uniform"}, {"kind": "projection"},
    {"kind": "projection", "matrix": "sparse"}, {"kind": "projection", "matrix": "srht"},
    {"kind": "tensor_sketch"}, {"kind": "tensor_sketch", "domain": "time", "n_components": 17},
]  # fmt: skip


@pytest.mark.parametrize("step", STEPS, ids=str)
@pytest.mark.slow
def test_the_sparse_way_is_the_dense_one_up_to_rounding(files, tmp_path, step, matrix):
    fm = kafeat.fit(recipe(**step), files / "x.svm", label="label")
    assert fm.n_features_in == WIDTH
    fm.save(tmp_path / "m.joblib")
    Z = fm.transform(matrix.toarray())
    # Sums of up to 400 products, in another order: 400 roundings of the largest term, which the largest output bounds
    # up to the sizes of the factors (normal entries: below 5).
    atol = 400 * 5 * np.finfo("f4").eps * np.abs(Z).max()
    for name in ("x.svm", "x.npz"):
        for end, layout in (("npy", "columns"), ("parquet", "columns"), ("parquet", "list")):
            contents = []
            for jobs in (1, 2):
                out = str(tmp_path / f"{name}.{end}")
                transform_file(fm, files / name, out, layout=layout, jobs=jobs)
                contents.append(Path(out).read_bytes())
            assert contents[0] == contents[1]
            verified = verify_file(tmp_path / "m.joblib", files / name, out)
            assert verified.largest_difference == 0.0
            with open_reader(out) as made:
                np.testing.assert_allclose(read(made, "float32"), Z, rtol=0, atol=atol)
    assert np.array_equal(fm.transform(matrix), np.load(tmp_path / "x.npz.npy"))


def test_narrow_rows_give_the_bytes_of_other_formats(tmp_path):
    X = np.round(np.random.default_rng(0).normal(size=(500, 20)), 2) * (np.arange(20) % 5 == 0)
    np.save(tmp_path / "x.npy", X)
    dump_svmlight_file(sp.csr_matrix(X), np.zeros(500), str(tmp_path / "x.svm"), zero_based=False)
    fm = kafeat.fit(recipe(kind="projection"), tmp_path / "x.npy")
    for name in ("x.npy", "x.svm"):
        transform_file(fm, tmp_path / name, tmp_path / f"{name}.out.npy")
    assert (tmp_path / "x.npy.out.npy").read_bytes() == (tmp_path / "x.svm.out.npy").read_bytes()


def test_labels_are_kept_and_are_no_features(files, tmp_path):
    fm = kafeat.fit(recipe(kind="projection"), files / "x.svm")
    transform_file(fm, files / "x.svm", tmp_path / "y.arrow", keep=("label",))
    table = pa.ipc.open_file(tmp_path / "y.arrow").read_all()
    assert table["label"].to_pylist() == (np.arange(700) % 3 - 1).tolist()
    (tmp_path / "f.svm").write_text("0.5 1:1\n2 2:1\n")
    with open_reader(tmp_path / "f.svm") as source:
        assert source.passthrough_schema(["label"]).field(0).type == pa.float64()


def test_fit_on_stdin_reads_a_copy_and_knows_the_hash(files, tmp_path):
    (tmp_path / "c.yaml").write_text(json.dumps(recipe(kind="projection")))
    packed = gzip.compress((files / "x.svm").read_bytes(), mtime=0)
    words = "fit --config c.yaml - m.joblib --input-format libsvm --label label"
    assert apart(words, cwd=tmp_path, input=packed).returncode == 0
    here = kafeat.fit(recipe(kind="projection"), files / "x.svm", label="label")
    there = kafeat.load(tmp_path / "m.joblib")
    assert there.provenance.sources[0].sha256 == hashlib.sha256(packed).hexdigest()
    assert np.array_equal(here.chain.steps[0].state["matrix"], there.chain.steps[0].state["matrix"])


def test_bad_rows_are_set_aside(files, tmp_path):
    fm = kafeat.fit(recipe(kind="projection"), files / "x.svm", label="label")
    good = (files / "x.svm").read_text().splitlines()
    bad = {10: "1 5:x", 11: "1 7:nan", 400: f"1 1:1 {WIDTH + 1}:2", 699: "oops"}
    text = "\n".join(bad.get(i, line) for i, line in enumerate(good)) + "\n"
    (tmp_path / "x.svm").write_text(text)
    transform_file(fm, files / "x.svm", tmp_path / "all.npy")
    Z = np.load(tmp_path / "all.npy")
    for rule in ("drop", "null"):
        rules = RowOptions(on_bad_rows=rule, rejects=parse_location(tmp_path / "why.csv"), drift=True)
        done = transform_file(fm, tmp_path / "x.svm", tmp_path / "y.npy", rules=rules)
        assert done.bad_rows == 4
        got = np.load(tmp_path / "y.npy")
        assert np.array_equal(got[~np.isnan(got[:, 0])], np.delete(Z, list(bad), axis=0))
        why = (tmp_path / "why.csv").read_text().splitlines()
        assert why[0] == "row,column,problem,text,features"
        assert why[1] == "11,,\"expected a number after the index 5, got 'x'\",1 5:x,"
        assert why[2] == '12,features[6],"expected a finite number, got nan",,7:nan'
        assert why[3].startswith('401,,"expected no index above 400, the width of the map, got 401",1:1.0')
        assert why[4] == "700,,\"expected a number as the label, got 'oops'\",oops,"
        (tmp_path / "cut.svm").write_text(text[:-1])
        told = r"cut.svm: last line: .* got 'oops', in a last line without a line end"
        with pytest.raises(DataError, match=told):
            transform_file(fm, tmp_path / "cut.svm", tmp_path / "y.npy", rules=rules)
    with pytest.raises(DataError, match=r"x.svm: row 11 \(index 10\): expected a number after the index 5"):
        kafeat.fit(recipe(kind="projection"), tmp_path / "x.svm")


def test_what_was_seen_counts_zeros(matrix):
    X = matrix.toarray().astype("f8")
    starts = np.append(0, np.cumsum(np.count_nonzero(X, axis=1)))
    S = SparseRows(X[X != 0.0], np.nonzero(X)[1], starts, WIDTH)
    dense, sparse = ColumnRanges.empty(WIDTH), ColumnRanges.empty(WIDTH)
    for rows in (slice(0, 40), slice(40, 41), slice(41, 700)):
        dense, sparse = dense.adding(X[rows]), sparse.adding(S[rows])
    assert np.array_equal(dense.low, sparse.low)
    assert np.array_equal(dense.high, sparse.high)
    thirds, fourths = (0.1 * (np.arange(WIDTH) % n == 0) for n in (3, 4))
    other = ColumnRanges(dense.low + thirds, dense.high - fourths)
    assert np.array_equal(other.outside(X), other.outside(S))
    assert other.outside(X).any()


def test_scipys_own_ways_to_write_a_matrix(tmp_path):
    twice = sp.csr_matrix((np.array([1.0, 2.0, 4.0]), np.array([2, 0, 2]), np.array([0, 3, 3])), shape=(2, 3))
    sp.save_npz(tmp_path / "x.npz", twice, compressed=False)
    assert read(tmp_path / "x.npz").tolist() == [[2, 0, 5], [0, 0, 0]]
    assert read(reader_of(sp.coo_array(twice))).tolist() == [[2, 0, 5], [0, 0, 0]]
    sp.save_npz(tmp_path / "y.npz", sp.csr_array(twice).astype(np.int8))
    assert read(tmp_path / "y.npz", height=1).tolist() == [[2, 0, 5], [0, 0, 0]]


def test_flipped_npz_is_read_or_refused(files, tmp_path):
    sound, rng = (files / "x.npz").read_bytes(), np.random.default_rng(0)
    for _ in range(150):
        damaged = bytearray(sound)
        damaged[rng.integers(len(sound))] = rng.integers(256)
        (tmp_path / "x.npz").write_bytes(damaged[: rng.integers(len(sound)) if rng.random() < 0.2 else None])
        with suppress(DataError):
            read(tmp_path / "x.npz", height=100)


def test_npz_with_hostile_headers(matrix, tmp_path):
    sound = sp.csr_matrix(matrix)
    arrays = {"indices": sound.indices, "indptr": sound.indptr, "data": sound.data}
    arrays |= {"shape": np.array(sound.shape), "format": np.array(b"csr")}
    beyond = np.append(sound.indptr[:-1].astype("u8"), np.uint64(2**63 + 5))
    np.savez(tmp_path / "x.npz", **(arrays | {"indptr": beyond}))
    told = "indptr: expected ascending numbers up to .*, got others in rows 401 to 700"
    with pytest.raises(DataError, match=told):
        read(tmp_path / "x.npz", height=400)
    for name in arrays:
        for length in ("(True,)", "(1.5,)", "(-1,)", f"({10**30},)"):
            header = f"{{'descr': '<i8', 'fortran_order': False, 'shape': {length}}}\n".encode()
            with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
                for other, values in arrays.items():
                    with archive.open(f"{other}.npy", "w") as file:
                        if other == name:
                            length = len(header).to_bytes(2, "little")
                            file.write(b"\x93NUMPY\x01\x00" + length + header + bytes(8))
                        else:
                            np.lib.format.write_array(file, values)
            with pytest.raises(DataError, match=r"x.npz: .*expected "):
                read(tmp_path / "x.npz")


@pytest.mark.slow
def test_memory_is_that_of_tiles_and_not_of_chunks(tmp_path):
    rows, width = 5000, 100_000  # a dense chunk: 2 GB
    rng = np.random.default_rng(0)
    X = sp.random_array((rows, width), density=1e-4, format="csr", dtype=np.float32, rng=rng)
    sp.save_npz(tmp_path / "x.npz", sp.csr_matrix(X), compressed=False)
    code = (
        "import kafeat, resource, sys\n"
        "step = {'kind': 'projection', 'matrix': 'sparse', 'n_components': 64}\n"
        "fm = kafeat.fit({'steps': [step], 'fit_rows': 100}, 'x.npz')\n"
        "kafeat.transform('x.npz', 'y.npy', model=fm, jobs=2)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, check=True)
    assert int(done.stdout) < 1_000_000  # KiB; a tile of 256 rows, dense, is 100 MB, and the fit makes some


def test_refusals(tmp_path):
    (tmp_path / "x.svm").write_text("1\n2\n")
    told = "expected at least one index:value, got labels only"
    with open_reader(tmp_path / "x.svm") as source, pytest.raises(DataError, match=told):
        read(source)


def test_a_matrix_in_no_order_stays_as_it_was():
    """SciPy's products give such ones; they are put in order in a copy."""
    matrix = sp.csr_matrix((np.array([1.0, 2.0, 4.0]), np.array([1, 0, 1]), np.array([0, 3])), shape=(1, 2))
    before = [part.copy() for part in (matrix.data, matrix.indices, matrix.indptr)]
    fm = kafeat.fit({"steps": ["minmax"]}, np.array([[0.0, 0.0], [10.0, 10.0]]))
    for _ in range(2):
        np.testing.assert_array_equal(fm.transform(matrix), fm.transform(np.array([[2.0, 5.0]])))
    for part, was in zip((matrix.data, matrix.indices, matrix.indptr), before, strict=True):
        np.testing.assert_array_equal(part, was)


def labels_of(path, text, **options):
    path.write_text(text)
    with open_reader(path) as source:
        chunk = next(source.chunks(kafeat.io.columns.columns.Columns((), False, None), ["label"], 100))
        return chunk.passthrough["label"].to_pylist()


def test_labels_are_the_numbers_that_are_written_or_refused(tmp_path):
    path = tmp_path / "x.svm"
    assert labels_of(path, f"1 1:1\n{-(2**53) + 1} 1:1\n") == [1, -(2**53) + 1]
    # above 2**53 a double does not tell one whole number from the next: no int64 is made of it
    assert labels_of(path, f"1 1:1\ninf 1:1\n-1e19 1:1\n{2**53} 1:1\n") == [1.0, np.inf, -1e19, 2.0**53]
    assert labels_of(path, "0.5 1:1\n1e300 1:1\n") == [0.5, 1e300]
    for lost in (2**53 + 1, -(2**63) - 1, 10**400):
        number = "expected a whole number below 2\\*\\*53, got "
        refused = f"row 2 .*, column 'label': {number}{str(lost)[:30]}"
        with pytest.raises(DataError, match=refused):
            labels_of(path, f"1 1:1\n{lost} 1:1\n")
    head = "1 1:1\n" * 200_000  # more than is looked at for the kind
    wide, fine = r"below 2\*\*53", "as in the first rows"
    for late, why in (("inf", fine), ("1e19", wide), ("0.5", fine), ("9007199254740993", wide)):
        path.write_text(f"{head}{late} 1:1\n")
        refused = pytest.raises(DataError, match=f"expected a whole number {why}, got {late}")
        with open_reader(path) as source, refused:
            columns = kafeat.io.columns.columns.Columns((), False, None)
            for chunk in source.chunks(columns, ["label"], 100_000):
                assert chunk.passthrough is not None


@pytest.mark.parametrize("blank", ["\x1c", "\x1f", "\x85", "\xa0", "\u2028"])
def test_blanks_of_other_scripts_are_none(tmp_path, blank):
    text = f"1 1:1\n1 1:2{blank}2:3\n1 1:2{blank}\n{blank}\n1 1:4\n"
    (tmp_path / "x.svm").write_text(text, encoding="utf-8")
    found = parsed(tidied((tmp_path / "x.svm").read_bytes()))
    assert sorted(found.broken) == [1, 2, 3]
    assert found.values.tolist() == [1.0, 4.0]


@pytest.mark.timeout(60)
def test_a_long_label_that_is_no_number_is_not_tried_in_every_way(tmp_path):
    with pytest.raises(DataError, match=r"row 1 \(index 0\): expected a number as the label, got '1111"):
        labels_of(tmp_path / "x.svm", 50_000 * "1" + "x 1:1\n")
