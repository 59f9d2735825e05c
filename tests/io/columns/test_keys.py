"""Equal values have equal bits, whatever is beside them in their chunk, and in whatever unit they are stored."""

from datetime import datetime, time
from decimal import Decimal

import pyarrow as pa
import pytest

from kafeat.io.columns.values import bits_or_text

LARGE = 2**53 + 1


def keys(values: list[object], kind: pa.DataType) -> list[object]:
    return bits_or_text(pa.chunked_array([pa.array(values, kind)])).tolist()


@pytest.mark.parametrize(("values", "kind"), [
    ([LARGE, LARGE - 1], pa.int64()),
    ([2**64 - 1, 2**64 - 2], pa.uint64()),
    ([Decimal(LARGE), Decimal(LARGE - 1)], pa.decimal128(38, 0)),
    ([Decimal(LARGE), Decimal(LARGE - 1)], pa.decimal128(38, 3)),
    ([Decimal("0.1"), Decimal("0.2")], pa.decimal128(38, 3)),
    ([True, False], pa.bool_()),
    (["a", "b"], pa.string()),
])  # fmt: skip
@pytest.mark.parametrize("other", [None, 2**70])
def test_neighbours_change_no_key(values, kind, other):
    other = Decimal(other) if other and pa.types.is_decimal(kind) else None
    alone, beside = keys(values, kind), keys([*values, other], kind)
    assert beside[:2] == alone
    assert len(set(beside)) == 3


def test_whole_numbers_of_all_types_have_one_key():
    types = (pa.int8(), pa.uint64(), pa.int64(), pa.float64(), pa.decimal128(5, 0), pa.decimal128(9, 2))
    assert {tuple(keys([1, 7, None], kind)) for kind in types} == {tuple(keys([1, 7, None], pa.int16()))}


@pytest.mark.parametrize("zone", [None, "UTC", "America/New_York"])
def test_times_of_all_units_have_one_key(zone):
    times = [datetime(2024, 2, 29, 12), datetime(1969, 12, 31, 23, 59, 59), None]
    found = {tuple(keys(times, pa.timestamp(unit, zone))) for unit in ("s", "ms", "us", "ns")}
    assert len(found) == 1
    finer = keys([1_001, 1_000, 1], pa.timestamp("ns", zone))
    assert len(set(finer)) == 3
    assert finer[1:2] == keys([1], pa.timestamp("us", zone))


def test_times_of_day_of_all_units_have_one_key():
    kinds = (pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns"))
    assert len({tuple(keys([time(0), time(23, 59, 59)], kind)) for kind in kinds}) == 1
