"""The calendar in whole numbers of floating point, exact below 2⁵³.

Source of the calendar: Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms", civil_from_days: years begin in
March, so that a leap day is the last one of its year.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from kafeat.chain.chain import FittedStep
from kafeat.onnx.graph import Value, beside, where
from kafeat.scalers._columns import others
from kafeat.scalers.date_parts import EARLIEST, FIRST, LATEST, PERIODS, DateParts

_ERA = 146_097  # days of 400 years


def emit_date_parts(fitted: FittedStep, x: Value) -> Value:
    """The other columns, and the parts of every time beside them."""
    step, columns = cast(DateParts, fitted.step), fitted.state["columns"]
    kept = others(fitted.state, fitted.n_features_in)
    blocks = [x.columns(kept)] if len(kept) else []
    for column in columns:
        seconds = x.columns(np.array([column]))
        x.graph.refuse((seconds < EARLIEST) | (seconds >= LATEST))
        calendar = _Calendar(seconds)
        for part in step.parts:
            blocks += _outputs(calendar.part(part), part, step.cyclic and part in PERIODS)
    return beside(blocks) if blocks else x


def _outputs(value: Value, part: str, cyclic: bool) -> list[Value]:
    if not cyclic:
        return [value]
    angle = (value - float(FIRST.get(part, 0))) * (2.0 * np.pi / PERIODS[part])
    return [angle.cos(), angle.op("Sin")]


class _Calendar:
    """The operators of one column of times; NaN stays NaN in every part."""

    def __init__(self, seconds: Value) -> None:
        self._seconds = seconds
        whole = seconds.op("Floor")
        self._days = _quotient(whole, 86_400)
        self._second = whole - self._days * 86_400.0
        self._date()

    def part(self, part: str) -> Value:
        match part:
            case "weekday":
                return _remainder(self._days + 3.0, 7)
            case "hour":
                return _quotient(self._second, 3600)
            case "minute":
                return _remainder(_quotient(self._second, 60), 60)
            case "second":
                return _remainder(self._second, 60)
            case "days":
                return self._seconds / 86_400.0
            case "day_of_year":
                return self._day_of_year()
        return {"year": self._year, "month": self._month, "day": self._day}[part]

    def _date(self) -> None:
        """Set year, month and day."""
        shifted = self._days + 719_468.0
        era = _quotient(shifted, _ERA)
        day = shifted - era * float(_ERA)  # of the era, from 0
        leaps = _quotient(day, 1460) - _quotient(day, 36_524) + _quotient(day, 146_096)
        year = _quotient(day - leaps, 365)  # of the era
        from_march = day - (year * 365.0 + (_quotient(year, 4) - _quotient(year, 100)))
        month = _quotient(from_march * 5.0 + 2.0, 153)  # 0 is March
        start = _quotient(month * 153.0 + 2.0, 5)
        self._from_march = from_march
        self._day = from_march - start + 1.0
        after_december = _quotient(month, 10)
        self._month = month + 3.0 - after_december * 12.0
        self._year = year + era * 400.0 + after_december

    def _day_of_year(self) -> Value:
        """Days since 1 March, plus 60 and a leap day; in January and February, minus the 306 from March to December."""
        early = _quotient(self._from_march, 306)
        leap = _divides(4, self._year) + _divides(400, self._year) - _divides(100, self._year)
        march = self._from_march + 60.0 + leap
        january = self._from_march - 305.0
        return where(early > 0.0, january, march)


def _divides(divisor: int, x: Value) -> Value:
    """1 where x is a multiple of the divisor, and 0 elsewhere."""
    return _remainder(x, divisor).op("Equal", 0.0).cast(x.graph.dtype)


def _quotient(x: Value, divisor: int) -> Value:
    """⌊x/divisor⌋: the rounded quotient of whole numbers is below the next whole number if the exact one is."""
    return (x / float(divisor)).op("Floor")


def _remainder(x: Value, divisor: int) -> Value:
    return x - _quotient(x, divisor) * float(divisor)
