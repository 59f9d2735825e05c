"""The first rows of an input: exactly so many, with the bytes that they have in the whole output."""

import hashlib

import numpy as np
import pyarrow.parquet as pq
import pytest

import kafeat
from kafeat.config import load_config
from kafeat.errors import DataError
from kafeat.io.options import InputOptions, OutputOptions
from kafeat.io.storage.location import parse_location
from kafeat.jobs.fit.fit import fit_reader
from kafeat.jobs.transform.options import RowOptions
from tests.jobs.files import transform_file
from tests.zygote import ROOT, apart

SAMPLES = ROOT / "sample_data"
CONFIG = {
    "columns": {"exclude": ["label"]},
    "chunk_rows": 500,
    "steps": [{"kind": "standardize"}, {"kind": "arc_cosine", "n_components": 32}],
}


@pytest.fixture(scope="module")
def fm():
    return kafeat.fit(CONFIG, SAMPLES / "digits.parquet")


@pytest.mark.parametrize("source", ["digits.csv", "digits.parquet", "digits.npy"])
def test_rows_and_bytes_are_those_of_the_whole(fm, tmp_path, source):
    transform_file(fm, SAMPLES / source, tmp_path / "all.npy", jobs=2)
    whole = np.load(tmp_path / "all.npy")
    for limit in (1, 500, 501, 1797, 5000):  # within a chunk, at its end, behind it, and all
        done = transform_file(fm, SAMPLES / source, tmp_path / "some.npy", limit=limit, jobs=2)
        assert done.rows == done.rows_read == min(limit, 1797)
        assert np.load(tmp_path / "some.npy").tobytes() == whole[:limit].tobytes(), limit


@pytest.mark.parametrize("target", ["csv", "parquet"])
def test_kept_columns_are_cut_as_well(fm, tmp_path, target):
    for name, limit in (("all", None), ("some", 700)):
        transform_file(fm, SAMPLES / "digits.csv", tmp_path / f"{name}.{target}", limit=limit, keep=["label"])
    if target == "csv":
        lines = (tmp_path / "all.csv").read_bytes().splitlines()[:701]
        assert (tmp_path / "some.csv").read_bytes().splitlines() == lines
    else:
        whole, some = (pq.read_table(tmp_path / f"{name}.parquet") for name in ("all", "some"))
        assert some.equals(whole.slice(0, 700))


def test_what_is_wrong_behind_the_limit_is_not_looked_at(fm, tmp_path):
    lines = (SAMPLES / "digits.csv").read_text().splitlines()
    lines[13] = "x" + lines[13]  # row 13, index 12
    lines[20] = "x" + lines[20]
    (tmp_path / "in.csv").write_text("\n".join(lines))
    reject = RowOptions(on_bad_rows="drop", rejects=parse_location(tmp_path / "rejects.csv"))
    cells = OutputOptions(keep=["label"])
    done = transform_file(fm, tmp_path / "in.csv", tmp_path / "z.parquet", limit=12, writing=cells)
    assert done.rows == 12
    lines[13], lines[20] = (line.replace("x", "", 1).replace(",", ",x", 1) for line in (lines[13], lines[20]))
    (tmp_path / "in.csv").write_text("\n".join(lines))
    out = str(tmp_path / "z.npy")
    assert transform_file(fm, tmp_path / "in.csv", out, limit=12).rows == 12
    with pytest.raises(DataError, match=r"row 13 \(index 12\), column 'p00': expected a number"):
        transform_file(fm, tmp_path / "in.csv", out, limit=13)
    done = transform_file(fm, tmp_path / "in.csv", out, limit=15, rules=reject)
    assert (done.rows, done.rows_read, done.bad_rows) == (14, 15, 1)


def test_a_fit_sees_no_more_rows_and_the_hash_is_of_the_whole(tmp_path):
    with InputOptions(limit=100).open(parse_location(SAMPLES / "digits.csv")) as source:
        fm = fit_reader(load_config(CONFIG), source, None)
    (origin,) = fm.provenance.sources
    assert (fm.provenance.rows_fitted, origin.rows) == (100, 100)
    assert origin.sha256 == hashlib.sha256((SAMPLES / "digits.csv").read_bytes()).hexdigest()
    table = pq.read_table(SAMPLES / "digits.parquet").slice(0, 100)
    same = kafeat.fit(CONFIG, table)
    for mine, other in zip(fm.chain.steps, same.chain.steps, strict=True):
        assert {k: v.tobytes() for k, v in mine.state.items()} == {
            k: v.tobytes() for k, v in other.state.items()
        }


def test_a_pipe_is_hashed_to_its_end_while_its_reader_reads_ahead(tmp_path):
    header, *lines = (SAMPLES / "digits.csv").read_bytes().splitlines(keepends=True)
    text = header + b"".join(lines) * 40  # some blocks of Arrow's reader
    (tmp_path / "c.yaml").write_text("steps: [{kind: standardize}]")
    apart("fit --config c.yaml - m.joblib --limit 3", cwd=tmp_path, input=text)
    (origin,) = kafeat.load(tmp_path / "m.joblib").provenance.sources
    assert (origin.rows, origin.sha256) == (3, hashlib.sha256(text).hexdigest())
