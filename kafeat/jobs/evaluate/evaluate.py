"""Evaluate maps on a data set: their error against the exact kernel, and the scores of models on their features."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeAlias, cast

import numpy as np

from kafeat.chain.blas import one_blas_thread
from kafeat.config import Config
from kafeat.errors import DataError, GateError, KafeatWarning, SystemRefusedError, UsageError
from kafeat.evaluation.recommendation import choose, edges, recommend
from kafeat.evaluation.records import EvaluationRecord, Report, estimate_of
from kafeat.evaluation.report.figure_data import FigureData
from kafeat.evaluation.summary import budgets, spell, summarize
from kafeat.io.storage.atomic import write_bytes
from kafeat.io.storage.uri import is_remote
from kafeat.jobs.evaluate.candidates import Candidate, list_candidates
from kafeat.jobs.evaluate.inputs import rereadable
from kafeat.jobs.evaluate.measure import EvaluationRequest, Evaluator, Say, Task
from kafeat.jobs.evaluate.sweep import Sweep, read_sweep
from kafeat.jobs.fit.labels import check_label
from kafeat.jobs.fit.messages import Listener
from kafeat.jobs.transform.options import InputOptions
from kafeat.model.feature_map import FeatureMap
from kafeat.types import TableLike

Model: TypeAlias = "FeatureMap | str | os.PathLike[str]"
Recipe: TypeAlias = "Config | Mapping[str, object] | str | os.PathLike[str]"


def evaluate(
    model: Model | Sequence[Model] | None = None,
    data: str | os.PathLike[str] | TableLike | None = None,
    label: str | None = None,
    rows: int = 2000,
    reading: InputOptions | None = None,
    *,
    config: Recipe | Sequence[Recipe] = (),
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
    """Evaluate maps: errors against the exact kernel and, with a label, scores of models that predict it.

    Parameters
    ----------
    model : FeatureMap, str, path, list of these or None, default None
        Maps, or paths of model files.
    data : str, path, array (n_rows, n_columns), sparse matrix or table
        Rows to evaluate on: in memory, or the path or URI of a file or data set.
    label : str or None, default None
        Column to predict; None compares kernels only.
    rows : int, default 2000
        Number of rows for the kernel matrices.
    reading : InputOptions or None, default None
        Options for reading a file.
    config : str, path, mapping, Config or list of these, default ()
        Recipes, which are fitted on the rows that are not held out.
    sweep : list of str or mapping of str to list, default ()
        Values of parameters of the recipes, as `"n_components=64,128"` or `{"n_components": [64, 128]}`. Every
        combination is evaluated.
    seeds : int, default 1
        Number of seeds to fit each recipe with.
    split : str or None, default None
        Column that says train or test; None holds rows out at random.
    task : {"auto", "classification", "regression"}, default "auto"
        Kind of prediction; "auto" decides by the labels.
    learner : str, default "ridge"
        Model used to predict the label.
    tau : float, default 0.1
        Quantile or width of the loss, for the learners that have one.
    exact_rows : int, default 2000
        Largest number of training rows of the exact kernel machine.
    jobs : int or None, default None
        Number of threads; None takes all cores.
    output_dtype : {"float16", "float32", "float64"} or None, default None
        Type that features are rounded to, as `kafeat transform` does; None takes that of the map.
    report : str or None, default None
        Folder for a page with figures.
    say : callable or None, default None
        Called with a line about each step of the work.
    listener : Listener or None, default None
        Callbacks for the fits; None turns their warnings into `kafeat.errors.KafeatWarning`.

    Returns
    -------
    dict
        `records`, one for each map, setting and seed, their `summary`, and a recommendation; docs/evaluate.md lists all
        keys. If there is a single record, its keys are at the top too.

    Raises
    ------
    kafeat.errors.UsageError
        An argument is invalid, or a map has no exact kernel.
    kafeat.errors.DataError
        The data cannot be read, lack a column, or have too few rows.
    kafeat.errors.ArtifactError
        A model file is invalid.
    kafeat.errors.SystemRefusedError
        A file cannot be read or written.

    Examples
    --------
    >>> import kafeat, numpy as np
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> result = kafeat.evaluate(config={"steps": [{"kind": "fourier", "n_components": 256}]}, data=X, jobs=1)
    >>> result["n_components"], result["relative_frobenius"] < 0.2
    (256, True)
    """
    if data is None:
        raise UsageError("evaluate: expected data, got none")
    request = EvaluationRequest(label, split, task, learner, tau, rows, exact_rows, jobs, output_dtype)
    sweeps = [Sweep(key, tuple(values)) for key, values in sweep.items()] if isinstance(sweep, Mapping) else [
        read_sweep(text) for text in sweep
    ]  # fmt: skip
    messages: list[str] = []
    listener = (listener or Listener(warn=messages.append)).once()
    figure_data = None if report is None else FigureData()
    candidates = list_candidates(_as_list(model), _as_list(config), sweeps, seeds)
    for candidate in candidates:
        if candidate.config is not None:
            check_label(candidate.config, label)
    # One BLAS thread, so that results do not depend on the number of cores. Values that overflow show in the results,
    # and are refused or become null.
    with (
        report_folder(report),
        one_blas_thread(),
        np.errstate(over="ignore", divide="ignore", invalid="ignore"),
    ):
        with rereadable(data, reading) as rows_source:
            evaluator = Evaluator(rows_source, request, candidates, figure_data)
            records = [
                _finite(_record(evaluator, candidate, say, listener, len(candidates)))
                for candidate in candidates
            ]
        result = _report(records)
        if report is not None and figure_data is not None:
            write_report(report, rows_source.name, result, figure_data)
    for message in messages:
        warnings.warn(message, KafeatWarning, stacklevel=2)
    return {**records[0], **result} if len(records) == 1 else {**result}


def _report(records: list[EvaluationRecord]) -> Report:
    """Return the records with their summary and the recommendation."""
    summary = summarize(records)
    chosen = choose(summary)
    return {
        "records": records,
        "summary": summary,
        "budgets": budgets(summary) if len(summary) > 1 else {},
        "recommendation": recommend(summary),
        "edges": [] if chosen is None else edges(summary, chosen),
    }


def check_bounds(max_error: float | None, min_score: float | None) -> None:
    """Refuse bounds of a gate that are no finite numbers, as these would let everything pass."""
    for option, bound in (("--max-error", max_error), ("--min-score", min_score)):
        if bound is not None and not np.isfinite(bound):
            raise UsageError(f"{option}: expected a number, got {bound}")


def gate(report: Report, max_error: float | None, min_score: float | None) -> None:
    """Raise `GateError` unless the mean over the seeds of every map is within both bounds."""
    check_bounds(max_error, min_score)
    missed = []
    for entry in report["summary"]:
        for key, bound, sign in (("relative_frobenius", max_error, 1.0), ("score_map", min_score, -1.0)):
            if bound is None:
                continue
            if key not in entry:
                raise UsageError("--min-score: expected --label, as without one there is no score")
            value = estimate_of(entry, key)["mean"]
            if value is None or sign * value > sign * bound:
                most = "at most" if sign > 0 else "at least"
                got = "none" if value is None else f"{value:.4g}"
                missed.append(f"{spell(entry)}: {key}: expected {most} {bound:g}, got {got}")
    if missed:
        raise GateError("\n".join(missed))


def _as_list(value: Any) -> list[Any]:
    if value is None:
        return []
    return list(value) if isinstance(value, list | tuple) else [value]


def _record(
    evaluator: Evaluator, candidate: Candidate, say: Say | None, listener: Listener, n: int
) -> EvaluationRecord:
    """Evaluate one map of n; if there are several, an error names the map."""
    try:
        return evaluator.record(candidate, say, listener)
    except DataError as error:
        if n == 1:
            raise
        raise DataError(f"{candidate.spelled}: {error}") from None


def _finite(record: EvaluationRecord) -> EvaluationRecord:
    # A ratio to zero has no value, and is null in JSON.
    values = {
        key: None if isinstance(value, float) and not np.isfinite(value) else value
        for key, value in record.items()
    }
    return cast(EvaluationRecord, values)


_PICTURES = (".png", ".svg")


@contextmanager
def report_folder(folder: str | None) -> Iterator[None]:
    """Make the folder of a report before the work, and refuse it if it is not writeable or matplotlib is missing.

    A new folder that is still empty at the end is removed.
    """
    if folder is None:
        yield
        return
    if is_remote(folder):
        raise UsageError(f"--report: expected a folder on this machine, got {folder}; copy the pages there")
    new = not os.path.isdir(folder)
    _check_folder(folder)
    try:
        yield
    finally:
        if new:
            with suppress(OSError):  # it holds the report
                os.rmdir(folder)


def _check_folder(folder: str) -> None:
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
    """Return the files that a report would write to a folder, as far as known: the page, and old pictures."""
    with suppress(OSError):
        old = [name for name in os.listdir(folder) if name.endswith(_PICTURES)]
        return [os.path.join(folder, name) for name in ("index.html", *sorted(old))]
    return [os.path.join(folder, "index.html")]


def write_report(folder: str, data: str, report: Report, figure_data: FigureData) -> None:
    """Write `index.html`, which needs no other file, and each picture as a separate file beside it."""
    from kafeat.evaluation.report.page import page
    from kafeat.evaluation.report.pictures import pictures

    drawn = list(pictures(report["summary"], figure_data.exhibits))
    index = os.path.join(folder, "index.html")
    before = _pictures_of_page(index)
    for picture in drawn:
        write_bytes(os.path.join(folder, f"{picture.name}.{picture.kind}"), picture.files["light"])
    write_bytes(index, page(report, data, drawn).encode())
    # Pictures of the previous page would be mistaken for those of this one.
    for name in before - {f"{picture.name}.{picture.kind}" for picture in drawn}:
        if not name.endswith(_PICTURES):
            continue
        with suppress(OSError):
            os.unlink(os.path.join(folder, name))


def _pictures_of_page(index: str) -> set[str]:
    """Return the names of the pictures that an earlier page lists."""
    try:
        with open(index, encoding="utf-8") as file:
            listed = re.search(r'<meta name="kafeat-pictures" content="([\w. -]*)">', file.read(1 << 16))
    except (OSError, ValueError):
        return set()
    return set(listed[1].split()) if listed else set()
