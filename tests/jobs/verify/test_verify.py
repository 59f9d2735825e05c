"""The morning-after question: is the output what the map makes of the input?"""

import hashlib
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kafeat
from kafeat.errors import DataError, GateError
from tests.jobs.files import transform_file, transform_parts, verify_file
from tests.recipes import fit_once
from tests.sizes import sampled

N, D, CHUNK = 1500, 3, 100
RNG = np.random.default_rng(4)
X = RNG.normal(size=(N, D))


@pytest.fixture
def model(tmp_path):
    step = {"kind": "fourier", "n_components": 6, "frequencies": "iid"}
    fit_once({"chunk_rows": CHUNK, "steps": [step]}, X).save(tmp_path / "m.joblib")
    return str(tmp_path / "m.joblib")


@pytest.fixture
def source(tmp_path):
    np.save(tmp_path / "in.npy", X)
    return str(tmp_path / "in.npy")


@pytest.mark.parametrize("format", ["csv", "csv.gz", "parquet", "npy", "npz", "svm"])
@pytest.mark.parametrize("dtype", [None, *sampled("float16", "float64")])
def test_a_sound_output(model, source, tmp_path, format, dtype):
    out, told = str(tmp_path / f"out.{format}"), str(tmp_path / "s.json")
    kafeat.transform(source, out, model=model, output_dtype=dtype, stats=told)
    found = verify_file(model, source, out, stats=told)
    assert (found.rows, found.rows_compared, found.largest_difference) == (N, N, 0.0)
    assert found.hashes == ("model", "input", "output")


def test_few_rows_are_made_again_and_which_depends_on_the_seed(model, source, tmp_path):
    out = str(tmp_path / "out.npy")
    transform_file(model, source, out)
    wrong = np.load(out)
    wrong[750] += 1.0
    np.save(out, wrong)
    caught, compared = [], []
    for seed in range(12):
        try:
            compared.append(verify_file(model, source, out, rows=5 * CHUNK, seed=seed).rows_compared)
        except GateError as error:
            caught.append(str(error))
    assert compared
    assert all(4 * CHUNK <= rows <= 7 * CHUNK for rows in compared)
    assert caught
    assert all("out.npy: row 751 (index 750), feature" in message for message in caught)


@pytest.mark.parametrize("row", [0, N - 1])
def test_the_first_and_the_last_rows_are_always_made_again(model, source, tmp_path, row):
    out = str(tmp_path / "out.npy")
    transform_file(model, source, out)
    wrong = np.load(out)
    wrong[row] += 1.0
    np.save(out, wrong)
    for seed in range(6):
        with pytest.raises(GateError, match=rf"row {row + 1} "):
            verify_file(model, source, out, rows=1, seed=seed)


@pytest.mark.parametrize("jobs", [1, 3])
@pytest.mark.parametrize(("change", "message"), [
    (lambda Z: Z[:-1], "expected more than 1,499 rows"),
    (lambda Z: np.vstack([Z, Z[:1]]), "expected 1,500 rows, as in .*in.npy, got 1,501"),
    (lambda Z: np.roll(Z, 1, axis=0), r"row 1 \(index 0\), feature \d: expected"),
    (lambda Z: Z[:, ::-1], r"row 1 \(index 0\)"),
    (lambda Z: Z[:, 1:], "expected 6 columns of features, got 5 columns"),
    (lambda Z: np.where(np.arange(N)[:, None] == N - 1, np.float32(0), Z), r"row 1500 \(index 1499\)"),
    (lambda Z: np.where(np.arange(N)[:, None] == 7, np.float32(np.nan), Z), r"row 8 .*got nan"),
])  # fmt: skip
def test_a_wrong_output_is_told(model, source, tmp_path, change, message, jobs):
    out = str(tmp_path / "out.npy")
    transform_file(model, source, out)
    np.save(out, change(np.load(out)))
    with pytest.raises(GateError, match=message):
        verify_file(model, source, out, jobs=jobs)


def test_a_difference_of_rounding_is_told_and_passes(model, source, tmp_path):
    out = str(tmp_path / "out.npy")
    transform_file(model, source, out)
    np.save(out, np.load(out) * np.float32(1 + 1e-6))
    assert 0.0 < verify_file(model, source, out).largest_difference < 2e-6


def test_another_map_and_other_hashes(model, source, tmp_path):
    out, told = str(tmp_path / "out.parquet"), str(tmp_path / "s.json")
    kafeat.transform(source, out, model=model, stats=told)
    other = str(tmp_path / "other.joblib")
    kafeat.fit({"seed": 1, "steps": [{"kind": "fourier", "n_components": 6, "frequencies": "iid"}]}, X).save(
        other
    )
    with pytest.raises(GateError, match=r"out.parquet: expected an output of .*other.joblib"):
        verify_file(other, source, out)
    with pytest.raises(GateError, match="other.joblib: expected the model with SHA-256"):
        verify_file(other, source, out, stats=told)
    np.save(source, X + 1)
    with pytest.raises(GateError, match="in.npy: expected the input with SHA-256"):
        verify_file(model, source, out, stats=told)


@pytest.mark.parametrize("rule", ["drop", "null"])
@pytest.mark.parametrize("format", ["csv", "parquet", "npy"])
def test_bad_rows(model, source, tmp_path, rule, format):
    spoilt = X.copy()
    spoilt[[0, 99, 100, 101, 700]] = np.nan
    np.save(source, spoilt)
    out = str(tmp_path / f"out.{format}")
    transform_file(model, source, out, on_bad_rows=rule)
    found = verify_file(model, source, out, on_bad_rows=rule)
    assert (found.rows, found.largest_difference) == (N - 5 if rule == "drop" else N, 0.0)
    with pytest.raises(DataError, match=r"row 1 \(index 0\), column 'c0': expected a finite number"):
        verify_file(model, source, out)


def test_diff(run, model, tmp_path):
    other = str(tmp_path / "other.joblib")
    step = {"kind": "fourier", "n_components": 6, "frequencies": "iid", "gamma": 0.5}
    kafeat.fit({"seed": 1, "chunk_rows": CHUNK, "steps": [step]}, X).save(other)
    assert run("diff --exit-code", model, model).stdout == "no difference\n"
    run("diff --exit-code", model, other, code=6)
    apart = run("diff --json", model, other).stdout
    found = {one["where"]: (one["a"], one["b"]) for one in json.loads(apart)}
    assert found["config.seed"] == ("0", "1")
    assert found["steps[0].parameters.gamma"] == ("'median'", "0.5")
    assert "of entries differ, by up to" in found["steps[0].learned.frequencies"][1]
    assert "seen.low" not in found
    run("diff", model, other)


def test_text_does_not_tell_its_dtype(model, source, tmp_path):
    out = str(tmp_path / "out.csv")
    transform_file(model, source, out, output_dtype="float16")
    with pytest.raises(GateError, match="feature"):
        verify_file(model, source, out)


def test_features_in_another_order_are_told(model, source, tmp_path):
    out = tmp_path / "out.parquet"
    transform_file(model, source, out)
    table = pq.read_table(out)
    pq.write_table(table.rename_columns(table.column_names[::-1]), out)
    with pytest.raises(GateError, match=r"out.parquet: expected the columns of the features in their order"):
        verify_file(model, source, out)


@pytest.mark.parametrize("format", ["csv", "parquet", "arrow"])
def test_predictions_of_an_input_that_has_a_column_of_that_name(tmp_path, format):
    columns = {"a": X[:, 0], "b": X[:, 1], "prediction": X[:, 2], "y": np.where(X[:, 0] > 0, "yes", "no")}
    table = pa.table(columns).slice(0, 300)
    pq.write_table(table, tmp_path / "in.parquet")
    config = {"columns": {"include": ["a", "b"]}, "steps": [{"kind": "standardize"}, {"kind": "ridge"}]}
    kafeat.fit(config, table, label="y", intervals=False).save(tmp_path / "m.joblib")
    model, source, out = (str(tmp_path / name) for name in ("m.joblib", "in.parquet", f"out.{format}"))
    for keep in ([], ["y"]):
        transform_file(model, source, out, keep=keep)
        assert verify_file(model, source, out).rows_compared == 300


def folder_of(tmp_path, model, parts, rows, format):
    """The folder of outputs of a folder of inputs with so many parts of so many rows."""
    (tmp_path / "in").mkdir()
    for number, block in enumerate(np.random.default_rng(5).normal(size=(parts, rows, D))):
        np.save(tmp_path / f"in/p{number:02d}.npy", block)
    transform_parts(model, tmp_path / "in", tmp_path / "out", output_format=format)
    return tmp_path / "in", tmp_path / "out"


@pytest.mark.parametrize(("parts", "rows"), [(60, 20), (4, 700)])
@pytest.mark.parametrize("told", [True, False])
def test_about_as_many_rows_as_asked_for_of_every_part_are_made_again(model, tmp_path, parts, rows, told):
    source, out = folder_of(tmp_path, model, parts, rows, "npy")
    if not told:
        (out / "_kafeat.json").unlink()
    for asked in (1, 300, 900, parts * rows, 10**6):
        compared = verify_file(model, source, out, rows=asked).rows_compared
        chunks = parts * -(-rows // CHUNK)
        assert min(asked, parts * rows) - CHUNK <= compared <= min(asked + 2 * CHUNK + chunks, parts * rows)
        if asked >= parts * rows:
            assert compared == parts * rows
    wrong = out / f"p{parts // 2:02d}.npy"
    np.save(wrong, np.load(wrong) + np.float32(1))
    for seed in range(3):
        with pytest.raises(GateError, match=rf"{wrong}: row 1 \(index 0\), feature \d: expected"):
            verify_file(model, source, out, rows=1, seed=seed)


@pytest.mark.parametrize("format", ["npy", "csv", "parquet"])
def test_every_byte_of_every_part_is_compared_with_the_manifest(run, model, tmp_path, format):
    source, out = folder_of(tmp_path, model, 3, 30, format)
    done = run("verify -v --model", model, source, out)
    told = "90 rows, 90 of them made again: equal to the last bit; output with the SHA-256 on record"
    assert told in done.stderr
    part = out / f"p01.{format}"
    content, told = part.read_bytes(), (out / "_kafeat.json").read_text()
    assert hashlib.sha256(content).hexdigest() in told
    for wrong in (content + b"\n", content[:-1], content[: len(content) // 2], b""):
        part.write_bytes(wrong)
        done = run("verify --model", model, source, out, code=6)
        assert done.stderr.startswith(f"kafeat: {part}: ")
    part.write_bytes(content)
    if format == "parquet":
        features = pq.read_table(part)
        first = features["f0"].to_numpy().copy()
        first[0] = np.nextafter(first[0], np.float32(9))
        pq.write_table(features.set_column(0, "f0", pa.array(first)), part)
        for place in (out, out / "_kafeat.json"):
            with pytest.raises(GateError, match=r"with SHA-256 \w{12}…, as _kafeat.json says, got \w{12}…"):
                verify_file(model, source, place)
        part.write_bytes(content)
    (out / "_kafeat.json").write_text("{")
    message = "_kafeat.json: content: expected a manifest of kafeat, got: Invalid JSON"
    with pytest.raises(GateError, match=message):
        verify_file(model, source, out)


@pytest.mark.parametrize("format", ["npy", "csv", "csv.gz", "parquet", "svm"])
def test_an_output_that_cannot_be_read_is_wrong(run, model, source, tmp_path, format):
    out = tmp_path / f"out.{format}"
    transform_file(model, source, out)
    content = out.read_bytes()
    out.write_bytes(content[: len(content) // 2])
    assert "; --" not in run("verify --model", model, source, out, code=6).stderr
