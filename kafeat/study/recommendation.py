"""Recommend a map with a reason, and compare its score with boosting, the raw columns and a constant."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from kafeat.study.records import Estimate, Record, Report, Summary
from kafeat.study.summary import (
    comparable,
    estimate,
    goodness,
    is_scored,
    margin_of,
    noise_of,
    scoring_of,
    spell,
    spell_value,
    spelled_score,
    summarize,
)


def choose(summaries: Sequence[Summary]) -> Summary | None:
    """Return the map with the fewest columns among the maps within noise of the best; None if maps cannot be ranked."""
    if len(summaries) < 2 or not comparable(summaries):
        return None
    best = max(summaries, key=goodness)
    enough = [summary for summary in summaries if goodness(summary) >= goodness(best) - margin_of(best)]
    return min(enough, key=lambda one: (one.about["n_components"], -goodness(one)))


COMMON = 0.6
"""If one class has a larger share of the rows than this, accuracy is not informative."""
# Two scores count as different if their difference exceeds this many of its standard errors.
_BEYOND_NOISE = 2.0
_RIVALS = {"boosting": "gradient boosting", "raw": "the raw columns", "constant": "a constant"}


def answer(report: Report) -> list[str]:
    """Return the answer of an evaluation as lines: the recommended map, and which baselines score better or worse."""
    summaries, lines = report.summaries, [report.recommendation] if report.recommendation else []
    if not is_scored(summaries[0]):
        return [
            "only kernels were compared: without --label nothing says whether a map helps to predict",
            *lines,
        ]
    entry = choose(summaries)
    if entry is None and len(summaries) > 1:
        return ["no map can be recommended: none has a score"]
    return [*lines, *_standing(entry or summaries[0])]


def _standing(entry: Summary) -> Iterator[str]:
    """Yield lines with the score of a map, and with the baselines that score better, as good, or worse."""
    which = "model" if "model" in entry.scored.tested else "map"
    own = f"{spell(entry.about)}{': its own predictions' if which == 'model' else ''}"
    better, level, worse = _rivals(entry, which)
    yield (
        f"{own}: {scoring_of(entry)} {spelled_score(entry, which)} on {entry.about['rows_test']:,} test rows"
        + (f", better than {_joined(worse)}" if worse else "")
    )
    if better:
        yield f"{_joined(better)} {_verb(better)} better, beyond noise"
    if level:
        yield f"{_joined(level)} {_verb(level)} as good, within noise"
    constant = entry.mean("constant")
    if scoring_of(entry).name == "accuracy" and constant is not None and constant > COMMON:
        yield (
            f"one class has {constant:.0%} of these rows, so accuracy says little: --scoring auc compares the order of "
            "the rows, and --scoring log_loss --learner logistic the probabilities"
        )


def _rivals(entry: Summary, which: str) -> tuple[list[str], list[str], list[str]]:
    """Return the baselines that score better than the map, those equal within noise, and the worse baselines."""
    better, level, worse = list[str](), list[str](), list[str]()
    mine = entry.mean(which)
    for rival, name in _RIVALS.items():
        score = entry.mean(rival)
        if score is None or mine is None:
            continue
        noise = float(np.hypot(noise_of(entry, which), noise_of(entry, rival)))
        ahead = score - mine
        group = level if abs(ahead) <= _BEYOND_NOISE * noise else better if ahead > 0.0 else worse
        group.append(f"{name} ({spell_value(scoring_of(entry).stated(score))})")
    return better, level, worse


def _joined(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _verb(names: Sequence[str]) -> str:
    return "are" if len(names) > 1 or names[0].startswith(_RIVALS["raw"]) else "is"


def recommend(summaries: Sequence[Summary], choice: Estimate | None = None) -> str | None:
    """Return one line that recommends a map and gives the reason. `choice` is the result of `score_of_choice`."""
    chosen = choose(summaries)
    if chosen is None:
        if len(summaries) < 2 or is_scored(summaries[0]):
            return None
        return (
            "no recommendation: the maps stand for different kernels, whose errors do not rank them; "
            "a label (--label) tells which kernel suits the data"
        )
    best = max(summaries, key=goodness)
    reason = _of_score(chosen, best, choice) if is_scored(best) else _of_error(chosen, best)
    return f"take {spell(chosen.about)}: {reason}"


def score_of_choice(records: Sequence[Record]) -> Estimate | None:
    """Return the mean test score if each split chooses its own map, or None with one split or map.

    Validation rows of one split are test rows of another. If all splits chose one map together, test rows would take
    part in the choice, and the test scores of that map would be too optimistic.
    """
    groups: dict[int | None, list[Record]] = {}
    for record in records:
        groups.setdefault(record.about["split_seed"], []).append(record)
    chosen = [choose(summarize(group)) for group in groups.values()]
    scores = [one.mean("map") for one in chosen if one is not None and is_scored(one)]
    if len(groups) < 2 or len(scores) < len(groups):
        return None
    about = records[0].about
    return estimate(scores, about["rows_test"] / about["rows_train"])


def _of_score(chosen: Summary, best: Summary, choice: Estimate | None) -> str:
    margin = margin_of(best)
    reason = f"{scoring_of(best)} {_told(chosen, goodness(chosen))}"
    about = chosen.about
    if "rows_validation" in about:
        reason += f" on {about['rows_validation']:,} rows kept to choose by"
    if chosen is not best:
        reason += f", within {margin:.4f} (its uncertainty) of the best, {spell(best.about)} with "
        reason += f"{_told(best, goodness(best))}, for {about['n_components']:,} columns in place of "
        reason += f"{best.about['n_components']:,}"
    else:
        reason += ", and nothing with fewer columns comes within its uncertainty"
    test = chosen.mean("map")
    if choice is not None and choice["mean"] is not None:
        reason += f"; if each of {chosen.splits} splits chooses its own map, the test rows give "
        reason += f"{_told(chosen, choice['mean'])} ± {choice['deviation'] or 0.0:.4f}"
    elif "rows_validation" in about and test is not None:
        reason += (
            f"; on the {about['rows_test']:,} test rows, which had no part in this, {_told(chosen, test)}"
        )
    return reason


def _told(summary: Summary, score: float) -> str:
    return f"{scoring_of(summary).stated(score):.4f}"


def _of_error(chosen: Summary, best: Summary) -> str:
    reason = f"relative error {chosen.kernel['relative_frobenius']['mean']:.4f}"
    return reason + (
        ", the smallest" if chosen is best else f", {spell(best.about)} is not better by more than chance"
    )
