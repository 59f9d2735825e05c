"""Rates of a sweep over the number of columns: how fast errors fall, beside what theorems say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import numpy as np

from kafeat.contract.error_slopes import NO_THEOREM, ErrorSlopes
from kafeat.evaluation.records import Estimate, EvaluationRecord, Rate
from kafeat.evaluation.summary import estimate, spell
from kafeat.registry import step_class

NORMS = ("frobenius", "spectral")
# Two widths always lie on a line.
_LEAST_WIDTHS = 3
# Errors of so many roundings are those of the numbers, and fall no further.
_ROUNDINGS = 100.0


def rates(records: Sequence[EvaluationRecord]) -> list[Rate]:
    """Return the slope of log error over log D of every map and setting with at least three numbers of columns D.

    The slope is that of least squares for each seed and split, and its mean and standard error are over these.
    """
    families: dict[tuple[str, str], list[EvaluationRecord]] = {}
    for record in records:
        families.setdefault((record["map"], repr(_without_columns(record["setting"]))), []).append(record)
    return [rate for family in families.values() for rate in _rate(family)]


def _without_columns(setting: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in setting.items() if not key.endswith("n_components")}


def _rate(family: Sequence[EvaluationRecord]) -> Iterator[Rate]:
    """Yield the rate of records that differ in the number of columns, the seed and the split only."""
    widths = sorted({record["n_components"] for record in family})
    runs: dict[tuple[int, int | None], list[EvaluationRecord]] = {}
    for record in family:
        runs.setdefault((record["seed"], record["split_seed"]), []).append(record)
    slopes = {norm: estimate([_slope(run, norm) for run in runs.values()], 0.0) for norm in NORMS}
    if all(slope["mean"] is None for slope in slopes.values()):
        return
    first = family[0]
    theorem = _theorem(first["kinds"])
    yield {
        "map": first["map"],
        "setting": _without_columns(first["setting"]),
        "columns": widths,
        "slope_frobenius": slopes["frobenius"],
        "slope_spectral": slopes["spectral"],
        "theorem_frobenius": list(theorem.frobenius),
        "theorem_spectral": list(theorem.spectral),
    }


def _slope(run: Sequence[EvaluationRecord], norm: str) -> float | None:
    """Return the slope of log error over log D, or None if there are fewer than three errors above rounding."""
    points = []
    for record in run:
        error = cast(Mapping[str, Any], record)[f"relative_{norm}"]
        if error is not None and error > _ROUNDINGS * np.finfo(record["dtype"]).eps:
            points.append((np.log(record["n_components"]), np.log(error)))
    if len({width for width, _ in points}) < _LEAST_WIDTHS:
        return None
    x, y = np.array(points).T
    x -= x.mean()
    return float(x @ y / (x @ x))


def _theorem(kinds: Sequence[str]) -> ErrorSlopes:
    """Return what theorems say about the last step that they say anything about."""
    known = [step_class(kind).error_slopes for kind in kinds]
    return next((slopes for slopes in reversed(known) if slopes != NO_THEOREM), NO_THEOREM)


def spelled_rate(rate: Rate) -> dict[str, tuple[str, str]]:
    """Return by norm the measured power of D, and that of the theorem."""
    return {
        "Frobenius": (_power(rate["slope_frobenius"]), _powers(rate["theorem_frobenius"])),
        "spectral": (_power(rate["slope_spectral"]), _powers(rate["theorem_spectral"])),
    }


def rate_note(rate: Rate) -> str:
    """Return a line about the rate of a map."""
    falls = [
        f"{measured} in the {norm} norm{f' (theorem: {theorem})' if theorem else ''}"
        for norm, (measured, theorem) in spelled_rate(rate).items()
        if measured
    ]
    columns = f"{rate['columns'][0]:,} to {rate['columns'][-1]:,} columns"
    return f"error of {spell(rate)} from {columns}: falls like {', '.join(falls)}"


def _power(slope: Estimate) -> str:
    """Return a measured power of D with its standard error over the seeds."""
    mean, error = slope["mean"], slope["standard_error"]
    if mean is None:
        return ""
    return f"D^{mean:.2f}" + (f" ± {error:.2f}" if error is not None else "")


def _powers(slopes: Sequence[float]) -> str:
    """Return the powers of D of theorems."""
    if not slopes:
        return ""
    gap = f", with a large eigengap up to D^{slopes[1]:g}" if len(slopes) > 1 else ""
    return f"D^{slopes[0]:g}{gap}"
