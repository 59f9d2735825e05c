"""Summarize records of a map, setting and seed: means and standard errors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from kafeat.maths.scoring import SCORES, Score, score_for
from kafeat.study.records import (
    COSTS,
    MACHINES,
    SCORED,
    Estimate,
    FlatRecord,
    Summary,
)

# Kernels whose means differ by more than this share are different kernels.
_SAME_KERNEL = 0.1

_SCORES = ("score", "training_score", *SCORES)

FIGURES = (
    "relative_frobenius", "relative_spectral", "max_abs_error", "mean_abs_error", "bias", "distortion_max",
    "distortion_mean", "distortion_bound", "kernel_pca_error_least", "kernel_pca_spectrum",
    "kernel_pca_subspace", "closed_form_error_max", "closed_form_error_mean", "kernel_mean", "fit_seconds",
    "transform_seconds", "exact_seconds", "transform_seconds_map", "kernel_seconds_exact", "score_map_exact_rows",
    "total_seconds_map_exact_rows", "score_raw_validation", "score_map_validation",
    "score_uncertainty_map_validation", "calibration_error_model", "rounds_boosting", "rows_boosting",
    *(f"{key}_{which}" for key in (*_SCORES, "score_uncertainty", "nonzero") for which in SCORED),
    *(f"{key}_{which}" for key in COSTS for which in (*MACHINES, "boosting")),
)  # fmt: skip
"""The keys of records of which a summary has the mean."""

SHARED = (
    "map", "setting", "n_components", "n_features_in", "columns_raw", "bytes_per_row", "rows", "task", "scoring",
    "rows_train", "rows_test", "rows_exact", "rows_test_exact", "rows_validation",
)  # fmt: skip


def summarize(records: Iterable[FlatRecord]) -> list[Summary]:
    """Return, for each map and setting, the mean of every figure over the seeds and splits, and its standard error."""
    groups: dict[tuple[str, str], list[FlatRecord]] = {}
    for record in records:
        groups.setdefault((record["map"], repr(record["setting"])), []).append(record)
    return [_summary(group) for group in groups.values()]


def _summary(group: Sequence[FlatRecord]) -> Summary:
    first = group[0]
    splits = len({record.get("split_seed") for record in group})
    return {
        **{key: first[key] for key in SHARED if key in first},
        "seeds": len(group) // splits,
        "splits": splits,
        **{
            key: estimate([record.get(key) for record in group], _overlap(first, key) if splits > 1 else 0.0)
            for key in FIGURES
            if key in first
        },
        **({"parts": _parts([record["parts"] for record in group])} if "parts" in first else {}),
    }


def _parts(records: Sequence[Sequence[Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """Return the parts of a union with the mean of the score without each, and its standard error."""
    return [
        {**parts[0], "score_without": estimate([part["score_without"] for part in parts], 0.0)}
        for parts in zip(*records, strict=True)
    ]


def _overlap(record: Mapping[str, Any], key: str) -> float:
    """Return the number of scored rows to that of training rows, for a score; 0 for other figures.

    Splits share training rows, so that their scores vary less than those of new data (Nadeau & Bengio 2003).
    """
    if not key.startswith(tuple(_SCORES)):
        return 0.0
    if key.endswith("_validation"):
        scored = int(record["rows_validation"])
        return scored / max(int(record["rows_train"]) - scored, 1)
    return int(record["rows_test"]) / int(record["rows_train"])


def estimate(values: Sequence[float | None], overlap: float) -> Estimate:
    """Return the mean, its standard error s·√(1/n + overlap), and the deviation s."""
    known = [value for value in values if value is not None]
    if not known:
        return {"mean": None, "standard_error": None, "deviation": None}
    if min(known) == max(known):  # rounding would give equal numbers a nonzero spread
        spread = 0.0 if len(known) > 1 else None
        return {"mean": float(known[0]), "standard_error": spread, "deviation": spread}
    deviation = float(np.std(known, ddof=1))
    error = deviation * float(np.sqrt(1.0 / len(known) + overlap))
    return {"mean": float(np.mean(known)), "standard_error": error, "deviation": deviation}


def goodness(summary: Summary) -> float:
    """Return the quantity to maximize: the score if there is one, else the negative error.

    The score is that on the rows to choose on, so that the score on the test rows stays what can be expected.
    """
    key, sign = (deciding(summary), 1.0) if "score_map" in summary else ("relative_frobenius", -1.0)
    value = summary[key]["mean"]
    return -np.inf if value is None else sign * float(value)


def comparable(summaries: Sequence[Summary]) -> bool:
    """Return True if the maps can be ranked: by a score, or by errors against the same kernel.

    Kernels are compared by the mean of their entries on the compared rows, which varies little between fits.
    """
    if all("score_map" in summary for summary in summaries):
        return any(goodness(summary) > -np.inf for summary in summaries)
    means = [summary["kernel_mean"]["mean"] for summary in summaries]
    largest = max(abs(mean) for mean in means)
    return bool(max(means) - min(means) <= _SAME_KERNEL * largest)


def margin_of(best: Summary) -> float:
    """Return the standard error of the best: over the seeds or splits, or that of its score on the rows if larger.

    It is √(p(1 − p)/n) for an accuracy p, 2|R|(1 − R²)/√n for R² (Olkin & Finn 1995), and for other scores that of
    resampled rows. Several splits score more rows, at most all of them.
    """
    if "score_map" not in best:
        return best["relative_frobenius"]["standard_error"] or 0.0
    return noise_of(best, deciding(best), "rows_validation" if "rows_validation" in best else "rows_test")


def noise_of(summary: Summary, key: str, rows: str = "rows_test") -> float:
    """Return the standard error of a score: over the seeds or splits, or that of these rows if larger."""
    figure, n, splits = summary[key], summary[rows], summary.get("splits", 1)
    scored = n if splits == 1 else min(splits * n, summary["rows_train"] + summary["rows_test"])
    of_rows = _of_rows(summary, figure["mean"], n, key) * float(np.sqrt(n / max(scored, 1)))
    return max(figure["standard_error"] or 0.0, of_rows)


def _of_rows(summary: Summary, score: float, rows: int, key: str) -> float:
    """Return the standard error of a score on so many rows: from resamples if there are any, else by a formula."""
    known = summary.get(key.replace("score_", "score_uncertainty_", 1))
    if known is not None:
        return known["mean"] or 0.0
    scoring, share = scoring_of(summary), min(max(abs(score), 0.0), 1.0)
    if scoring.is_noisy:
        return float(np.sqrt(share * (1.0 - share) / max(rows, 1)))
    if scoring.name == "r2":
        share = share if score > 0.0 else 0.0
        return float(2.0 * np.sqrt(share / max(rows, 1)) * (1.0 - share))
    return 0.0


def scoring_of(summary: Summary) -> Score:
    """Return the score that decides."""
    return score_for(summary.get("scoring"), summary.get("task", "regression"))


def stated_mean(summary: Summary, key: str) -> float | None:
    """Return the mean of a figure, and of the score that decides as it is usually stated; None if it is undefined."""
    mean = summary[key]["mean"]
    return mean if mean is None or "score" not in key else scoring_of(summary).stated(mean)


def spread_of(summary: Summary, figure: Estimate) -> float | None:
    """Return what stands behind ± : the deviation over several splits, else the standard error over the seeds."""
    return figure["deviation"] if summary.get("splits", 1) > 1 else figure["standard_error"]


def spelled_score(summary: Summary, which: str) -> str:
    """Return a score with what stands behind ±: over one split the standard error, of the rows too."""
    key = f"score_{which}"
    mean = stated_mean(summary, key)
    if mean is None:
        return "undefined"
    rows = "rows_test_exact" if which == "exact" else "rows_test"
    error = summary[key]["deviation"] if summary["splits"] > 1 else noise_of(summary, key, rows)
    return spell_value(mean) + (f" ± {error:.1g}" if error else "")


def spell_value(score: float) -> str:
    """Return a score with four decimals, and a large error with five digits."""
    return f"{score:z.4f}" if abs(score) < 10.0 else f"{score:,.5g}"


def deciding(summary: Summary, which: str = "map") -> str:
    """Return the key of the score that maps are chosen by; without rows to choose on it is that of the test rows."""
    return f"score_{which}_validation" if "rows_validation" in summary else f"score_{which}"


def is_number(value: object) -> bool:
    """Return True if a swept value is a number (not a bool or text)."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def spell_briefly(summary: Mapping[str, Any]) -> str:
    """Return the map with its setting, without the number of columns, which tables show separately."""
    rest = {key: value for key, value in summary["setting"].items() if not key.endswith("n_components")}
    return spell({"map": summary["map"], "setting": rest})


def spell(summary: Mapping[str, Any]) -> str:
    """Return the map with its setting."""
    setting = ", ".join(f"{key} = {value}" for key, value in summary["setting"].items())
    return f"{summary['map']} ({setting})" if setting else str(summary["map"])
