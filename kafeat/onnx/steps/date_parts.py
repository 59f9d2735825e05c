"""The calendar in whole numbers of floating point, exact below 2⁵³.

Source of the calendar: Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms", civil_from_days: years begin in
March, so that a leap day is the last one of its year.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from kafeat.chain.chain import FittedStep
from kafeat.onnx.graph import Graph, Value
from kafeat.scalers.date_parts import EARLIEST, FIRST, LATEST, PERIODS, DateParts

_ERA = 146_097  # days of 400 years


def emit(graph: Graph, fitted: FittedStep, x: Value) -> Value:
    """The other columns, and the parts of every time beside them."""
    step, columns = cast(DateParts, fitted.step), fitted.state["columns"]
    others = np.setdiff1d(np.arange(fitted.n_features_in), columns)
    blocks = [graph.columns(x, others)] if len(others) else []
    for column in columns:
        seconds = graph.columns(x, np.array([column]))
        graph.refuse(
            graph.op("Or", graph.op("Less", seconds, EARLIEST), graph.op("GreaterOrEqual", seconds, LATEST))
        )
        calendar = _Calendar(graph, seconds)
        for part in step.parts:
            blocks += _outputs(graph, calendar.part(part), part, step.cyclic and part in PERIODS)
    return graph.beside(blocks) if blocks else x


def _outputs(graph: Graph, value: Value, part: str, cyclic: bool) -> list[Value]:
    if not cyclic:
        return [value]
    angle = graph.op("Mul", graph.op("Sub", value, float(FIRST.get(part, 0))), 2.0 * np.pi / PERIODS[part])
    return [graph.cos(angle), graph.op("Sin", angle)]


class _Calendar:
    """The operators of one column of times; NaN stays NaN in every part."""

    def __init__(self, graph: Graph, seconds: Value) -> None:
        self._graph, self._seconds = graph, seconds
        whole = graph.op("Floor", seconds)
        self._days = self._quotient(whole, 86_400)
        self._second = self._sub(whole, self._times(self._days, 86_400))
        self._date()

    def part(self, part: str) -> Value:
        match part:
            case "weekday":
                return self._remainder(self._add(self._days, 3), 7)
            case "hour":
                return self._quotient(self._second, 3600)
            case "minute":
                return self._remainder(self._quotient(self._second, 60), 60)
            case "second":
                return self._remainder(self._second, 60)
            case "days":
                return self._graph.op("Div", self._seconds, 86_400.0)
            case "day_of_year":
                return self._day_of_year()
        return {"year": self._year, "month": self._month, "day": self._day}[part]

    def _date(self) -> None:
        """Set year, month and day."""
        shifted = self._add(self._days, 719_468)
        era = self._quotient(shifted, _ERA)
        day = self._sub(shifted, self._times(era, _ERA))  # of the era, from 0
        leaps = self._add(
            self._sub(self._quotient(day, 1460), self._quotient(day, 36_524)), self._quotient(day, 146_096)
        )
        year = self._quotient(self._sub(day, leaps), 365)  # of the era
        from_march = self._sub(
            day,
            self._add(self._times(year, 365), self._sub(self._quotient(year, 4), self._quotient(year, 100))),
        )
        month = self._quotient(self._add(self._times(from_march, 5), 2), 153)  # 0 is March
        start = self._quotient(self._add(self._times(month, 153), 2), 5)
        self._from_march = from_march
        self._day = self._add(self._sub(from_march, start), 1)
        after_december = self._quotient(month, 10)
        self._month = self._sub(self._add(month, 3), self._times(after_december, 12))
        self._year = self._add(self._add(year, self._times(era, 400)), after_december)

    def _day_of_year(self) -> Value:
        """Days since 1 March, plus 60 and a leap day; in January and February, minus the 306 from March to December."""
        early = self._quotient(self._from_march, 306)
        leap = self._sub(
            self._add(self._divides(4, self._year), self._divides(400, self._year)),
            self._divides(100, self._year),
        )
        march = self._add(self._add(self._from_march, 60), leap)
        january = self._sub(self._from_march, 305)
        is_early = self._graph.op("Greater", early, 0.0)
        return self._graph.op("Where", is_early, january, march)

    def _divides(self, divisor: int, x: Value) -> Value:
        """1 where x is a multiple of the divisor, and 0 elsewhere."""
        return self._graph.cast(self._graph.op("Equal", self._remainder(x, divisor), 0.0), self._graph.dtype)

    def _add(self, x: Value, y: Value | int) -> Value:
        return self._graph.op("Add", x, y if isinstance(y, str) else float(y))

    def _sub(self, x: Value, y: Value | int) -> Value:
        return self._graph.op("Sub", x, y if isinstance(y, str) else float(y))

    def _times(self, x: Value, factor: int) -> Value:
        return self._graph.op("Mul", x, float(factor))

    def _quotient(self, x: Value, divisor: int) -> Value:
        """⌊x/divisor⌋: the rounded quotient of whole numbers is below the next whole number if the exact one is."""
        return self._graph.op("Floor", self._graph.op("Div", x, float(divisor)))

    def _remainder(self, x: Value, divisor: int) -> Value:
        return self._sub(x, self._times(self._quotient(x, divisor), divisor))
