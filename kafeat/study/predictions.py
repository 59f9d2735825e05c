"""Score the predictions of finished models, on the rows of an evaluation or on all rows of a data set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from kafeat.config import Config
from kafeat.errors import DataError, GateError, UsageError
from kafeat.io.options import InputOptions
from kafeat.jobs.fit.labels import LabelSummary, joint_labels, plain_names
from kafeat.jobs.fit.messages import Listener
from kafeat.jobs.fit.predictor import check_rereadable, fit_predictor
from kafeat.jobs.fit.sample import TrainingData
from kafeat.maths.scoring import check_scoring, score_of_constant, usual_scoring
from kafeat.model.feature_map import FeatureMap
from kafeat.model.load import load
from kafeat.model.predictor import FittedPredictor
from kafeat.model.provenance import printable
from kafeat.pictures.figure_data import ModelFigures
from kafeat.study.inputs import EvaluatedMap, RereadableData, rereadable
from kafeat.study.learners import equivalent_predictor
from kafeat.study.preparation import Truth
from kafeat.study.request import EvaluationRequest
from kafeat.study.scores import ModelScoring
from kafeat.types import Array, Mask


class ScoredModel(NamedTuple):
    """Entries of a record about the predictions of a model, and the data of their figures."""

    keys: dict[str, Any]
    figures: ModelFigures


def score_model(
    fm: FeatureMap, subject: EvaluatedMap, truth: Truth, test: Mask, request: EvaluationRequest, deciding: str
) -> ScoredModel | None:
    """Score the predictions of the test rows; None without a predictor, or if it predicts other labels."""
    predictor = fm.predictor
    order = None if predictor is None else _order(predictor, request.labels)
    if predictor is None or order is None:
        return None
    scoring = ModelScoring.of(truth.task, predictor.labels)
    rows, outputs = subject.predictions(fm, test)
    outputs, labels = outputs[:, order] if predictor.labels.classes is None else outputs, truth.labels[rows]
    figures = scoring.figures(outputs, labels, deciding)
    keys: dict[str, Any] = {f"{key}_model": value for key, value in figures.items()}
    keys |= {"equivalent_model": equivalent_predictor(predictor)}
    return ScoredModel(keys, scoring.drawn(outputs, labels))


def _order(predictor: FittedPredictor, labels: Sequence[str]) -> list[int] | None:
    """Return the output of each of these labels; None if the model predicts others."""
    names = predictor.labels.names
    if not names:  # they were given in memory
        outputs = 1 if predictor.labels.classes is not None else predictor.n_outputs
        return list(range(len(labels))) if outputs == len(labels) else None
    asked = [printable(label) for label in labels]
    return [names.index(one) for one in asked] if set(asked) == set(names) else None


def with_predictor(
    fm: FeatureMap,
    config: Config,
    data: RereadableData,
    request: EvaluationRequest,
    labels: Array,
    held_out: Mask,
    listener: Listener,
) -> FeatureMap:
    """Return a map with the predictor that its config ends in, fitted on the rows that are not held out."""
    if config.predictor is None:
        return fm
    summary = LabelSummary()
    summary.add(labels[~held_out])
    with data.open() as source:
        check_rereadable(source, config.predictor)
        training = TrainingData(source, request.labels, request.split, held_out)
        return fit_predictor(fm, training, summary, request.jobs, listener)


def test_rows_seen(fm: FeatureMap, data: RereadableData, test: Mask) -> int | None:
    """Return how many test rows a saved model may have learned from; None if it was fitted on another file."""
    if not data.made(fm):
        return None
    split = fm.provenance.split
    return int((test if split is None else test & ~data.test_rows_of(split)).sum())


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


def refuse_low_scores(records: Sequence[Mapping[str, Any]], least: float | None) -> None:
    """Raise `GateError` if a model has a score below `least`, or none."""
    if least is None:
        return
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
    task = data.task_of(labels, "regression" if own.classes is None else "classification")
    deciding = scoring or usual_scoring(task.kind)
    check_scoring(deciding, task.kind)
    every, request = np.ones(n, dtype=bool), EvaluationRequest(labels=names, jobs=jobs)
    subject = EvaluatedMap(fm, data, n, request)
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
