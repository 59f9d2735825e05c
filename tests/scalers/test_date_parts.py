"""Parts of times against Python's calendar, the same from every format, and what is no time."""

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kafeat
from kafeat.errors import ConfigError, DataError
from kafeat.scalers.date_parts import PERIODS, DateParts, part_of
from tests.jobs.files import transform_file

PARTS = ["year", "month", "day", "day_of_year", "weekday", "hour", "minute", "second", "days"]
EPOCH = datetime(1970, 1, 1)
MICROSECONDS = pa.timestamp("us")
TIMES = [
    datetime(1970, 1, 1), datetime(1969, 12, 31, 23, 59, 59, 999_999), datetime(2024, 2, 29, 12, 30, 1, 500_000),
    datetime(2023, 12, 31, 0, 0, 59), datetime(2000, 2, 29), datetime(1900, 3, 1, 6), datetime(2100, 2, 28, 23, 59),
    datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59),
]  # fmt: skip


def config(cyclic=False, parts=PARTS, columns=("t",), timezone="keep", **more):
    step = {
        "kind": "date_parts", "columns": list(columns), "parts": parts, "cyclic": cyclic, "timezone": timezone,
    }  # fmt: skip
    return {"dtype": "float64", "steps": [step], **more}


def expected(time: datetime) -> list[float]:
    day_of_year = (time.date() - date(time.year, 1, 1)).days + 1
    clock = [time.hour, time.minute, time.second]
    days = (time - EPOCH) // timedelta(microseconds=1) / 86_400_000_000
    return [time.year, time.month, time.day, day_of_year, time.weekday(), *clock, days]


def table_of(times: list[datetime | None], kind: pa.DataType = MICROSECONDS) -> pa.Table:
    return pa.table({"n": np.arange(float(len(times))), "t": pa.array(times, kind)})


@given(st.datetimes(min_value=datetime(1, 1, 1)))
def test_every_part_is_that_of_pythons_calendar(time: datetime) -> None:
    fm_row = kafeat.fit(config(), table_of([EPOCH])).transform(table_of([time]))[0]
    # Seconds below 2^38 are read to an ulp, 2^-15, and days below 2^22 are rounded once in each way: to 2^-32.
    np.testing.assert_allclose(fm_row[1:], expected(time), rtol=0, atol=2**-15 / 86_400 + 2 * 2**-32)
    assert fm_row[1:-1].tolist() == expected(time)[:-1]


def test_circles_begin_at_the_first_value_and_have_the_length_of_the_period() -> None:
    fm = kafeat.fit(config(cyclic=True), table_of(TIMES))
    want = []
    for row in map(expected, TIMES):
        outputs: list[float] = []
        for part, value in zip(PARTS, row, strict=True):
            if part not in PERIODS:
                outputs.append(value)
                continue
            angle = 2 * np.pi * (value - (part in ("month", "day", "day_of_year"))) / PERIODS[part]
            outputs += [np.cos(angle), np.sin(angle)]
        want.append(outputs)
    Z = fm.transform(table_of(TIMES))
    assert fm.n_components == Z.shape[1] == 1 + 2 + 2 * 7
    # An angle below 2π has two roundings, and cosine and sine one each; days are of 2.9e6.
    eps = np.finfo(float).eps
    np.testing.assert_allclose(Z[:, 1:], want, rtol=4 * eps, atol=8 * np.pi * eps)


KINDS = [
    pa.timestamp("s"), pa.timestamp("ms"), pa.timestamp("us"), pa.timestamp("us", "Europe/Berlin"),
    pa.timestamp("us", "UTC"),
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_types_agree(kind: pa.DataType) -> None:
    """A time of a zone is an instant: its parts are those of the zone."""
    times = [time.replace(microsecond=0) for time in TIMES if time.year < 9999]
    zone = ZoneInfo(kind.tz or "UTC")
    local = [time.replace(tzinfo=UTC).astimezone(zone).replace(tzinfo=None) for time in times]
    want = kafeat.fit(config(), table_of(local)).transform(table_of(local)).tobytes()
    instants = table_of([time.replace(tzinfo=UTC) for time in times] if kind.tz else times, kind)
    assert kafeat.fit(config(), instants).transform(instants).tobytes() == want
    coded = instants.set_column(1, "t", instants["t"].combine_chunks().dictionary_encode())
    assert kafeat.fit(config(), instants).transform(coded).tobytes() == want


def test_dates_nanoseconds_and_plain_numbers_agree() -> None:
    days = [date(2024, 2, 29), date(1969, 7, 20), None]
    impute = {"kind": "impute", "strategy": "constant", "value": -1.0}
    recipe = {**config(), "steps": [*config()["steps"], impute]}
    fm = kafeat.fit(recipe, table_of(days, pa.date32()))
    want = fm.transform(table_of(days, pa.date32())).tobytes()
    seconds = [(day - date(1970, 1, 1)).days * 86_400 if day else None for day in days]
    for values in (
        pa.array(days, pa.date64()), pa.array(days, pa.date32()).cast(pa.timestamp("ns")),
        pa.array(seconds, pa.int64()), pa.array([str(day or "") for day in days]),
    ):  # fmt: skip
        assert fm.transform(pa.table({"n": np.arange(3.0), "t": values})).tobytes() == want, values.type
    last = pa.array([1_700_000_000_999_999_999], pa.timestamp("ns"))
    Z = fm.transform(pa.table({"n": [0.0], "t": last}))
    assert Z[0, 8] == 1_700_000_000 % 60  # a rounding must not carry it into the next second
    late, clock = (
        pa.array([1_700_000_000_999], pa.int64()).view(kind) for kind in (pa.date64(), pa.timestamp("ms"))
    )  # a date of milliseconds need not be midnight
    parts = [fm.transform(pa.table({"n": [0.0], "t": values})).tobytes() for values in (late, clock)]
    assert parts[0] == parts[1]


SPELLINGS = {
    "2024-02-29": datetime(2024, 2, 29), "2024-02-29 12": datetime(2024, 2, 29, 12),
    "2024-02-29T12:30": datetime(2024, 2, 29, 12, 30), " 2024-02-29 12:30:01 ": datetime(2024, 2, 29, 12, 30, 1),
    "2024-02-29T12:30:01.5": datetime(2024, 2, 29, 12, 30, 1, 500_000),
    "2024-02-29T12:30:01.123456789": datetime(2024, 2, 29, 12, 30, 1, 123_457),
    "2024-02-29T12Z": datetime(2024, 2, 29, 12), "2024-02-29T12:30Z": datetime(2024, 2, 29, 12, 30),
    "2024-02-29T23:30:00-02:30": datetime(2024, 3, 1, 2), "2024-03-01T01:00+0200": datetime(2024, 2, 29, 23),
    "2024-03-01T01:00:00+02": datetime(2024, 2, 29, 23), "2024-02-28T24:00:00Z": datetime(2024, 2, 29),
}  # fmt: skip


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("neighbour", ["2024-02-29", "2024-02-29T12:30:00Z", "2024-02-29T12:30:01.123456789"])
def test_text_is_read_alike_whatever_stands_beside_it(spelling: str, neighbour: str) -> None:
    fm = kafeat.fit(config(parts=PARTS[:-1], columns=("t",), timezone="UTC"), table_of([EPOCH]))
    Z = fm.transform(pa.table({"n": [0.0, 1.0, 2.0], "t": [spelling, neighbour, spelling]}))
    assert Z[0, 1:].tolist() == Z[2, 1:].tolist() == expected(SPELLINGS[spelling])[:-1]


REFUSED = [
    "yesterday", "29.02.2024", "2023-02-29", "2024-13-01", "2024-02-29T24:01", "2024-02-29T12:30+25:00", "24-02-29",
    "0000-01-01", "2024-02-29Z", "1e300", "inf", "true", "0x10", "1709164800", "2024-02-29T13:00 PM",
]  # fmt: skip


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_no_time_is_refused_with_its_place(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.csv"
    path.write_text(f"n,t\n1,2024-02-29\n2,{text}\n")
    place = r"row 2 \(index 1\), column 't': expected a time"
    if text in ("29.02.2024", "24-02-29"):  # a date, but not in the form of the others
        place = "column 't': expected times in one form"
    with pytest.raises(DataError, match=f"{place}.*, got "):
        kafeat.fit(config(), path)
    fm = kafeat.fit(config(), table_of([EPOCH]))
    with pytest.raises(DataError, match=r"x\.csv: row 2 \(index 1\), column 't': expected a time .*, got "):
        transform_file(fm, str(path), str(tmp_path / "z.npy"))


def test_a_missing_time_is_refused_or_filled() -> None:
    table = table_of([EPOCH, None, TIMES[2]])
    with pytest.raises(DataError, match=r"row 2 \(index 1\), column 't': expected a time .*, got null"):
        kafeat.fit(config(), table)
    for order in (1, -1):
        steps = [*config(True)["steps"], {"kind": "impute"}][::order]
        Z = kafeat.fit({"dtype": "float64", "steps": steps}, table).transform(table)
        assert np.isfinite(Z).all()
    marked = [{"kind": "missing_indicator"}, *config()["steps"], {"kind": "impute"}]
    np.testing.assert_array_equal(kafeat.fit({"steps": marked}, table).transform(table)[:, 1], [0, 1, 0])


def test_milliseconds_are_no_seconds() -> None:
    table = pa.table({"n": [0.0], "t": [1_709_164_800_000]})
    with pytest.raises(DataError, match=r"row 1 .*column 't': expected a time of the years 1 to 9999"):
        kafeat.fit(config(), table)


@pytest.mark.parametrize("numbers", [[20240229, 20231231], [2024, 1999]])
def test_numbers_that_look_like_dates_are_refused(numbers: list[int]) -> None:
    told = "column 't': expected times, got numbers such as 20.*: write dates as"
    with pytest.raises(DataError, match=told):
        kafeat.fit(config(), pa.table({"t": numbers}))


@pytest.mark.parametrize(("column", "got"), [
    (pa.array([True]), "bool"), (pa.array([[1.0, 2.0]], pa.list_(pa.float64(), 2)), "fixed_size_list"),
    (pa.array([5], pa.duration("s")), "duration"), (pa.array([5], pa.time32("s")), "time32"),
])  # fmt: skip
def test_columns_of_other_types_are_refused(column: pa.Array, got: str) -> None:
    with pytest.raises(DataError, match=f"column 't': expected timestamps, dates, ISO text or .*, got {got}"):
        kafeat.fit(config(), pa.table({"t": column}))
    fm = kafeat.fit(config(), table_of([EPOCH]))
    with pytest.raises(DataError, match=f"column 't': expected timestamps, dates, ISO text or .*, got {got}"):
        fm.transform(pa.table({"n": [1.0], "t": column}))


def test_times_are_features_only_if_they_are_named() -> None:
    table, own = table_of([EPOCH]), config()["steps"]
    assert kafeat.fit({"steps": ["standardize"]}, table).columns.names == ("n",)
    included = {"columns": {"include": ["t"]}, "steps": ["standardize"]}
    for recipe, told in (
        (included, "expected numbers, got timestamp.us.; date_parts makes numbers of it"),
        (config(columns=("tt",)), r"date_parts: expected the column 'tt' \(did you mean 't'\?\)"),
        ({"steps": ["standardize", *own]}, "standardize: column 't': expected plain numbers, got times, which only"),
        ({"steps": [{"kind": "one_hot", "columns": ["t"]}, *own]},
         "column 't': expected one step to read it, got one_hot and date_parts"),
    ):  # fmt: skip
        with pytest.raises(DataError, match=told):
            kafeat.fit(recipe, table)


def test_by_position(tmp_path: Path) -> None:
    fm = kafeat.fit(config(parts=["hour"], columns=("c1",)), np.array([[5.0, 7200.0]]))
    np.testing.assert_array_equal(fm.transform(table_of([datetime(2024, 2, 29, 7)])), [[0, 7]])
    told = "expected one column for every feature, because some are times, got lists"
    with pytest.raises(DataError, match=told):
        fm.transform(pa.table({"n": pa.array([[1.0, 2.0]], pa.list_(pa.float64(), 2))}))


def test_parts_of_configs_are_checked() -> None:
    with pytest.raises(ConfigError, match=r"steps\[0\]\.parts: expected every part once, got 'hour'"):
        kafeat.fit(config(parts=["hour", "hour"]), table_of([EPOCH]))


def test_parts_are_of_the_second_that_has_begun() -> None:
    assert part_of(np.array([-1e-6, 86_399.999_999]), "second").tolist() == [59.0, 59.0]
    assert DateParts().parts == ("year", "month", "day", "weekday", "hour")
