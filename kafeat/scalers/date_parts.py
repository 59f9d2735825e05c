"""Times as numbers: year, month, weekday, hour and others, on circles if wanted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
from pydantic import AfterValidator, Field

from kafeat.contract.name_patterns import ColumnNames, places_of
from kafeat.contract.step import AS_TUPLE, Sample, parameter, refuse_parameter
from kafeat.contract.traits import ColumnTraits, Traits
from kafeat.errors import DataError, InvalidValueError, quoted
from kafeat.io.columns.dialect import KEEP, UTC
from kafeat.scalers._columns import ColumnCoder, others
from kafeat.types import Array, ArrayOf, Floats, Shapes, State

Part = Literal["year", "month", "day", "day_of_year", "weekday", "hour", "minute", "second", "days"]
PERIODS: Mapping[str, int] = {
    "month": 12, "day": 31, "day_of_year": 366, "weekday": 7, "hour": 24, "minute": 60, "second": 60,
}  # fmt: skip
"""The period of each part that recurs, which is also the number of its values."""
FIRST = {"month": 1, "day": 1, "day_of_year": 1}
"""The first value of a part, if it is not 0."""
EARLIEST, LATEST = -62_135_596_800.0, 253_402_300_800.0
"""The years 1 to 9999, in seconds since 1970."""
_DAY = 86_400


def _check_timezone(zone: str) -> str:
    if zone not in (KEEP, UTC):
        from kafeat.io.columns.times import check_timezone  # importing pyarrow is slow

        check_timezone(zone)
    return zone


class DateParts(ColumnCoder):
    """part(t) for a time t, or cos 2πs and sin 2πs with s = (part(t) − first)/period.

    Naming columns here makes them features. With `timezone: keep`, a text has the hour that is written, whatever offset
    follows it, and a timestamp with a zone has the hour in its zone.

    `month` (1 to 12), `day` (1 to 31), `day_of_year` (1 to 366), `weekday` (0 is Monday), `hour`, `minute` and `second`
    recur: with `cyclic`, each of these parts is put on a circle, where December is next to January. `year` does not
    recur, nor do `days`, the days since 1970-01-01 with their fraction.

    Outputs: the columns that are not named, then the parts of each named one. A missing time has missing parts, which
    `impute` fills. Only steps that keep the names of columns may come before it.
    """

    columns: ColumnNames = parameter((), "the columns of times, by name or pattern")
    parts: Annotated[tuple[Part, ...], Field(min_length=1), AS_TUPLE] = parameter(
        ("year", "month", "day", "weekday", "hour"), "the parts of each time, in this order"
    )
    cyclic: bool = parameter(False, "make cosine and sine of each part that recurs")
    timezone: Annotated[str, AfterValidator(_check_timezone)] = parameter(
        KEEP,
        "the zone to which times with an offset or a zone are converted, such as America/New_York, or keep",
    )

    @property
    def traits(self) -> Traits:
        return replace(super().traits, columns=ColumnTraits(times=dict.fromkeys(self.columns, self.timezone)))

    def check_parameters(self) -> None:
        for part in self.parts:
            if self.parts.count(part) > 1:
                refuse_parameter("parts", "every part once", part)

    def widths(self, state: State) -> list[int]:
        width = sum(2 if self.cyclic and part in PERIODS else 1 for part in self.parts)
        return [width] * len(state["columns"])

    def fit(self, sample: Sample, rng: np.random.Generator) -> State:
        places = places_of(self.kind, self.columns, sample.names)
        for j in places:
            _refuse_outside(sample.X[:, j], int(j))
            _refuse_other_numbers(sample.X[:, j], "" if sample.names is None else sample.names[j])
        return {"columns": places}

    def state_shapes(self, state: State, n_features_in: int) -> Shapes:
        return {"columns": ArrayOf((np.size(state.get("columns", ())),), "int64", below=n_features_in)}

    def scale(self, state: State, X: Floats) -> Floats:
        blocks = [X[:, others(state, X.shape[1])]]
        for j in state["columns"]:
            _refuse_outside(X[:, j], int(j))
            blocks.append(self._parts(X[:, j]).astype(X.dtype))
        return np.hstack(blocks)

    def _parts(self, seconds: Floats) -> npt.NDArray[np.float64]:
        known = ~np.isnan(seconds)
        time = np.where(known, seconds, 0.0).astype(np.float64)
        outputs: list[Array] = []
        for part in self.parts:
            values = part_of(time, part)
            if self.cyclic and part in PERIODS:
                angle = (values - FIRST.get(part, 0)) * (2.0 * np.pi / PERIODS[part])
                outputs += [np.cos(angle), np.sin(angle)]
            else:
                outputs.append(values)
        return np.where(known[:, None], np.column_stack(outputs), np.nan)


def part_of(seconds: npt.NDArray[np.float64], part: str) -> npt.NDArray[np.float64]:
    """Return a part, such as "month", of times in seconds since 1970."""
    whole = np.floor(seconds).astype(np.int64)
    days, second = np.divmod(whole, _DAY)
    date = days.astype("datetime64[D]")
    month, year = date.astype("datetime64[M]"), date.astype("datetime64[Y]")
    found: Any
    match part:
        case "year":
            found = year.astype(np.int64) + 1970
        case "month":
            found = month.astype(np.int64) % 12 + 1
        case "day":
            found = (date - month).astype(np.int64) + 1
        case "day_of_year":
            found = (date - year).astype(np.int64) + 1
        case "weekday":
            found = (days + 3) % 7  # 1970 began on a Thursday
        case "hour":
            found = second // 3600
        case "minute":
            found = second // 60 % 60
        case "second":
            found = second % 60
        case _:
            found = seconds / _DAY
    return np.asarray(found, dtype=np.float64)


def _refuse_outside(seconds: Floats, column: int) -> None:
    """Raise an error for numbers outside the years 1 to 9999, such as milliseconds since 1970."""
    bad = ~np.isnan(seconds) & ~((seconds >= EARLIEST) & (seconds < LATEST))
    if bad.any():
        row = int(bad.argmax())
        raise InvalidValueError(
            row, column, f"expected a time of the years 1 to 9999 in seconds since 1970, got {seconds[row]:g}"
        )


def _refuse_other_numbers(seconds: Floats, name: str | None) -> None:
    """Raise an error if numbers look like dates, such as 20240229 or 2024: they would be seconds since 1970."""
    seen = seconds[~np.isnan(seconds)]
    if not len(seen) or np.any(seen != np.floor(seen)):
        return
    year, month, day = seen // 10_000, seen // 100 % 100, seen % 100
    dates = (year >= 1900) & (year <= 2100) & (month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)
    years = (seen >= 1900) & (seen <= 2100)
    if dates.all() or years.all():
        raise DataError(
            f"date_parts: column {quoted(name or '')}: expected times, got numbers such as {seen[0]:.0f}, which are "
            "seconds since 1970: write dates as 2024-02-29"
        )
