"""The notes of `kafeat evaluate`: what a reader of its tables should know, and the recommendation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kafeat.evaluation.costs import findings
from kafeat.evaluation.rates import rate_note
from kafeat.evaluation.recommendation import choose
from kafeat.evaluation.records import EvaluationRecord, Report
from kafeat.evaluation.summary import scoring_of, spell, stated
from kafeat.maths.scoring import spell_score


def notes(report: Report, left_out: Sequence[str]) -> Iterator[str]:
    """Yield the notes; `left_out` are the columns that a narrow terminal does not show."""
    yield from _of_records(report["records"])
    for which, text in (("raw", "the raw columns"), ("map", "the features"), ("exact", "the exact kernel")):
        if not all(record.get(f"converged_{which}", True) for record in report["records"]):
            yield f"note: on {text} the solver stopped before it converged: the score may be too low"
    yield from _of_models(report, left_out)
    for rate in report["rates"]:
        yield rate_note(rate)
    yield from _of_budgets(report)
    constant = report["summary"][0].get("score_constant")
    if constant is not None and constant["mean"] is not None:
        name, score = (
            spell_score(scoring_of(report["summary"][0])),
            stated(report["summary"][0], constant["mean"]),
        )
        yield f"{name} of a constant prediction, learned from the same training rows: {score:z.4f}"
    entry = choose(report["summary"]) or report["summary"][0]
    if "score_map" in entry:
        yield from findings(report["summary"], entry)
    if report["recommendation"]:
        yield report["recommendation"]


def _of_records(records: Sequence[EvaluationRecord]) -> Iterator[str]:
    """Yield what each record says about its rows and its reference, which other records do not repeat."""
    said = set()
    for record in records:
        if record["rows_seen_in_fit"]:
            yield (
                f"note: {record['map']} was fitted on this file, and {record['rows_seen_in_fit']:,} of these rows "
                "were in the fit sample"
            )
        if record["rows_seen_in_fit"] is None and record["map"] not in said:
            said.add(record["map"])
            yield f"note: {record['map']} was fitted on another file; it is unknown whether it saw these rows"
        if record.get("test_rows_seen_model"):
            seen = f"{record['test_rows_seen_model']:,}"
            yield (
                f"note: the predictor of {record['map']} may have learned from {seen} of the test rows: "
                "its scores are of new rows only if it was fitted with the same --split"
            )
        if record["reference"] and record["reference"] not in said:
            said.add(record["reference"])
            yield f"note: {record['reference']}"


def _of_models(report: Report, left_out: Sequence[str]) -> Iterator[str]:
    """Yield the equivalent model of scikit-learn, and the rows that the exact machine was trained on."""
    first = report["records"][0]
    same = first.get("equivalent_model") or first.get("equivalent_map")
    if same and len(report["records"]) == 1:
        yield f"the same model of scikit-learn on the features: {same}"
    fewer = first.get("rows_exact", 0) < first.get("rows_train", 0)
    if len(report["summary"]) > 1 and fewer and "exact" not in left_out:
        note = f"note: the exact machine was trained on {first['rows_exact']:,} rows (--exact-rows)"
        if "on its rows" not in left_out:
            note += "; `on its rows` is the score of the features trained on the same rows"
        yield note


def _of_budgets(report: Report) -> Iterator[str]:
    """Yield the best map within each budget."""
    for budget in report["budgets"].get("columns", []):
        yield f"best with at most {budget['budget']:,} columns: {spell(budget)}"
    for budget in report["budgets"].get("seconds", []):
        yield f"best within {budget['budget']:.2g} s to transform these rows: {spell(budget)}"
