"""Summarize the records of each map and setting: means and standard errors over seeds and splits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from kafeat.maths import SCORES, Score, score_for
from kafeat.study.records import Entries, Estimate, Record, Scored, Summary

# Kernels count as different if the means of their entries differ by more than this share.
_SAME_KERNEL = 0.1

_OF_SCORES = {"score", "training_score", "score_uncertainty"}
_MEANS = {
    "nonzero", "calibration_error", "rounds", "rows", "learn_seconds", "search_seconds", "total_seconds",
    "predict_seconds", "transform_seconds", "kernel_seconds", "matrix_bytes",
}  # fmt: skip
"""The figures, other than scores, whose means are in a summary."""

_SHARED = (
    "map", "setting", "n_components", "n_features_in", "columns_raw", "bytes_per_row", "rows", "task", "scoring",
    "rows_train", "rows_test", "rows_exact", "rows_test_exact", "rows_validation",
)  # fmt: skip


def summarize(records: Iterable[Record]) -> list[Summary]:
    """Return, for each map and setting, the mean of every figure over the seeds and splits, and its standard error."""
    groups: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        groups.setdefault((record.about["map"], repr(record.about["setting"])), []).append(record)
    return [_summary(group) for group in groups.values()]


def _summary(group: Sequence[Record]) -> Summary:
    first, splits = group[0], len({record.about.get("split_seed") for record in group})
    about = first.about
    # Splits share training rows, so scores vary less than on new data (Nadeau & Bengio 2003).
    tested = validation = 0.0
    if splits > 1 and "rows_test" in about:
        tested = about["rows_test"] / about["rows_train"]
        kept = about.get("rows_validation", 0)
        validation = kept / max(about["rows_train"] - kept, 1)

    every = [record.scored for record in group]
    return Summary(
        about={key: about[key] for key in _SHARED if key in about},
        kernel={key: estimate([record.kernel.get(key) for record in group], 0.0) for key in first.kernel},
        scored=Scored(
            tested=_means([one.tested for one in every], tested),
            validation=_means([one.validation for one in every], validation),
            exact_rows=_means([one.exact_rows for one in every], tested),
        ),
        parts=_parts([record.parts for record in group]),
        seeds=len(group) // splits,
        splits=splits,
    )


def _means(of: Sequence[Mapping[str, Entries]], overlap: float) -> dict[str, Entries]:
    """Return the means of all scores and costs. `overlap`, as in `estimate`, applies only to scores."""
    return {
        which: {
            name: estimate([one[which][name] for one in of], 0.0 if name in _MEANS else overlap)
            for name in entries
            if name in _MEANS or name in _OF_SCORES or name in SCORES
        }
        for which, entries in of[0].items()
    }


def _parts(records: Sequence[Sequence[Mapping[str, Any]]]) -> list[Entries]:
    """Return an entry for each part of a union: the mean score without the part, with its standard error."""
    return [
        {**parts[0], "score_without": estimate([part["score_without"] for part in parts], 0.0)}
        for parts in zip(*records, strict=True)
    ]


def estimate(values: Sequence[float | None], overlap: float) -> Estimate:
    """Return the mean of n values, its standard error s·√(1/n + overlap), and the standard deviation s.

    `overlap` is the ratio of scored rows to training rows, or 0 for figures that are not scores.
    """
    known = [value for value in values if value is not None and np.isfinite(value)]
    if not known:
        return {"mean": None, "standard_error": None, "deviation": None}
    if min(known) == max(known):  # rounding would give equal numbers a nonzero spread
        spread = 0.0 if len(known) > 1 else None
        return {"mean": float(known[0]), "standard_error": spread, "deviation": spread}
    deviation = float(np.std(known, ddof=1))
    error = deviation * float(np.sqrt(1.0 / len(known) + overlap))
    return {"mean": float(np.mean(known)), "standard_error": error, "deviation": deviation}


def is_scored(summary: Summary) -> bool:
    """Return True if a learner was scored."""
    return "map" in summary.scored.tested


def deciding(summary: Summary) -> Estimate:
    """Return the figure that ranks maps: the score (on validation rows if there are any) or, without it, the error."""
    if not is_scored(summary):
        error: Estimate = summary.kernel["relative_frobenius"]
        return error
    scored = summary.scored
    score: Estimate = (scored.validation or scored.tested)["map"]["score"]
    return score


def goodness(summary: Summary) -> float:
    """Return the quantity to maximize: the score if there is one, otherwise the negative error.

    If there are validation rows, the score is on validation rows. The score on test rows thus stays unbiased.
    """
    value = deciding(summary)["mean"]
    return -np.inf if value is None else value if is_scored(summary) else -value


def comparable(summaries: Sequence[Summary]) -> bool:
    """Return True if the maps can be ranked: by a score, or by errors against the same kernel.

    Kernels are compared by the mean of their entries on the compared rows, which varies little between fits.
    """
    if all(map(is_scored, summaries)):
        return any(goodness(summary) > -np.inf for summary in summaries)
    means = [summary.kernel["kernel_mean"]["mean"] for summary in summaries]
    largest = max(abs(mean) for mean in means)
    return bool(max(means) - min(means) <= _SAME_KERNEL * largest)


def margin_of(best: Summary) -> float:
    """Return the standard error of the best map's figure: over seeds and splits, or over rows if that is larger.

    The error over rows comes from a formula or resampled rows. It shrinks if several splits together score more rows.
    """
    if not is_scored(best):
        return deciding(best)["standard_error"] or 0.0
    if best.scored.validation:
        return _noise(best, best.scored.validation["map"], best.about["rows_validation"])
    return noise_of(best, "map")


def noise_of(summary: Summary, which: str) -> float:
    """Return the standard error of a test score: over seeds and splits, or over rows if that is larger."""
    rows = "rows_test_exact" if which == "exact" else "rows_test"
    return _noise(summary, summary.scored.tested[which], summary.about[rows])


def _noise(summary: Summary, entries: Entries, n: int) -> float:
    figure, splits = entries["score"], summary.splits
    scored = n if splits == 1 else min(splits * n, summary.about["rows_train"] + summary.about["rows_test"])
    known, noise = entries.get("score_uncertainty"), scoring_of(summary).noise
    if known is None and noise is not None:
        known = {"mean": noise(figure["mean"], n)}
    of_rows = (known and known["mean"]) or 0.0
    return max(figure["standard_error"] or 0.0, of_rows * float(np.sqrt(n / max(scored, 1))))


def scoring_of(summary: Summary) -> Score:
    """Return the deciding score."""
    return score_for(summary.about.get("scoring"), summary.about.get("task", "regression"))


def stated_mean(summary: Summary, which: str) -> float | None:
    """Return the mean of the deciding score. Errors are positive numbers. Return None if the score is undefined."""
    mean = summary.mean(which, "score")
    return None if mean is None else scoring_of(summary).stated(mean)


def spread_of(summary: Summary, figure: Estimate) -> float | None:
    """Return the value after ±: the standard deviation over splits or, for one split, the standard error over seeds."""
    return figure["deviation"] if summary.splits > 1 else figure["standard_error"]


def spelled_score(summary: Summary, which: str) -> str:
    """Return a score with its ± value: the standard deviation over splits or, with one split, the standard error."""
    mean = stated_mean(summary, which)
    if mean is None:
        return "undefined"
    splits = summary.splits > 1
    error = summary.scored.tested[which]["score"]["deviation"] if splits else noise_of(summary, which)
    return spell_value(mean) + (f" ± {error:.1g}" if error else "")


def spell_value(score: float) -> str:
    """Return a score as text with four decimals or, from 10 on, with five digits."""
    return f"{score:z.4f}" if abs(score) < 10.0 else f"{score:,.5g}"


def spell_briefly(about: Mapping[str, Any]) -> str:
    """Return the name of the map with its setting, but without the number of columns, which has its own column."""
    rest = {key: value for key, value in about["setting"].items() if not key.endswith("n_components")}
    return spell({"map": about["map"], "setting": rest})


def spell(about: Mapping[str, Any]) -> str:
    """Return the name of the map with its setting, such as `map.yaml (gamma = 2)`."""
    setting = ", ".join(f"{key} = {value}" for key, value in about["setting"].items())
    return f"{about['map']} ({setting})" if setting else str(about["map"])
