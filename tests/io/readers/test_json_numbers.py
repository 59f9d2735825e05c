"""Numbers of JSON in a model that was fitted on decimal commas: their mark is a point, whatever that of text is."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kafeat
from kafeat.errors import DataError
from kafeat.io.options import InputOptions

X = np.column_stack([np.arange(-6, 6) / 8, 1000.0 * np.arange(12)])
EXPECTED = (X - X.mean(axis=0)) / X.std(axis=0)
CONFIG = {"dtype": "float64", "steps": [{"kind": "standardize"}]}


def lines(path: Path, rows: list[str]) -> Path:
    path.write_text("".join(f"{row}\n" for row in rows))
    return path


def comma(number: float) -> str:
    return f"{number:g}".replace(".", ",")


@pytest.fixture
def model(tmp_path: Path) -> kafeat.FeatureMap:
    rows = ["a;b", *(f"{comma(a)};{comma(b)}" for a, b in X)]
    return kafeat.fit(CONFIG, lines(tmp_path / "fit.csv", rows), reading=InputOptions(delimiter=";"))


FILES = {
    "numbers": lambda a, b: f'{{"a": {a}, "b": {b}}}',
    "numbers with exponents": lambda a, b: f'{{"a": {a:.3e}, "b": {b:.3e}}}',
    "text with commas": lambda a, b: f'{{"a": "{comma(a)}", "b": "{comma(b)}"}}',
    "both": lambda a, b: f'{{"a": {a}, "b": "{comma(b)}"}}' if a < 0 else f'{{"a": "{comma(a)}", "b": {b}}}',
}


@pytest.mark.parametrize("name", FILES)
def test_lines_of_json(name, model, tmp_path):
    source = lines(tmp_path / "x.jsonl", [FILES[name](a, b) for a, b in X])
    kafeat.transform(source, tmp_path / "z.npy", model=model)
    np.testing.assert_allclose(np.load(tmp_path / "z.npy"), EXPECTED, rtol=1e-12)
    for reading in (InputOptions(), InputOptions(decimal=",")):
        if name != "both" or reading.decimal == ",":
            fitted = kafeat.fit(CONFIG, source, reading=reading)
            np.testing.assert_allclose(fitted.transform(X), EXPECTED, rtol=1e-12)


def test_other_formats_and_tables_in_memory(model, tmp_path):
    table = pa.table({"a": X[:, 0], "b": X[:, 1]})
    pq.write_table(table, tmp_path / "x.parquet")
    np.save(tmp_path / "x.npy", X)
    for name in ("x.parquet", "x.npy"):
        kafeat.transform(tmp_path / name, tmp_path / "z.npy", model=model, overwrite=True)
        np.testing.assert_allclose(np.load(tmp_path / "z.npy"), EXPECTED, rtol=1e-12)
    for rows in (X, table, table.to_pandas()):
        np.testing.assert_allclose(model.transform(rows), EXPECTED, rtol=1e-12)


@pytest.mark.parametrize("written", ["z.csv", "z.parquet", "z.jsonl"])
def test_a_kept_column_is_a_copy(written, model, tmp_path):
    source = lines(tmp_path / "x.jsonl", [FILES["numbers"](a, b) for a, b in X])
    kafeat.transform(source, tmp_path / written, model=model, keep=["b", "a"])
    again = kafeat.fit({**CONFIG, "columns": {"include": ["a", "b"]}}, tmp_path / written)
    np.testing.assert_allclose(again.transform(X), EXPECTED, rtol=1e-12)
    if written == "z.jsonl":
        first = json.loads((tmp_path / written).read_text().splitlines()[0])
        assert (first["a"], first["b"]) == (X[0, 0], X[0, 1])


def test_text_with_a_point_is_still_unclear(model, tmp_path):
    source = lines(tmp_path / "x.jsonl", ['{"a": 0.5, "b": 1.0}', '{"a": "1.234", "b": 1.0}'])
    with pytest.raises(DataError, match=r"row 2 \(index 1\), column 'a': expected a number, got '1\.234'"):
        kafeat.transform(source, tmp_path / "z.csv", model=model)


def test_categories_that_are_numbers_are_found_in_every_format(tmp_path):
    halves = [0.5 + i % 3 for i in range(12)]
    rows = ["a;b", *(f"{comma(a)};{comma(b)}" for (a, _), b in zip(X, halves, strict=True))]
    config = {"dtype": "float64", "steps": [{"kind": "one_hot", "columns": ["b"]}]}
    fm = kafeat.fit(config, lines(tmp_path / "fit.csv", rows), reading=InputOptions(delimiter=";"))
    expected = np.column_stack([X[:, 0], np.eye(3)[np.arange(12) % 3]])
    lines(tmp_path / "x.jsonl", [FILES["numbers"](a, b) for (a, _), b in zip(X, halves, strict=True)])
    table = pa.table({"a": X[:, 0], "b": halves})
    pq.write_table(table, tmp_path / "x.parquet")
    np.save(tmp_path / "x.npy", np.column_stack([X[:, 0], halves]))
    for name in ("x.jsonl", "x.parquet", "x.npy"):
        kafeat.transform(tmp_path / name, tmp_path / "z.npy", model=fm, overwrite=True)
        np.testing.assert_allclose(np.load(tmp_path / "z.npy"), expected, rtol=1e-12)
    encoded = pa.table({"a": X[:, 0], "b": pa.array(halves).dictionary_encode()})
    for rows_in_memory in (table, encoded, np.load(tmp_path / "x.npy"), table.to_pandas()):
        np.testing.assert_allclose(fm.transform(rows_in_memory), expected, rtol=1e-12)
    told = "row 1 .*column 'b': expected a category, got null|expected one of the 3"
    with pytest.raises(DataError, match=told):
        fm.transform(pa.table({"a": [1.0], "b": pa.array([None], pa.float64())}))
