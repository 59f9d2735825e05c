"""Evaluate maps on a data set: kernel errors, scores of models on the features, and bounds that maps must satisfy."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from kafeat.chain import one_blas_thread
from kafeat.errors import DataError, GateError, KafeatWarning, UsageError, quoted
from kafeat.jobs.fit import Listener, RereadableData, check_label, check_weight, recipe_of, rereadable
from kafeat.jobs.options import with_keywords
from kafeat.pictures import MapFigures
from kafeat.runtime.environment import count_jobs
from kafeat.study.candidates import ComparedMap, Sweep, by_row_numbers, list_candidates, read_sweep
from kafeat.study.evaluation import Evaluation
from kafeat.study.machines import learner_of
from kafeat.study.measure import Evaluator, choose_rows, with_soft_label
from kafeat.study.recommendation import recommend, score_of_choice
from kafeat.study.records import Record, Report
from kafeat.study.report.document import report_folder
from kafeat.study.request import EvaluationRequest
from kafeat.study.summary import spell, summarize


@with_keywords(EvaluationRequest)
def evaluate(asked: EvaluationRequest) -> Evaluation:
    """Evaluate maps: errors against the exact kernel and, with a label, scores of models that predict it.

    Parameters
    ----------
    model : FeatureMap, str, path, list of these or None, default None
        Maps, or paths of model files.
    data : str, path, array (n_rows, n_columns), sparse matrix or table
        Rows to evaluate on: in memory, or the path or URI of a file or data set.
    label : str, list of str or None, default None
        Column to predict, or several columns of numbers, whose R² is averaged; None compares kernels only.
    reading : InputOptions or None, default None
        Options for reading a file.
    config : as for `kafeat.fit`, or list of such recipes, default ()
        Recipes, which are fitted on the rows that are not held out. A list of steps counts as one recipe.
    sweep : list of str or mapping of str to list, default ()
        Values of parameters of the recipes, as `"n_components=64,128"` or `{"n_components": [64, 128]}`. Every
        combination is evaluated.
    say : callable or None, default None
        Called with a line about each step of the work.
    listener : Listener or None, default None
        Callbacks for the fits; None turns their warnings into `kafeat.errors.KafeatWarning`.

    Returns
    -------
    Evaluation
        A dict with `records`, one for each map, setting, seed and split, their `summary`, and a recommendation;
        docs/reference/json.md lists all keys. If there is a single record, its keys are at the top too. A notebook
        shows the dict as a table; `to_pandas` makes a data frame of it, and `plot` a figure.

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
    messages: list[str] = []
    listener = (asked.listener or Listener(warn=messages.append)).once()
    exhibits: list[MapFigures] | None = None if asked.report is None else []
    candidates, data = _candidates(asked), asked.data
    asked = with_soft_label(asked, candidates)
    labelled = asked.labels if asked.drop_unlabelled else None
    # One BLAS thread, so that results do not depend on the number of cores. NumPy does not warn of overflows, because
    # they make results infinite, and such results become errors or null.
    with (
        report_folder(asked.report),
        one_blas_thread(linalg=True),
        np.errstate(over="ignore", divide="ignore", invalid="ignore"),
    ):
        with rereadable(data, asked.reading, labelled) as source:
            fitted = [one.fitted.columns.file_dialect for one in candidates if one.fitted is not None]
            source = replace(source, fitted=fitted[0] if fitted else None)
            records = _records(*by_row_numbers(source, asked, candidates), asked, exhibits, listener)
        result = _report(records)
        if asked.report is not None and exhibits is not None:
            from kafeat.study.report.page import write_evaluation

            write_evaluation(asked.report, source.name, result, exhibits)
    for message in messages:
        warnings.warn(message, KafeatWarning, stacklevel=3)
    return Evaluation(result)


def _candidates(asked: EvaluationRequest) -> list[ComparedMap]:
    """Return the maps to compare. Before any data are read, refuse maps that cannot be compared."""
    if asked.data is None:
        raise UsageError("evaluate: expected data, got none")
    label, sweep = asked.label, asked.sweep
    several = isinstance(label, list | tuple) and all(isinstance(name, str) for name in label)
    _refuse_values("label", None if several else label)
    _refuse_values("split", asked.split)
    sweeps = [Sweep(key, tuple(values)) for key, values in sweep.items()] if isinstance(sweep, Mapping) else [
        read_sweep(text) for text in _as_list(sweep)
    ]  # fmt: skip
    configs = _as_list(asked.config)
    if any(isinstance(one, Mapping) and "kind" in one for one in configs):  # a list of steps is one config
        configs = [configs]
    listed = list_candidates(_as_list(asked.model), configs, sweeps, asked.seeds)
    candidates = _split_alike(listed, asked)
    _check_splits(asked, candidates)
    for candidate in candidates:
        if candidate.fitted is None:
            check_label(candidate.config, asked.labels)
            check_weight(candidate.config, asked.weight, (*asked.labels, asked.split))
    return candidates


def _refuse_values(argument: str, column: object) -> None:
    """Refuse values where the name of a column is expected."""
    if column is not None and not isinstance(column, str):
        raise UsageError(
            f"{argument}: expected the name of a column of the data, got {type(column).__name__}: put the values into "
            "the data as a column, and give its name"
        )


def _split_alike(candidates: Sequence[ComparedMap], asked: EvaluationRequest) -> list[ComparedMap]:
    """Return the candidates with the columns and the `split_by` of the request, so that all hold out the same rows."""
    split_by = asked.split_by
    own = {one.config.split_by for one in candidates}
    if split_by is None and len(own) > 1:
        raise UsageError(
            f"split_by: expected the same in all recipes, got {' and '.join(sorted(map(str, own)))}: give --split-by"
        )
    return [
        replace(one, config=recipe_of(one.config, None, split_by, asked.exclude, asked.only))
        for one in candidates
    ]


def _check_splits(asked: EvaluationRequest, candidates: Sequence[ComparedMap]) -> None:
    """Refuse several splits if a column or times decide the split, or if a model is already fitted."""
    if asked.splits == 1:
        return
    if asked.split is not None:
        raise UsageError(
            f"--splits: expected no --split with it, got {quoted(asked.split)}, which splits the rows"
        )
    if (candidates[0].config.split_by or "").startswith("time:"):
        raise UsageError("--splits: expected no split by times, since the latest rows do not vary")
    fitted = next((one.name for one in candidates if one.fitted is not None), None)
    if fitted is not None:
        raise UsageError(
            f"--splits: expected recipes (--config), which are fitted in each split, got the model {fitted}"
        )


def _records(
    data: RereadableData,
    candidates: Sequence[ComparedMap],
    request: EvaluationRequest,
    exhibits: list[MapFigures] | None,
    listener: Listener,
) -> list[Record]:
    """Evaluate every map in every split. If there are several maps, an error names its map."""
    for candidate in candidates:
        candidate.check(request.reserved)
    learner = None
    if request.labels:
        learner = learner_of(request.learner, request.tau, count_jobs(request.jobs), len(request.labels))
    records = []
    for i, rows in enumerate(choose_rows(data, request, candidates, request.splits, listener)):
        evaluator = Evaluator(data, request, learner, rows, exhibits)
        place = f"split {i + 1} of {request.splits}: " if request.splits > 1 else ""
        for candidate in candidates:
            named = f"{candidate.spelled}: "

            def tell(step: str, place: str = f"{place}{named}") -> None:
                if request.say is not None:
                    request.say(f"{place}{step}")

            try:
                records.append(evaluator.record(candidate, tell, listener))
            except DataError as error:
                raise error if len(candidates) == 1 else DataError(f"{named}{error}") from None
    return records


def _report(records: list[Record]) -> Report:
    """Return the report: the records, their summaries and the recommendation."""
    summaries, choice = summarize(records), score_of_choice(records)
    said = recommend(summaries, choice)
    return Report(records=records, summaries=summaries, recommendation=said, score_of_choice=choice)


def _as_list(value: Any) -> list[Any]:
    if value is None:
        return []
    return list(value) if isinstance(value, list | tuple) else [value]


def gate(report: Report, max_error: float | None, min_score: float | None) -> None:
    """Raise `GateError` if, on average over seeds, a map has a larger error or a lower score than these bounds."""
    missed = []
    for entry in report.summaries:
        error, score = entry.kernel["relative_frobenius"]["mean"], entry.mean("map")
        for value, bound, expected, sign in (
            (error, max_error, "relative Frobenius error: expected at most", 1.0),
            (score, min_score, "score of the features: expected at least", -1.0),
        ):
            if bound is not None and (value is None or sign * value > sign * bound):
                got = "none" if value is None else f"{value:.4g}"
                missed.append(f"{spell(entry.about)}: {expected} {bound:g}, got {got}")
    if missed:
        raise GateError("\n".join(missed))
