"""Folders such as `year=2024` name columns of the files in them, as pyarrow reads them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import kafeat
from kafeat.io.options import InputOptions
from kafeat.io.storage.location import parse_location
from tests.sizes import sampled

IMPUTE = {"kind": "impute", "strategy": "constant", "value": -1.0}


def written(folder: Path, names: list[str], suffix: str) -> Path:
    """Two rows of x in a file below each of these folders."""
    for i, name in enumerate(names):
        (folder / name).mkdir(parents=True)
        table = pa.table({"x": [10.0 * i, 10.0 * i + 1.0], "c": ["a", "b"]})
        path = folder / name / f"part{suffix}"
        if suffix == ".parquet":
            pq.write_table(table, path)
        elif suffix == ".csv":
            pc.write_csv(table, path)
        else:
            path.write_text("".join(f'{{"x": {row["x"]}, "c": "{row["c"]}"}}\n' for row in table.to_pylist()))
    return folder


@pytest.mark.parametrize("suffix", [".parquet", *sampled(".csv", ".jsonl")])
@pytest.mark.parametrize(("values", "kind"), [
    (["2023", "2024", "-5"], "number"), (["01001", "01002", "2A001"], "text"), (["007", "8"], "text"),
    (["1.5", "2"], "number"), (["2024", "x"], "text"), (["1", "__HIVE_DEFAULT_PARTITION__"], "number"),
    (["a%20b", "c"], "text"), (["2024-02-29", "2024-03-01"], "text"),
])  # fmt: skip
def test_keys_are_columns_of_numbers_or_text(
    tmp_path: Path, suffix: str, values: list[str], kind: str
) -> None:
    folder = written(tmp_path / "in", [f"k={value}/month={i}" for i, value in enumerate(values)], suffix)
    with InputOptions().open(parse_location(folder)) as source:
        assert {field.name: field.kind for field in source.fields} == {
            "x": "number", "c": "text", "k": kind, "month": "number",
        }  # fmt: skip
    numbers = kind == "number"
    config = {
        "steps": [IMPUTE] if numbers else [{"kind": "one_hot", "columns": ["k"], "unknown": "ignore"}, IMPUTE]
    }
    config |= {"dtype": "float64", "columns": {"exclude": ["c"]}}
    fm = kafeat.fit(config, folder)
    assert fm.columns.names == ("x", "k", "month")
    kafeat.transform(folder, tmp_path / "out", model=fm, keep=["k", "month"], jobs=1, output_format="parquet")
    schema = pa.schema([("k", pa.float64() if numbers else pa.string())])
    for path in sorted(folder.rglob(f"*{suffix}")):
        out = pq.read_table(
            tmp_path / "out" / path.relative_to(folder).with_suffix(".parquet"), partitioning=None
        )
        [keys] = {(row["k"], row["month"]) for row in out.select(["k", "month"]).to_pylist()}
        hive = ds.HivePartitioning(schema, null_fallback="__HIVE_DEFAULT_PARTITION__").parse(
            str(path.parent.relative_to(folder))
        )
        expected = ds.get_partition_keys(hive).get("k")
        assert keys[0] == expected
        features = np.column_stack([out[name] for name in out.column_names if name.startswith("f")])
        if numbers:
            assert features[0, 1] == (-1.0 if expected is None else expected)
        else:
            place = fm.columns.features[1].categories.values.index(expected)
            assert features[0, 2:].tolist() == np.eye(len(values))[place].tolist()


def test_a_column_of_the_file_wins_and_keys_that_some_parts_lack_are_none(tmp_path: Path) -> None:
    folder = written(tmp_path / "in", ["x=5/k=1", "x=6/k=2"], ".parquet")
    fm = kafeat.fit({"steps": [IMPUTE]}, folder)
    assert fm.columns.names == ("x", "k")
    assert fm.columns.names == kafeat.fit({"steps": [IMPUTE]}, folder, jobs=1).columns.names
    assert np.ptp(kafeat.fit({"steps": [IMPUTE]}, folder).column_ranges.high) > 0
    other = written(tmp_path / "other", ["k=1", "l=2"], ".parquet")
    assert kafeat.fit({"steps": [IMPUTE]}, other).columns.names == ("x",)
    assert kafeat.fit({"steps": [IMPUTE]}, other / "k=1" / "part.parquet").columns.names == ("x",)


def test_keys_are_labels_times_and_categories_of_tune(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    for i in range(3):
        for day in range(1, 9):
            path = folder / f"site={'abc'[i]}" / f"day=2024010{day}" / "p.csv"
            path.parent.mkdir(parents=True)
            path.write_text("x,y\n" + "".join(f"{j}.5,{j + 10 * i}.25\n" for j in range(6)))
    tuning = kafeat.tune(folder, "y", 16, trials=1, jobs=1)
    steps = {step["kind"]: step.get("columns") for step in tuning.config.to_plain()["steps"]}
    assert steps["one_hot"] == ["site"]
    assert tuning.fit().columns.dialect["dates"] in ({}, {"day": "%Y%m%d"})
    assert kafeat.tune(folder, "site", 16, trials=1, jobs=1).score_name == "log_loss"
