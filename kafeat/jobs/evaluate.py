"""What maps are worth on rows of a data set: their error against the exact kernel, and what learners make of them."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from kafeat.blas import one_blas_thread
from kafeat.errors import DataError, GateError, KafeatWarning, UsageError
from kafeat.evaluation.gallery import Gallery
from kafeat.evaluation.recommendation import choose, edges, recommend
from kafeat.evaluation.summary import budgets, spell, summarize
from kafeat.jobs.contenders import Contender, contenders
from kafeat.jobs.examiner import Examiner, Question, Say, Task
from kafeat.jobs.labels import check_label
from kafeat.jobs.listener import Listener
from kafeat.jobs.options import Input
from kafeat.jobs.report import report_folder, write_report
from kafeat.jobs.rereading import rereadable
from kafeat.jobs.sweep import Sweep, read_sweep


def evaluate(
    model: Any = None,
    data: Any = None,
    label: str | None = None,
    rows: int = 2000,
    reading: Input | None = None,
    *,
    config: Any = (),
    sweep: Sequence[str] | Mapping[str, Sequence[Any]] = (),
    seeds: int = 1,
    split: str | None = None,
    task: Task = "auto",
    learner: str = "ridge",
    tau: float = 0.1,
    exact_rows: int = 2000,
    jobs: int | None = None,
    output_dtype: str | None = None,
    report: str | None = None,
    say: Say | None = None,
    listener: Listener | None = None,
) -> dict[str, Any]:
    """What maps are worth: errors against the exact kernel and, with a label, scores of learners.

    `model` is a map, the path of one, or a list of them; `config` likewise recipes, which are fitted on the rows
    that are not held out, once for each of `seeds` seeds and each combination of `sweep`. The keys of the result are
    documented in docs/evaluate.md: `records`, one for each map, setting and seed, and their `summary`; of a single
    record the keys stand at the top too. `output_dtype` rounds the features, as a transform with it would: float16
    shows what half of the bytes cost. `report` is a folder for a page with pictures. `say` is told each step of the
    work, and `listener` what may not be meant of the fits, which is a `KafeatWarning` without one. Raises errors of
    `kafeat.errors`.
    """
    if data is None:
        raise UsageError("evaluate: expected data, got none")
    question = Question(label, split, task, learner, tau, rows, exact_rows, jobs, output_dtype)
    swept = [Sweep(key, tuple(values)) for key, values in sweep.items()] if isinstance(sweep, Mapping) else [
        read_sweep(text) for text in sweep
    ]  # fmt: skip
    unheard: list[str] = []
    listener = (listener or Listener(warn=unheard.append)).once()
    gallery = None if report is None else Gallery()
    found = contenders(_listed(model), _listed(config), swept, seeds)
    for contender in found:
        if contender.config is not None:
            check_label(contender.config, label)
    # One BLAS thread: figures must not depend on the cores, and threads that wait for each other cost more than they
    # give. What overflows shows in the figures, and is refused or told as undefined.
    with (
        report_folder(report),
        one_blas_thread(),
        np.errstate(over="ignore", divide="ignore", invalid="ignore"),
    ):
        with rereadable(data, reading) as again:
            examiner = Examiner(again, question, found, gallery)
            records = [
                _finite(_record(examiner, contender, say, listener, len(found))) for contender in found
            ]
        summary = summarize(records)
        chosen = choose(summary)
        result: dict[str, Any] = {
            "records": records,
            "summary": summary,
            "budgets": budgets(summary) if len(summary) > 1 else {},
            "recommendation": recommend(summary),
            "edges": [] if chosen is None else edges(summary, chosen),
        }
        if report is not None and gallery is not None:
            write_report(report, again.name, result, gallery)
    for doubt in unheard:
        warnings.warn(doubt, KafeatWarning, stacklevel=2)
    return {**records[0], **result} if len(records) == 1 else result


def check_bounds(max_error: float | None, min_score: float | None) -> None:
    """Refuse a gate that nothing could miss."""
    for option, bound in (("--max-error", max_error), ("--min-score", min_score)):
        if bound is not None and not np.isfinite(bound):
            raise UsageError(f"{option}: expected a number, got {bound}")


def gate(report: Mapping[str, Any], max_error: float | None, min_score: float | None) -> None:
    """Raise `GateError` unless every map keeps both bounds on the average over its seeds."""
    check_bounds(max_error, min_score)
    missed = []
    for entry in report["summary"]:
        for key, bound, sign in (("relative_frobenius", max_error, 1.0), ("score_map", min_score, -1.0)):
            if bound is None:
                continue
            if key not in entry:
                raise UsageError("--min-score: expected --label, as without one there is no score")
            value = entry[key]["mean"]
            if value is None or sign * value > sign * bound:
                most = "at most" if sign > 0 else "at least"
                got = "none" if value is None else f"{value:.4g}"
                missed.append(f"{spell(entry)}: {key}: expected {most} {bound:g}, got {got}")
    if missed:
        raise GateError("\n".join(missed))


def _listed(given: Any) -> list[Any]:
    if given is None:
        return []
    return list(given) if isinstance(given, list | tuple) else [given]


def _record(
    examiner: Examiner, contender: Contender, say: Say | None, listener: Listener, n: int
) -> dict[str, Any]:
    """Everything about one map of n; what is wrong with its data is said of it."""
    try:
        return examiner.record(contender, say, listener)
    except DataError as error:
        if n == 1:
            raise
        raise DataError(f"{contender.spelled}: {error}") from None


def _finite(record: dict[str, Any]) -> dict[str, Any]:
    # A ratio to nothing has no value: null in JSON.
    return {
        key: None if isinstance(value, float) and not np.isfinite(value) else value
        for key, value in record.items()
    }
