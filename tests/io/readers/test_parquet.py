"""Parquet columns whose types Arrow narrows or cannot read: INT96 timestamps, and integers of more than 64 bits."""

from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

import kafeat
from kafeat.errors import DataError
from kafeat.io.readers.wide_integers import wide_integers
from tests.io.tables import open_reader

EPOCH = datetime(1970, 1, 1)
LAST, BEFORE = datetime(9999, 12, 31, 23, 59, 59, 999999), datetime(1582, 10, 4, 0, 0, 0, 1)
FAR = [LAST, datetime(1, 1, 1), BEFORE, None, EPOCH]
ENDS = [2**63 - 1, -(2**63) + 1, 0, 1, -1]
"""Nanoseconds, the first two at the ends of their range."""
PARTS = {"kind": "date_parts", "columns": ["t"], "parts": ["year", "days"]}
TIMES = {"dtype": "float64", "columns": {"include": ["t", "x"]}, "steps": [PARTS, "impute"]}
OLD_ARROW = pytest.mark.skipif(
    int(pa.__version__.split(".")[0]) < 21, reason="this pyarrow refuses such times"
)
PLAIN = {"columns": {"include": ["x"]}, "steps": [{"kind": "standardize"}]}


def table(**columns: pa.Array) -> pa.Table:
    rows = len(next(iter(columns.values())))
    return pa.table({**columns, "x": np.arange(rows, dtype=float)})


def far_and_fine() -> pa.Table:
    return table(t=pa.array(FAR, pa.timestamp("us")), fine=pa.array(ENDS, pa.timestamp("ns")))


def write_int96(data: pa.Table, path: Path, **options: object) -> str:
    pq.write_table(data, path, use_deprecated_int96_timestamps=True, **options)
    return str(path)


def kept(path: str, keep: list[str], output: Path, **options: object) -> pa.Table:
    model = kafeat.fit(PLAIN, path)
    kafeat.transform(path, output, model=model, keep=keep, **options)
    return ds.dataset(output, exclude_invalid_files=True).to_table(columns=keep)


@OLD_ARROW
@pytest.mark.parametrize("group", [2, 100])
def test_int96_keeps_every_year_and_every_nanosecond(tmp_path, group):
    """Arrow reads INT96 as nanoseconds, of which 64 bits end in 2262, and wraps without an error."""
    data = far_and_fine()
    path = write_int96(data, tmp_path / "t.parquet", row_group_size=group)
    out = kept(path, ["fine", "t"], tmp_path / "out.parquet")
    assert out.equals(data.select(["fine", "t"]))


def test_parts_of_a_file_have_one_unit(tmp_path):
    """Only the last row needs nanoseconds; the parts before it have them, too."""
    data = table(t=pa.array([0, 1000, 2001], pa.timestamp("ns")))
    path = write_int96(data, tmp_path / "t.parquet")
    config = {**PLAIN, "chunk_rows": 1}
    kafeat.transform(path, tmp_path / "out", model=kafeat.fit(config, path), keep=["t"], rows_per_file=1)
    types = [pq.read_schema(part).field("t").type for part in sorted((tmp_path / "out").glob("*.parquet"))]
    assert types == [pa.timestamp("ns")] * 3


@OLD_ARROW
def test_times_of_int96_are_features_of_their_year(tmp_path):
    path = write_int96(far_and_fine(), tmp_path / "t.parquet")
    model = kafeat.fit(TIMES, path)
    output = tmp_path / "out.npy"
    kafeat.transform(path, output, model=model)
    there = [0, 1, 2, 4]
    days = [(FAR[row] - EPOCH) / timedelta(days=1) for row in there]
    _, years, got = np.load(output)[there].T
    assert years.tolist() == [FAR[row].year for row in there]
    assert got == pytest.approx(days, rel=1e-15)


@OLD_ARROW
@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_parts_of_other_units_give_the_same_features(tmp_path, unit):
    whole = pa.array([0, 1_600_000_000, -1, 86_400 * 365], pa.timestamp("s"))
    folder = tmp_path / "parts"
    folder.mkdir()
    data = table(t=whole)
    model = kafeat.fit(TIMES, data)
    write_int96(data, folder / "a.parquet")
    feather.write_feather(table(t=whole.cast(pa.timestamp(unit))), folder / "b.arrow")
    kafeat.transform(folder, tmp_path / "out", model=model, keep=["t"], output_format="parquet")
    one, other = (pq.read_table(tmp_path / "out" / f"{name}.parquet") for name in "ab")
    assert one.drop(["t"]).equals(other.drop(["t"]))
    assert one["t"].cast(pa.timestamp("ns")).equals(other["t"].cast(pa.timestamp("ns")))


def test_what_no_unit_holds_is_refused(tmp_path):
    both = table(t=pa.array([1, 0], pa.timestamp("ns")))
    path = tmp_path / "both.parquet"
    write_int96(both, path, use_dictionary=False, compression="none", write_statistics=False)
    # Nanoseconds of the day, then its Julian number: the second row gets that of 9999-12-31.
    stored = bytes(8) + (2_440_588).to_bytes(4, "little")
    assert path.read_bytes().count(stored) == 1
    path.write_bytes(path.read_bytes().replace(stored, bytes(8) + (5_373_484).to_bytes(4, "little")))
    message = r"row 2 .*column 't': expected .* digits below a microsecond, got 9999-12-31T00:00:00"
    with pytest.raises(DataError, match=message):
        kept(str(path), ["t"], tmp_path / "out.parquet")
    with pytest.raises(DataError, match=message):
        kafeat.fit(TIMES, path)
    kafeat.fit(PLAIN, path)


def test_a_day_beyond_microseconds_is_refused(tmp_path):
    path = tmp_path / "t.parquet"
    plain = {"use_dictionary": False, "compression": "none", "write_statistics": False}
    write_int96(table(t=pa.array([0, 86_400], pa.timestamp("s"))), path, **plain)
    stored = bytes(8) + (2_440_589).to_bytes(4, "little")
    path.write_bytes(path.read_bytes().replace(stored, bytes(8) + (2**32 - 1).to_bytes(4, "little")))
    told = r"row 2 .* column 't': expected .* microseconds can hold, got 11\d{6}-"
    with pytest.raises(DataError, match=told):
        kafeat.fit(TIMES, path)


@pytest.fixture
def wide(tmp_path: Path) -> Path:
    """Files with columns of 128 bits, as Polars writes them, beside others whose types only its schema tells."""
    days = pl.Series([timedelta(1), timedelta(2), timedelta(3)], dtype=pl.Duration("us"))
    wider = getattr(pl, "UInt128", None) or pytest.skip("this Polars has no such integers")
    lists = pl.Series([[1], [2], []], dtype=pl.List(wider))
    wide = pl.Series([1, 2, 2**100], dtype=pl.Int128)
    frame = pl.DataFrame({"x": [1.0, 2.0, 4.0], "i": wide, "l": lists, "d": days})
    frame.write_parquet(tmp_path / "w.parquet")
    frame.write_ipc(tmp_path / "w.arrow")
    frame.write_ipc_stream(tmp_path / "w.arrows", compat_level=pl.CompatLevel.oldest())
    return tmp_path


def test_a_wide_integer_is_no_obstacle_to_other_columns(wide):
    path = str(wide / "w.parquet")
    with open_reader(path) as reader:
        assert {one.kind for one in reader.fields[1:]} == {"other"}
        assert [one.spelled for one in reader.fields[1:]] == ["int128", "uint128", "duration[us]"]
    without = kafeat.fit({"steps": ["standardize"]}, path)
    assert without.columns.names == ("x",)
    assert kept(path, ["d", "x"], wide / "out.parquet").equals(pa.table(pl.read_parquet(path)[["d", "x"]]))


@pytest.mark.parametrize(("column", "kind"), [("i", "int128"), ("l", "uint128")])
def test_a_wide_integer_that_is_asked_for_is_named(wide, column, kind):
    path, output = str(wide / "w.parquet"), wide / "out.parquet"
    with pytest.raises(DataError, match=rf"w.parquet: column '{column}': expected numbers, got {kind}"):
        kafeat.fit({"columns": {"include": [column]}, "steps": ["standardize"]}, path)
    message = rf"column '{column}': expected a type that Arrow can read, got {kind}; leave it out, or cast"
    with pytest.raises(DataError, match=message):
        kept(path, [column], output)
    with pytest.raises(DataError, match=message):
        kafeat.fit(PLAIN, path, column)
    assert not output.exists()


@pytest.mark.parametrize("name", ["w.arrow", "w.arrows"])
def test_arrow_names_a_wide_integer(wide, name):
    told = rf"{name}: column 'i': expected a type that Arrow can read, got int128"
    with pytest.raises(DataError, match=told):
        kafeat.fit(PLAIN, wide / name)


def test_a_frame_names_its_wide_integers(wide):
    with pytest.raises(DataError, match="in i, l; convert the column, or leave it out"):
        kafeat.fit(PLAIN, pl.read_parquet(wide / "w.parquet"))


def test_damaged_schemas_are_left_to_arrow(wide):
    data = (wide / "w.arrows").read_bytes()
    message = data[: 8 + int.from_bytes(data[4:8], "little")]
    assert dict(wide_integers(message).columns) == {"i": "int128", "l": "uint128"}
    rng = np.random.default_rng(0)
    for _ in range(2000):
        damaged = bytearray(message)
        for place in rng.integers(len(message), size=3):
            damaged[place] = rng.integers(256)
        found = wide_integers(bytes(damaged[: rng.integers(len(message) + 1)]))
        assert len(found.narrowed(message)) == len(message)
