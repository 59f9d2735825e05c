"""All JSON that is read is bounded: damaged and hostile files are refused with their name, and block nothing."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from kafeat.errors import DataError
from kafeat.io.storage.location import parse_json, parse_location
from kafeat.io.storage.owner import NAME, Owner, owning
from tests.jobs.files import transform_parts, verify_file
from tests.recipes import fit_once

DEEP = b"[" * 100_000
DAMAGED = {
    "deep": DEEP, "deep and closed": b"[" * 1900 + b"]" * 1900, "deep mappings": b'{"a":' * 100_000,
    "deep below a key": b'{"parts": ' + DEEP, "not a number": b'{"parts": NaN}',
    "a number of 10,000 digits": b"1" * 10_000, "not UTF-8": b'{"parts": ["\xff"]}', "cut": b'{"parts": [',
    "empty": b"", "another value": b"null",
}  # fmt: skip
damaged = pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    X = np.random.default_rng(0).normal(size=(20, 3))
    fit_once({"steps": [{"kind": "fourier", "n_components": 8}]}, X).save("map.joblib")
    Path("in").mkdir()
    np.save("in/a.npy", X)
    return tmp_path


@pytest.mark.parametrize("content", [content for name, content in DAMAGED.items() if name != "another value"])
def test_the_reader_names_the_place_and_what_it_expected(content):
    with pytest.raises(DataError, match=r"^a\.json: expected a list, got: .* at line 1 column \d+$"):
        parse_json(content, "a.json", "a list")


def test_the_reader_reads_what_is_written(tmp_path):
    value = {"text": "\u0000ä\U0001f600", "numbers": [0, -1, 2**70, 0.1, 1e300], "more": [None, True, {}]}
    for ascii_only in (True, False):
        assert parse_json(json.dumps(value, ensure_ascii=ascii_only).encode(), "-", "JSON") == value


def test_a_file_without_end_is_not_read_to_its_end(folder, monkeypatch):
    monkeypatch.setattr("kafeat.io.storage.location.MOST_BYTES", 1 << 20)
    told = r"/dev/zero: expected a file made by .*, got: more than 1,048,576 bytes"
    with pytest.raises(DataError, match=told):
        verify_file("map.joblib", "in.npy", "out.npy", stats="/dev/zero")


@damaged
def test_a_damaged_lock_is_nobody_s(content, folder):
    Path("out").mkdir()
    Path("out", NAME).write_bytes(content)
    transform_parts("map.joblib", "in", "out")
    assert sorted(os.listdir("out")) == ["_kafeat.json", "a.npy"]


FIELDS = [*({"run": one} for one in ("x/../../y", 1, "../y")), {"host": ["x"]}, {"process": "\x1b[2J"}]


@pytest.mark.parametrize("field", FIELDS)
def test_a_lock_whose_fields_no_run_writes_is_nobody_s(field, tmp_path):
    """In an object store, the name of a second object is made of the run."""
    content = json.dumps({**json.loads(Owner.new().dumps()), **field}).encode()
    assert Owner.loads(content) is None
    (tmp_path / NAME).write_bytes(content)
    with owning(parse_location(tmp_path)) as token, token.publishing():
        pass
    assert os.listdir(tmp_path) == []


@damaged
def test_a_damaged_manifest_is_refused_and_can_be_replaced(content, folder):
    transform_parts("map.joblib", "in", "out")
    Path("out/_kafeat.json").write_bytes(content)
    told = r"out/_kafeat\.json: .*expected a manifest of kafeat, got: .*--overwrite"
    with pytest.raises(DataError, match=told):
        transform_parts("map.joblib", "in", "out", resume=True)
    assert sorted(os.listdir("out")) == ["_kafeat.json", "a.npy"]
    transform_parts("map.joblib", "in", "out", overwrite=True)
    transform_parts("map.joblib", "in", "out", resume=True)


@damaged
def test_a_damaged_list_is_refused(content, folder):
    Path("list.json").write_bytes(content)
    told = r"^list\.json: expected a list of names, or the manifest of a run, got"
    with pytest.raises(DataError, match=told):
        transform_parts("map.joblib", "list.json", "out")
    assert not Path("out").exists()


@damaged
def test_damaged_statistics_are_refused(content, folder):
    Path("stats.json").write_bytes(content)
    told = r"^stats\.json: expected a file made by kafeat transform --stats, got"
    with pytest.raises(DataError, match=told):
        verify_file("map.joblib", "in/a.npy", "in/a.npy", stats="stats.json")


@pytest.mark.parametrize(
    "keep", ["5", "null", "1e300", "true", "[[]]", '[], "dtype": "int3"', '[], "dtype": []']
)
def test_statistics_whose_fields_have_other_types_are_refused(keep, folder):
    text = f'{{"model": {{}}, "input": {{}}, "output": {{"keep": {keep}}}}}'
    Path("stats.json").write_text(text)
    told = "made by kafeat transform --stats, got another$|expected a dtype and columns in the record of the run, got"
    with pytest.raises(DataError, match=told):
        verify_file("map.joblib", "in/a.npy", "in/a.npy", stats="stats.json")
