"""Score the predictor that a model or a config ends in, by its own predictions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from kafeat.config import Config
from kafeat.evaluation.learners import Truth, equivalent_predictor
from kafeat.evaluation.scores import ModelFigures, ModelScoring
from kafeat.jobs.evaluate.inputs import EvaluatedMap, RereadableData
from kafeat.jobs.evaluate.request import EvaluationRequest
from kafeat.jobs.fit.label_summary import LabelSummary
from kafeat.jobs.fit.labelled_rows import TrainingSource
from kafeat.jobs.fit.labels import parse_test_rows
from kafeat.jobs.fit.messages import Listener
from kafeat.jobs.fit.predictor import check_rereadable, fit_predictor
from kafeat.model.feature_map import FeatureMap
from kafeat.model.predictor import FittedPredictor
from kafeat.model.provenance import printable
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
        training = TrainingSource(source, request.labels, request.split, held_out)
        return fit_predictor(fm, training, summary, request.jobs, listener)


def test_rows_seen(fm: FeatureMap, data: RereadableData, test: Mask) -> int | None:
    """Return how many test rows a saved model may have learned from; None if it was fitted on another file."""
    with data.open() as source:
        if source.digest() not in {origin.sha256 for origin in fm.provenance.sources}:
            return None
    split = fm.provenance.split
    if split is None:
        return int(test.sum())
    unseen, _ = parse_test_rows(data.column_named(split))
    return int((test & ~np.asarray(unseen)).sum())
