"""JSON lines, as another reader of JSON sees them."""

import gzip
import json
import math
from datetime import date
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.io.writers.opening import open_writer

NAMES = ['f"0', "f1"]


def written(path, X, kept=None, **options):
    schema = None if kept is None else kept.schema
    with open_writer(path, "jsonl", names=NAMES, dtype=X.dtype, passthrough_schema=schema, **options) as sink:
        for start in range(0, len(X), 700):
            part = X[start : start + 700]
            sink.write(part, None if kept is None else kept.slice(start, len(part)))
    data = path.read_bytes()
    text = (gzip.decompress(data) if path.name.endswith(".gz") else data).decode()
    assert text.endswith("\n") or not len(X)
    return [json.loads(line) for line in text.split("\n")[:-1]]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("name", ["x.jsonl", "x.ndjson.gz"])
@pytest.mark.parametrize("rows", [0, 1, 3000])
def test_every_number_reads_back_to_itself(tmp_path, dtype, name, rows):
    sizes = 10.0 ** (np.arange(rows)[:, None] % 9 - 4)
    X = (np.random.default_rng(0).normal(size=(rows, 2)) * sizes).astype(dtype)
    objects = written(tmp_path / name, X)
    assert [list(one) for one in objects] == [NAMES] * rows
    assert np.array_equal(np.array([list(one.values()) for one in objects]).reshape(-1, 2).astype(dtype), X)
    lists = written(tmp_path / name, X, layout="list")
    assert np.array_equal(np.array([one["features"] for one in lists]).reshape(-1, 2).astype(dtype), X)


@pytest.mark.parametrize("layout", ["columns", "list"])
def test_rows_without_features_are_null(tmp_path, layout):
    X = np.array([[1.0, 2.0], [np.nan, np.nan], [3.0, 4.0]], "f4")
    found = written(tmp_path / "x.jsonl", X, layout=layout, nullable=True)
    none = {"features": None} if layout == "list" else dict.fromkeys(NAMES)
    assert found[1] == none
    assert found[2] == ({"features": [3, 4]} if layout == "list" else dict(zip(NAMES, [3, 4], strict=True)))


@example([chr(i) for i in range(0x2030)])
@given(st.lists(st.none() | st.text(), min_size=1, max_size=20))
def test_text_is_escaped(values):
    kept = pa.table({"a\n": pa.array(values, pa.string())})
    with TemporaryDirectory() as folder:
        found = written(Path(folder) / "x.jsonl", np.zeros((len(values), 2), "f4"), kept)
    assert found == [{"a\n": value, **dict.fromkeys(NAMES, 0)} for value in values]


def test_types_of_kept_columns(tmp_path):
    kept = pa.table({
        "whole": pa.array([2**60 + 1, None], pa.int64()), "flag": [True, False],
        "real": pa.array([math.nan, 0.1]), "half": pa.array(np.array([0.5, np.inf], np.float16)),
        "exact": pa.array([Decimal("1.10"), None]), "day": [date(2026, 1, 2), None],
        "kind": pa.array(["x", None]).dictionary_encode(), "text": ["\u00e9", None],
    })  # fmt: skip
    first, second = written(tmp_path / "x.jsonl", np.zeros((2, 2), "f4"), kept)
    features = dict.fromkeys(NAMES, 0)
    assert first == features | {
        "whole": 2**60 + 1, "flag": True, "real": None, "half": 0.5, "exact": 1.1, "day": "2026-01-02", "kind": "x",
        "text": "é",
    }  # fmt: skip
    assert second == features | {
        "whole": None, "flag": False, "real": 0.1, "half": None, "exact": None, "day": None, "kind": None,
        "text": None,
    }  # fmt: skip
