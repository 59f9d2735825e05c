"""Data sets of parts in an object store: the same bytes as here, complete or not there, and gone on with."""

import json
import re
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kafeat
from kafeat.io.storage.location import parse_location
from tests.jobs.files import transform_parts, verify_file

pytestmark = pytest.mark.usefixtures("credentials")

STEP = {"kind": "fourier", "n_components": 8, "frequencies": "orthogonal"}
CONFIG = {"fit_rows": 100, "chunk_rows": 256, "steps": [STEP]}
NAMES = ("year=2023/a b.parquet", "year=2023/ü.parquet", "year=2024/a b.parquet")


def table(rows: int, seed: int) -> pa.Table:
    X = np.random.default_rng(seed).normal(size=(rows, 4))
    return pa.table({f"x{j}": X[:, j] for j in range(4)})


def in_a_year(rows):
    """The column that folders name."""
    return rows.append_column("year", pa.array([2024] * len(rows)))


@pytest.fixture
def data(store, tmp_path):
    """The same parts here and there."""
    for seed, name in enumerate(NAMES):
        place = tmp_path / "in" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table(300 + seed, seed), place)
        store.put(f"in/{name}", place.read_bytes())
    return str(tmp_path / "in")


@pytest.fixture
def model(data, tmp_path):
    path = str(tmp_path / "map.joblib")
    kafeat.fit(CONFIG, data).save(path)
    return path


def test_parts_are_the_same_bytes_there(store, data, model, tmp_path):
    transform_parts(model, data, tmp_path / "out")
    secret, stats = "AKIA:hush@", tmp_path / "stats.json"
    places = (store.uri(name, user=secret) for name in ("in", "out"))
    run = transform_parts(model, *places, stats=parse_location(stats))
    assert (run.parts, run.rows, run.failed) == (3, 903, ())
    for name in NAMES:
        assert store.get(f"out/{name}") == (tmp_path / "out" / name).read_bytes()
    manifest = store.get("out/_kafeat.json").decode()
    assert json.loads(manifest)["state"] == "complete"
    assert not re.search("endpoint_override|hush|AKIA", manifest + stats.read_text())
    assert transform_parts(model, store.uri("in"), store.uri("out"), resume=True).kept == 3
    found = verify_file(model, store.uri("in"), store.uri("out"))
    assert (found.rows, found.largest_difference) == (903, 0.0)


def test_a_changed_object_and_a_lost_one_are_made_again(store, data, model):
    transform_parts(model, store.uri("in"), store.uri("out"))
    store.put(f"in/{NAMES[0]}", Path(data, NAMES[1]).read_bytes())
    store.ask("DELETE", f"/{quote(f'out/{NAMES[2]}')}")
    run = transform_parts(model, store.uri("in"), store.uri("out"), resume=True)
    assert (run.parts, run.kept) == (3, 1)
    assert store.get(f"out/{NAMES[0]}") == store.get(f"out/{NAMES[1]}")


def test_a_glob_there_and_parts_cut_there(store, model, tmp_path):
    run = transform_parts(model, store.uri("in/year=*/a%20b.parquet"), store.uri("out"))
    assert (run.parts, run.rows) == (2, 602)
    pq.write_table(in_a_year(table(1000, 5)), tmp_path / "big.parquet")
    store.put("big.parquet", (tmp_path / "big.parquet").read_bytes())
    run = transform_parts(
        model, store.uri("big.parquet"), store.uri("cut"), rows_per_file=512, output_format="npy"
    )
    assert (run.parts, run.rows) == (2, 1000)
    assert store.get("cut/big-00001.npy").startswith(b"\x93NUMPY")


def test_a_failed_part_leaves_no_object_and_no_upload(store, data, model):
    bad = table(50, 0).set_column(0, "x0", pa.array([float("nan")] * 50))
    pq.write_table(bad, Path(data, "bad.parquet"))
    store.put(f"in/{NAMES[0]}", Path(data, "bad.parquet").read_bytes())
    run = transform_parts(model, store.uri("in"), store.uri("out"))
    assert (run.parts, [failure.name for failure in run.failed]) == (2, [NAMES[0]])
    assert "?" not in run.failed[0].error
    assert f"out/{NAMES[0]}" not in list(store.keys())
    assert store.uploads() == []


def test_a_fit_there_is_the_fit_here(store, data):
    here, there = kafeat.fit(CONFIG, data), kafeat.fit(CONFIG, store.uri("in"))
    X = in_a_year(table(20, 9))
    assert np.array_equal(here.transform(X), there.transform(X))
    assert here.provenance.sources == there.provenance.sources


def test_rejects_lie_there_too(store, data, model):
    bad = table(50, 0).set_column(0, "x0", pa.array([float("nan")] + [1.0] * 49))
    pq.write_table(bad, Path(data, "bad.parquet"))
    store.put(f"in/{NAMES[0]}", Path(data, "bad.parquet").read_bytes())
    asked = {"on_bad_rows": "drop", "rejects": store.uri("rejects")}
    assert transform_parts(model, store.uri("in"), store.uri("out"), **asked).bad_rows == 1
    assert transform_parts(model, store.uri("in"), store.uri("out"), **asked, resume=True).kept == 3
    assert b"1,x0," in store.get("rejects/year=2023/a b.parquet.csv")
