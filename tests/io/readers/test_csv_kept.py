"""Kept columns of CSV in typed outputs: numbers where these say all that the text says, else text, or an error."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kafeat
from kafeat.errors import DataError
from kafeat.io.readers.csv_sniff import inferred
from kafeat.model.feature_map import FeatureMap
from tests.jobs.files import transform_file

FIRST = 1100
"""Rows, with a note of 1,000 characters each, that are more than the first look at a file."""


@pytest.fixture(scope="module")
def fm() -> FeatureMap:
    return kafeat.fit({"steps": [{"kind": "projection", "n_components": 1}]}, pa.table({"x": [1.0, 2.0]}))


def kept(fm: FeatureMap, folder: Path, values: list[str], ending: str) -> list[object]:
    (folder / "in.csv").write_text("x,k,note\n" + "".join(f"1,{value},{'n' * 1000}\n" for value in values))
    out = folder / f"out.{ending}"
    transform_file(fm, folder / "in.csv", out, keep=["k"])
    if ending == "jsonl":
        return [json.loads(line)["k"] for line in out.read_text().splitlines()]
    return list(
        (pa.ipc.open_file(out).read_all() if ending == "arrow" else pq.read_table(out))["k"].to_pylist()
    )


@pytest.mark.parametrize(("values", "kind"), [
    (["1", "-2", ""], "int64"),
    (["9007199254740993", "9223372036854775807"], "int64"),
    (["9223372036854775808", "1"], "float64"),
    (["1.5", "2", ""], "float64"),
    (["1.50", "-0.0", "-0", ".5", "5.", "1e5", "1E-7"], "float64"),
    (["nan", "NaN", "inf", "-Infinity", "1"], "float64"),
    (["0.1", "0.30000000000000004", "5e-324", "1.7976931348623157e308"], "float64"),
    (["1.000000000000000056e-01", "0.1000000000000000055511"], "float64"),  # as np.savetxt writes 0.1
    (["0.100000000000000000000000000"], "float64"),
    (["1.5", "9007199254740993"], "string"),
    (["1.5", "9007199254740993.0"], "string"),
    (["1.5", "9007199254740992.0"], "float64"),
    (["0.12345678901234567890"], "string"),
    (["1.5", "1e400"], "string"),
    (["1.5", "1e-400"], "string"),
    (["1.5", "-2.5e-324"], "string"),
    (["1.5", "1e99999999999999999999"], "string"),
    (["1.5", "0." + "3" * 2000], "string"),
    (["nan(1)"], "string"),
    (["007", "1"], "string"),
    (["1", "-00.5"], "string"),
    (["+49301234567", "1"], "string"),
    (["+1.5"], "float64"),
    ([" 5", "5"], "string"),
    (["5 ", "5.5"], "string"),
    (["1_000"], "string"),
    (["0x10"], "string"),
    (["1,5"], "string"),
    (["٣"], "string"),
    (["true", "false"], "string"),
    (["2024-01-31"], "string"),
    (["12:30:00"], "string"),
    (["2024-01-31T12:30:00+01:00"], "string"),
    (["1", "null"], "string"),
    (["1", "NA"], "string"),
    (["", ""], "string"),
    ([" "], "string"),
    ([], "string"),
])  # fmt: skip
def test_a_type_is_inferred_only_where_it_loses_nothing(values, kind):
    assert inferred(values) == kind


@pytest.mark.parametrize("ending", ["arrow", "parquet", "jsonl"])
def test_text_that_is_no_number_stays_as_it_is(fm, tmp_path, ending):
    values = ["1.5", "9007199254740993", "007", " 5", "1e400", "null", "NaN", ""]
    assert kept(fm, tmp_path, values, ending) == values


@pytest.mark.sampled
@pytest.mark.parametrize("ending", ["arrow", "jsonl"])
@pytest.mark.parametrize(
    "late", ["9007199254740993", "1e400", "1e-400", "0.1234567890123456789", "007.5", "+5", " 5", "x"]
)
def test_a_late_value_that_the_type_would_change_is_refused(fm, tmp_path, late, ending):
    message = rf"row {FIRST + 1} \(index {FIRST}\), column 'k': expected float64 as in the first rows, got '{late[0]}"
    with pytest.raises(DataError, match=message.replace("+", r"\+") + ".*; a CSV output keeps it as it is"):
        kept(fm, tmp_path, ["1.5"] * FIRST + [late], ending)
    assert not (tmp_path / f"out.{ending}").exists()


def test_doubles_come_back_whatever_their_digits(fm, tmp_path):
    """Every way to write a double such that it reads back keeps the column a number."""
    bits = np.random.default_rng(0).integers(0, 2**64, 2000, dtype=np.uint64)
    doubles = bits.view(np.float64)
    doubles = doubles[np.isfinite(doubles)]
    for spell in (repr, "{:.16e}".format, "{:.18e}".format, "{:.25g}".format):
        assert kept(fm, tmp_path, [spell(double) for double in doubles.tolist()], "arrow") == doubles.tolist()
