"""What a fit says of columns that may not be meant, on stderr; nothing is refused for it."""

import subprocess
import sys
from pathlib import Path

import pytest

from kafeat.io.names import are_numbers

KAFEAT = str(Path(sys.executable).with_name("kafeat"))
CONFIG = "columns: {exclude: [label]}\nsteps: [{kind: minmax}]\n"


def said(folder, text, *options, config=CONFIG):
    (folder / "c.yaml").write_text(config)
    (folder / "x.csv").write_text(text)
    command = [KAFEAT, "fit", "--config", "c.yaml", "x.csv", "m.joblib", *options]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert (folder / "m.joblib").exists() == (done.returncode == 0)
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    ("text", "options", "expected"),
    [
        ("a,label\n1,2\n2,3\n", (), ""),
        ("a,y\n1,2\n2,3\n", ("--label", "y"), ""),
        (
            "a,target\n1,2\n2,3\n", (),
            "note: x.csv: nothing was left out as 'label' (columns.exclude): the file has no such column\n",
        ),
        ("a,target\n1,2\n2,3\n", ("--quiet",), ""),
        (
            ",a,label\n0,1,2\n1,2,3\n", (),
            "note: x.csv: the column without a name is taken for names of rows, and is no feature\n",
        ),
        (
            "3,1,label\n1,2,0\n2,3,0\n", (),
            "",  # one name is none
        ),
        ("1,2\n1,2\n2,3\n", ("--no-header",), ""),
    ],
)  # fmt: skip
def test_what_is_said(tmp_path, text, options, expected):
    assert said(tmp_path, text, *options) == (0, expected)


def test_a_row_in_the_place_of_names(tmp_path):
    code, errors = said(tmp_path, "0.5,0.25\n1,2\n2,3\n", config="steps: [{kind: minmax}]\n")
    assert code == 0
    assert "the names of the columns are numbers (0.5, 0.25, …); if the first line is a row" in errors


def test_a_row_in_the_place_of_names_that_cannot_stand(tmp_path):
    code, errors = said(tmp_path, "0.5,0.5\n1,2\n2,3\n", config="steps: [{kind: minmax}]\n")
    assert code == 3
    assert (
        "expected one column of that name, got 2; rename one; is the first line a row (--no-header)?"
        in errors
    )


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["0", "1", "2"], False),
        (["400.5", "401", "401.5"], False),
        (["0", "0"], True),
        (["2", "1"], True),
        (["7"], True),
        (["a", "1"], False),
        (["nan", "1"], True),
    ],
)
def test_names_that_rise_are_names(names, expected):
    assert are_numbers(names) is expected


def test_columns_are_named_with_v(tmp_path):
    _, errors = said(tmp_path, "a,label\n1,2\n2,3\n", "-v")
    assert "columns: a\n" in errors


@pytest.mark.parametrize("name", ["other.parquet", "x.CSV", "a.tsv.gz", "s3://bucket/x.arrow"])
def test_a_table_is_not_replaced_by_a_model(tmp_path, name):
    (tmp_path / "c.yaml").write_text(CONFIG)
    (tmp_path / "x.csv").write_text("a,label\n1,2\n")
    command = [KAFEAT, "fit", "--config", "c.yaml", "x.csv", name]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2
    assert f"{name}: expected the name of a model, as map.joblib, got that of a table" in done.stderr
