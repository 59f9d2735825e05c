"""Rows without a label are left out if that is asked for: a file then gives what it gives without these rows."""

from datetime import date
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kafeat
from kafeat.errors import DataError, UsageError
from kafeat.io.readers.memory import reader_of
from kafeat.io.readers.views import LabelledReader
from kafeat.study.models import score_predictions

CONFIG = {"steps": [{"kind": "standardize"}, {"kind": "fourier", "n_components": 16}, {"kind": "ridge"}]}


def tables(folder: Path, ending: str, missing: object) -> tuple[str, str]:
    """A table in which each seventh row has no label, and the same without these rows."""
    rng = np.random.default_rng(3)
    x, w = rng.normal(size=300).round(3), rng.integers(0, 3, 300)
    y = [missing if i % 7 == 2 else ("a" if x[i] > 0 else "b") for i in range(300)]
    names = ("full", "part")
    for name, rows in zip(names, (range(300), [i for i in range(300) if i % 7 != 2]), strict=True):
        columns = {"x": x[list(rows)], "w": w[list(rows)], "y": [y[i] for i in rows]}
        if ending == "csv":
            lines = [f"{a},{b},{c or ''}" for a, b, c in zip(*columns.values(), strict=True)]
            (folder / f"{name}.csv").write_text("\n".join(["x,w,y", *lines]) + "\n")
        else:
            pq.write_table(pa.table(columns), folder / f"{name}.parquet", row_group_size=50)
    return str(folder / f"full.{ending}"), str(folder / f"part.{ending}")


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("ending", "missing"), [("csv", None), ("csv", "  "), ("parquet", None), ("parquet", "")]
)
def test_rows_without_a_label_are_left_out(tmp_path, ending, missing):
    full, part = tables(tmp_path, ending, missing)
    with pytest.raises(DataError, match=r"row 3 .*label 'y': .*--drop-unlabelled leaves such rows out"):
        kafeat.fit(CONFIG, full, label="y", weight="w")
    fitted = kafeat.fit(CONFIG, full, label="y", weight="w", drop_unlabelled=True)
    alone = kafeat.fit(CONFIG, part, label="y", weight="w")
    X = np.linspace(-2.0, 2.0, 9)[:, None]
    assert fitted.predict_proba(X).tobytes() == alone.predict_proba(X).tobytes()
    assert fitted.provenance.sources[0].rows == alone.provenance.sources[0].rows == 257
    fitted.save(tmp_path / "m.joblib")
    [record] = score_predictions([str(tmp_path / "m.joblib")], full, ("y",), drop_unlabelled=True)
    assert record.about["rows_test"] == 257


def test_messages_name_the_rows_of_the_file(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("x,y\n1,a\n2,\n3,a\n4,\nword,b\n6,b\n7,a\n")
    with pytest.raises(DataError, match=r"x\.csv: row 5 .*column 'x': expected a number, got 'word'"):
        kafeat.fit(CONFIG, path, label="y", drop_unlabelled=True)
    path.write_text("x,w,y\n1,1,a\n2,1,\n3,1,a\n4,,\n5,-1,b\n6,1,b\n")
    with pytest.raises(DataError, match=r"row 5 \(index 4\), weight 'w': expected 0 or a number"):
        kafeat.fit(CONFIG, path, label="y", weight="w", drop_unlabelled=True)


@pytest.mark.parametrize(
    ("value", "none"), [(1.0, float("nan")), (1, None), (True, None), ("a", " "), (date(2024, 2, 29), None)]
)
def test_a_view_tells_where_its_rows_are(value, none):
    labels = [value, None, none, value, value, None, *[value] * 3, None]
    table = pa.table({"x": np.arange(10.0), "y": labels})
    view = LabelledReader(reader_of(table), ["y"])
    chunks = list(view.chunks(kafeat.fit({"steps": ["standardize"]}, table.select(["x"])).columns, ["y"], 4))
    kept = [0, 3, 4, 6, 7, 8]
    assert [x for chunk in chunks for x in chunk.matrix(np.dtype("float64"))[:, 0]] == kept
    assert [chunk.row_number(i) for chunk in chunks for i in range(chunk.rows)] == kept
    assert [view.locate(i)[1] for i in range(6)] == kept
    assert [chunk.start for chunk in chunks] == [0, 2, 5]
    assert view.dropped == 4


def test_options_that_have_no_effect_are_refused(tmp_path):
    full, _ = tables(tmp_path, "csv", None)
    with pytest.raises(UsageError, match="--drop-unlabelled: expected columns of labels"):
        kafeat.fit({"steps": ["standardize"]}, full, drop_unlabelled=True)
    maps = {"steps": [{"kind": "standardize"}]}
    with pytest.raises(UsageError, match="--weight: expected a config that ends in a predictor"):
        kafeat.evaluate(config=maps, data=full, label="y", weight="w", drop_unlabelled=True)
