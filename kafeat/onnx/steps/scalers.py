"""Scalers as operators. The calendar uses whole numbers in floating point, which are exact below 2⁵³.

Source of the calendar: Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms", civil_from_days. Years begin in
March, so that a leap day is the last one of its year.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from kafeat.chain.chain import FittedStep
from kafeat.onnx import elementary
from kafeat.onnx.elementary import positive_or_one, product
from kafeat.onnx.graph import Value, beside, where
from kafeat.scalers._columns import AffineScaler, others
from kafeat.scalers.date_parts import EARLIEST, FIRST, LATEST, PERIODS, DateParts
from kafeat.scalers.minmax import Minmax
from kafeat.scalers.normalize import Normalize
from kafeat.scalers.one_hot import outputs_of, width_of
from kafeat.scalers.quantile import Quantile
from kafeat.types import Floats

_ERA = 146_097  # number of days in 400 years


def emit_clip(fitted: FittedStep, x: Value) -> Value:
    """Return min(max(x, a), b)."""
    return x.op("Max", fitted.state["low"]).op("Min", fitted.state["high"])


def emit_impute(fitted: FittedStep, x: Value) -> Value:
    """Return x with each NaN replaced by the fill of its column."""
    return where(x.op("IsNaN"), fitted.state["fill"], x)


def emit_log1p(fitted: FittedStep, x: Value) -> Value:
    """Return log(1 + x) for x above −1."""
    del fitted
    x.graph.refuse(x <= -1.0)
    return elementary.log1p(x)


def emit_metric(fitted: FittedStep, x: Value) -> Value:
    """Return xL, or x times the weight of its column."""
    root = fitted.state["root"]
    return x * root if root.ndim == 1 else product(x, root.T)


def _affine(fitted: FittedStep, x: Value) -> Value:
    """Return (x − a)/b."""
    start, unit = (fitted.state[name] for name in cast(AffineScaler, fitted.step).learned)
    return (x - start) / unit


def emit_minmax(fitted: FittedStep, x: Value) -> Value:
    """Return (x − min)/(max − min), clipped to [0, 1] if requested."""
    moved = _affine(fitted, x)
    return moved.op("Clip", 0.0, 1.0) if cast(Minmax, fitted.step).clip else moved


def emit_normalize(fitted: FittedStep, x: Value) -> Value:
    """Return x/‖x‖. Dividing by the largest entry first keeps squares from overflowing or vanishing."""
    step = cast(Normalize, fitted.step)
    scaled = x / positive_or_one(abs(x).row_max())
    return scaled if step.norm == "max" else scaled / positive_or_one(_norms(step, scaled))


def _norms(step: Normalize, x: Value) -> Value:
    if step.norm == "l2":
        return (x * x).row_sum().op("Sqrt")
    sizes = abs(x)
    if step.norm == "l1":
        return sizes.row_sum()
    return sizes.op("Pow", step.homogeneity).row_sum().op("Pow", 1.0 / step.homogeneity)


def emit_one_hot(fitted: FittedStep, x: Value) -> Value:
    """Return the columns without codes, then one output per category: 1 for the row's code, 0 elsewhere."""
    columns = fitted.state["columns"]
    kept = others(fitted.state, fitted.n_features_in)
    parts = [x.columns(kept)] if len(kept) else []
    for column, outputs in zip(columns, outputs_of(fitted.state), strict=True):
        code = x.columns(np.array([column])).op("Round")
        ones = code.op("Equal", np.arange(float(len(outputs)))[None, :]).cast(x.graph.dtype)
        if width_of(outputs) < len(outputs):
            ones = ones.matmul(np.eye(width_of(outputs))[outputs])
        parts.append(ones)
    return beside(parts)


def emit_missing_indicator(fitted: FittedStep, x: Value) -> Value:
    """Return the rows, followed by columns that are 1 where a column is NaN, and 0 elsewhere."""
    columns = fitted.state["columns"]
    if not len(columns):
        return x
    return beside([x, x.columns(columns).op("IsNaN").cast(x.graph.dtype)])


def emit_pca(fitted: FittedStep, x: Value) -> Value:
    """Return the principal components (x − μ)V/σ."""
    state = fitted.state
    return product(x - state["mean"], state["components"]) / state["scale"]


def emit_power(fitted: FittedStep, x: Value) -> Value:
    """Return the Yeo–Johnson transformation, by logarithms as in the scaler."""
    exponent = fitted.state["exponent"]
    power = where(x < 0.0, 2.0 - exponent, exponent)
    linear = abs(power) < float(np.finfo(x.graph.dtype).eps)
    logs = elementary.log1p(abs(x))
    bent = elementary.expm1(power * logs) / where(linear, 1.0, power)
    bent = where(linear, logs, bent) * x.op("Sign")
    return (bent - fitted.state["mean"]) / fitted.state["scale"]


def emit_quantile(fitted: FittedStep, x: Value) -> Value:
    """Return F(x) or Φ⁻¹(F(x)). F is the mean of two levels: of the quantiles ≤ x and of the quantiles < x."""
    step, columns = cast(Quantile, fitted.step), np.ascontiguousarray(fitted.state["quantiles"].T)
    each = x.with_axis(2)
    at_or_below = _level(x, columns, each >= columns)
    below = _level(x, columns, each > columns)
    level = (at_or_below + below) * 0.5
    return level if step.output == "uniform" else elementary.normal_quantile(level, step.clip)


def _level(x: Value, columns: Floats, passed: Value) -> Value:
    """Return F(x) (n, d), interpolated between quantiles `columns` (d, q). `passed` (n, d, q) marks those before x."""
    d, q = columns.shape
    count = passed.cast(x.graph.dtype).sum(2)
    end = count.op("Clip", 1.0, float(q - 1)).cast(np.dtype(np.int64))
    end = end + np.arange(d, dtype=np.int64) * q
    width = np.diff(columns, axis=1, prepend=0.0)

    def at_end(values: Floats) -> Value:
        return x.graph.op("Gather", values, end, axis=0)

    right, span = at_end(columns.ravel()), at_end(np.where(width > 0.0, width, 1.0).ravel())
    back = (right - x) * (1.0 / (q - 1)) / span
    level = at_end(np.tile(np.linspace(0.0, 1.0, q), d)) - back
    level = where(count.op("Equal", 0.0), 0.0, level)
    return where(count.op("Equal", float(q)), 1.0, level)


emit_robust = emit_standardize = _affine


def emit_date_parts(fitted: FittedStep, x: Value) -> Value:
    """Return the columns that are not times, followed by the parts of every time."""
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
    """The calendar of one column of times, computed by operators. NaN stays NaN in every part."""

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
        """Compute year, month and day."""
        shifted = self._days + 719_468.0
        era = _quotient(shifted, _ERA)
        day = shifted - era * float(_ERA)  # day of the era of 400 years
        leaps = _quotient(day, 1460) - _quotient(day, 36_524) + _quotient(day, 146_096)
        year = _quotient(day - leaps, 365)  # year of the era
        from_march = day - (year * 365.0 + (_quotient(year, 4) - _quotient(year, 100)))
        month = _quotient(from_march * 5.0 + 2.0, 153)  # 0 is March
        start = _quotient(month * 153.0 + 2.0, 5)
        self._from_march = from_march
        self._day = from_march - start + 1.0
        after_december = _quotient(month, 10)
        self._month = month + 3.0 - after_december * 12.0
        self._year = year + era * 400.0 + after_december

    def _day_of_year(self) -> Value:
        """Return the day of the year from the days since 1 March. The first 306 days end with 31 December."""
        early = _quotient(self._from_march, 306)
        leap = _divides(4, self._year) + _divides(400, self._year) - _divides(100, self._year)
        march = self._from_march + 60.0 + leap
        january = self._from_march - 305.0
        return where(early > 0.0, january, march)


def _divides(divisor: int, x: Value) -> Value:
    """Return 1 where x is a multiple of the divisor, and 0 elsewhere."""
    return _remainder(x, divisor).op("Equal", 0.0).cast(x.graph.dtype)


def _quotient(x: Value, divisor: int) -> Value:
    """Return ⌊x/divisor⌋. For whole numbers, rounding never lifts a quotient to the next whole number."""
    return (x / float(divisor)).op("Floor")


def _remainder(x: Value, divisor: int) -> Value:
    return x - _quotient(x, divisor) * float(divisor)
