"""Score the predictions of finished models on all rows of a data set, and train nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from kafeat.errors import DataError, GateError, UsageError
from kafeat.evaluation.learners import Truth
from kafeat.jobs.evaluate.inputs import EvaluatedMap, RereadableData, rereadable
from kafeat.jobs.evaluate.predictor import score_model, test_rows_seen
from kafeat.jobs.evaluate.request import EvaluationRequest
from kafeat.jobs.fit.labels import joint_labels, plain_names
from kafeat.jobs.transform.options import InputOptions
from kafeat.maths.scoring import check_scoring, score_of_constant, usual_scoring
from kafeat.maths.task import PredictionTask, task_of
from kafeat.model.feature_map import FeatureMap
from kafeat.model.load import load
from kafeat.types import Array


def score_predictions(
    models: Sequence[str],
    data: str,
    label: Sequence[str] = (),
    scoring: str | None = None,
    reading: InputOptions | None = None,
    jobs: int | None = None,
) -> list[dict[str, Any]]:
    """Return a record with the scores of every model, which ends in a predictor; docs/evaluate.md has its keys.

    Without `label` it is the one that the model was fitted with. `scoring` names the score that decides.
    """
    with rereadable(data, reading) as source:
        return [
            {"map": model, **_scored(load(model), model, source, label, scoring, jobs)} for model in models
        ]


def refuse_low_scores(records: Sequence[Mapping[str, Any]], least: float) -> None:
    """Raise `GateError` if a model has a score below `least`, or none."""
    low = [record for record in records if not record["score_model"] >= least]
    if low:
        got = "\n".join(
            f"{one['map']}: score_model: expected at least {least:g}, got {one['score_model']:.4g}"
            for one in low
        )
        raise GateError(got)


def _scored(
    fm: FeatureMap,
    name: str,
    data: RereadableData,
    label: Sequence[str],
    scoring: str | None,
    jobs: int | None,
) -> dict[str, Any]:
    if fm.predictor is None:
        raise UsageError(
            f"{name}: expected a model that ends in a predictor, such as ridge, got a map of features alone"
        )
    own = fm.predictor.labels
    names = tuple(label or data.columns_named(own.names))
    if not names:
        raise UsageError("--all-rows: expected --label, as the model was fitted on labels without a name")
    n, columns = data.label_columns({"--label": names})
    if not n:
        raise DataError(f"{data.name}: expected rows to score, got none")
    labels = joint_labels({one: columns[one] for one in names}, data.name)
    task = _task(labels, "regression" if own.classes is None else "classification", data)
    deciding = scoring or usual_scoring(task.kind)
    check_scoring(deciding, task.kind)
    every, request = np.ones(n, dtype=bool), EvaluationRequest(labels=names, jobs=jobs)
    subject = EvaluatedMap(fm, data, n, list(names), jobs, None)
    truth = Truth(task, labels, np.zeros(n, dtype=np.intp))
    scored = score_model(fm, subject, truth, every, request, deciding)
    if scored is None:
        raise UsageError(
            f"{name}: expected a model that predicts {', '.join(names)}, got one that predicts "
            f"{', '.join(own.names) or 'other labels'}"
        )
    return {
        "label": plain_names(names), "task": task.kind, "rows_test": n, "scoring": deciding, **scored.keys,
        "score_constant": score_of_constant(deciding, task, labels, labels),
        "test_rows_seen_model": test_rows_seen(fm, data, every),
    }  # fmt: skip


def _task(labels: Array, kind: Any, data: RereadableData) -> PredictionTask:
    try:
        return task_of(labels, kind)
    except DataError as error:
        with data.open() as source:
            raise DataError(f"{source.location}: {error}") from None
