"""End an evaluation with an error if a map misses a bound."""

from __future__ import annotations

import numpy as np

from kafeat.errors import GateError, UsageError
from kafeat.evaluation.records import Report, estimate_of
from kafeat.evaluation.summary import spell


def check_bounds(max_error: float | None, min_score: float | None) -> None:
    """Refuse bounds of a gate that are no finite numbers, as these would let everything pass."""
    for option, bound in (("--max-error", max_error), ("--min-score", min_score)):
        if bound is not None and not np.isfinite(bound):
            raise UsageError(f"{option}: expected a number, got {bound}")


def _bounds(
    max_error: float | None, min_score: float | None
) -> tuple[tuple[str, str, float | None, float], ...]:
    """Return for each bound the key of its figure, its name in words, the bound, and 1 for an upper one, else -1."""
    return (
        ("relative_frobenius", "relative Frobenius error", max_error, 1.0),
        ("score_map", "score of the features", min_score, -1.0),
    )


def gate(report: Report, max_error: float | None, min_score: float | None) -> None:
    """Raise `GateError` unless the mean over the seeds of every map is within both bounds."""
    check_bounds(max_error, min_score)
    missed = []
    for entry in report["summary"]:
        for key, name, bound, sign in _bounds(max_error, min_score):
            if bound is None:
                continue
            if key not in entry:
                raise UsageError("--min-score: expected --label, as without one there is no score")
            value = estimate_of(entry, key)["mean"]
            if value is None or sign * value > sign * bound:
                most = "at most" if sign > 0 else "at least"
                got = "none" if value is None else f"{value:.4g}"
                missed.append(f"{spell(entry)}: {name}: expected {most} {bound:g}, got {got}")
    if missed:
        raise GateError("\n".join(missed))
