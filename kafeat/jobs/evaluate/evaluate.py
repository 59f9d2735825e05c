"""What maps are worth on rows of a data set: their error against the exact kernel, and what learners make of them."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np

from kafeat.chain.blas import one_blas_thread
from kafeat.errors import DataError, GateError, KafeatWarning, SystemRefusedError, UsageError
from kafeat.evaluation.recommendation import choose, edges, recommend
from kafeat.evaluation.report.figure_data import FigureData
from kafeat.evaluation.summary import budgets, spell, summarize
from kafeat.io.storage.atomic import write_bytes
from kafeat.io.storage.uri import is_remote
from kafeat.jobs.evaluate.candidates import Candidate, candidates
from kafeat.jobs.evaluate.inputs import rereadable
from kafeat.jobs.evaluate.measure import EvaluationRequest, Evaluator, Say, Task
from kafeat.jobs.evaluate.sweep import Sweep, read_sweep
from kafeat.jobs.fit.listener import Listener
from kafeat.jobs.fit.sample import check_label
from kafeat.jobs.transform.options import InputOptions


def evaluate(
    model: Any = None,
    data: Any = None,
    label: str | None = None,
    rows: int = 2000,
    reading: InputOptions | None = None,
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
    question = EvaluationRequest(label, split, task, learner, tau, rows, exact_rows, jobs, output_dtype)
    swept = [Sweep(key, tuple(values)) for key, values in sweep.items()] if isinstance(sweep, Mapping) else [
        read_sweep(text) for text in sweep
    ]  # fmt: skip
    unheard: list[str] = []
    listener = (listener or Listener(warn=unheard.append)).once()
    gallery = None if report is None else FigureData()
    found = candidates(_listed(model), _listed(config), swept, seeds)
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
            examiner = Evaluator(again, question, found, gallery)
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
    examiner: Evaluator, contender: Candidate, say: Say | None, listener: Listener, n: int
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


_PICTURES = (".png", ".svg")


@contextmanager
def report_folder(folder: str | None) -> Iterator[None]:
    """Fail before the work and not behind it: matplotlib must be there, and the folder writeable.

    A folder that was made for nothing is removed.
    """
    if folder is None:
        yield
        return
    if is_remote(folder):
        raise UsageError(f"--report: expected a folder on this machine, got {folder}; copy the pages there")
    new = not os.path.isdir(folder)
    _check(folder)
    try:
        yield
    finally:
        if new:
            with suppress(OSError):  # it holds the report
                os.rmdir(folder)


def _check(folder: str) -> None:
    if folder in ("", "-"):
        raise UsageError(f"--report: expected the name of a folder, got {folder!r}")
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise UsageError(
            f"--report: expected matplotlib, got: {error}; pip install 'kafeat[evaluate]'"
        ) from error
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise SystemRefusedError(f"{folder}: cannot make the folder: {error.strerror}") from error
    if not os.access(folder, os.W_OK):
        raise SystemRefusedError(f"{folder}: expected a folder to write to, got one that is read-only")


def pages_of(folder: str) -> list[str]:
    """The files of a folder that a report would write, as far as their names are known: the page, and old pictures."""
    with suppress(OSError):
        there = [name for name in os.listdir(folder) if name.endswith(_PICTURES)]
        return [os.path.join(folder, name) for name in ("index.html", *sorted(there))]
    return [os.path.join(folder, "index.html")]


def write_report(folder: str, data: str, report: Mapping[str, Any], gallery: FigureData) -> None:
    """`index.html`, which needs no other file, and each picture as a file of its own (light) beside it."""
    from kafeat.evaluation.report.page import page
    from kafeat.evaluation.report.pictures import pictures

    drawn = list(pictures(report["summary"], gallery.exhibits))
    index = os.path.join(folder, "index.html")
    before = _named_by(index)
    for picture in drawn:
        write_bytes(os.path.join(folder, f"{picture.name}.{picture.kind}"), picture.files["light"])
    write_bytes(index, page(report, data, drawn).encode())
    # pictures of the page that was here before would be taken for this one's
    for name in before - {f"{picture.name}.{picture.kind}" for picture in drawn}:
        if not name.endswith(_PICTURES):
            continue
        with suppress(OSError):
            os.unlink(os.path.join(folder, name))


def _named_by(index: str) -> set[str]:
    """The files that a page of ours says are its pictures."""
    try:
        with open(index, encoding="utf-8") as file:
            found = re.search(r'<meta name="kafeat-pictures" content="([\w. -]*)">', file.read(1 << 16))
    except (OSError, ValueError):
        return set()
    return set(found[1].split()) if found else set()
