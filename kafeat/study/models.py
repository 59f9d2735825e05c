"""Score the predictions of finished models, and check their promised coverage and calibration on test rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np

from kafeat.contract import Folded, InputRows
from kafeat.errors import DataError, GateError, UsageError
from kafeat.io.storage.location import parse_location
from kafeat.jobs.fit import (
    MapOnData,
    RereadableData,
    fit_predictor,
    label_names,
    label_of_task,
    plain_names,
    rereadable,
)
from kafeat.maths import (
    INTERVAL,
    Intervals,
    Judged,
    PredictionTask,
    Score,
    TaskKind,
    calibration_p_value,
    class_numbers,
    compared_errors,
    compared_scores,
    coverage_p_value,
    reliability,
    task_to_score,
)
from kafeat.model import FeatureMap, PredictedLabels, load_from
from kafeat.pictures import ModelFigures
from kafeat.study.candidates import Fit
from kafeat.study.learners import Tested, Truth, equivalent_predictor
from kafeat.study.records import Entries, Record, Scored
from kafeat.study.request import EvaluationRequest
from kafeat.study.scores import Scoring
from kafeat.types import Array, Floats, Mask

# Levels of intervals whose coverage is measured.
_LEVELS = (0.8, 0.9, 0.95)
Levels = tuple[float, ...]
_OF_MODELS: tuple[Judged, ...] = ("probabilities", "intervals")


@dataclass(frozen=True)
class ModelScoring:
    """The scores of a model on labels. The classes of `task` are those of the model and those of the labels.

    Classes are compared by their names, because another file may hold them as another type.
    """

    task: PredictionTask
    model: PredictedLabels
    places: Array
    """The index of each class of the model among the classes of the task."""

    @classmethod
    def of(cls, task: PredictionTask, model: PredictedLabels) -> ModelScoring:
        """Return how to score a model on the labels. Refuse regression for classes, and classification for numbers."""
        predicts = "regression" if model.classes is None else "classification"
        if predicts != task.kind:
            told = {"regression": "numbers", "classification": "classes"}
            raise DataError(
                f"label: expected {told[predicts]}, which the model predicts, got {told[task.kind]}: give "
                f"--task {'soft' if model.soft else predicts}"
            )
        if task.classes is None:
            return cls(task, model, np.empty(0, dtype=np.intp))
        known, own = model.class_names, [model.name_of(one) for one in task.classes.tolist()]
        text = model.type == "text"
        if text != (task.classes.dtype.kind == "O") and not set(own) <= set(known):
            wanted, found = ("text", "numbers") if text else ("numbers", "text")
            raise DataError(
                f"label: expected {wanted}, like the classes of the model, got {found}: "
                "give the column that the model was fitted with"
            )
        classes = sorted({*known, *own}, key=Decimal if model.type in ("integer", "number") else None)
        places = np.array([classes.index(one) for one in known])
        return cls(PredictionTask("classification", np.array(classes, dtype=object)), model, places)

    def predicted(self, outputs: Floats) -> Floats:
        """Return the model's predictions in the form of the task: probabilities of all classes, or scaled numbers."""
        if self.task.classes is None:
            return (outputs - self.task.centre) / self.task.unit
        wide: Floats = np.zeros((len(outputs), len(self.task.classes)))
        wide[:, self.places] = outputs
        return wide

    def named(self, labels: Array) -> Array:
        """Return the names of labels that are classes. Numbers and probabilities of classes stay as they are."""
        if self.task.classes is None or labels.ndim > 1:
            return labels
        classes, numbers = class_numbers(labels)
        return np.array([self.model.name_of(one) for one in classes.tolist()], dtype=object)[numbers]

    def own_classes(self, labels: Array) -> tuple[Array, Mask]:
        """Return the index of each label among the model's classes, and a mask of the labels that the model knows."""
        if self.task.classes is None:
            raise TypeError("a regression has no classes")
        own = np.full(len(self.task.classes), -1)
        own[self.places] = np.arange(len(self.places))
        numbers = own[self.task.numbers(self.named(labels))]
        known: Mask = numbers >= 0
        return np.maximum(numbers, 0), known

    def known(self, tested: Tested) -> Tested:
        """Convert predictions, labels and intervals to the classes of `task`, or to its scale for numbers."""
        ends = None if tested.ends is None else self.predicted(tested.ends)
        return tested._replace(
            predicted=self.predicted(tested.predicted), labels=self.named(tested.labels), ends=ends
        )


def drawn(task: PredictionTask, tested: Tested) -> ModelFigures | None:
    """Return the data of the reliability diagram and the confusion matrix, or None if the rows have no true classes."""
    if task.classes is None or tested.labels.ndim > 1:
        return None
    numbers, k = task.numbers(tested.labels), len(task.classes)
    counts = np.bincount(numbers * k + tested.predicted.argmax(axis=1), minlength=k * k).reshape(k, k)
    return reliability(tested.predicted, numbers), (counts, tuple(map(str, task.classes)))


class _Held(NamedTuple):
    """Labels compared with intervals: for each level, `covered` (n, k) marks labels inside, `sizes` (n, k) are lengths.

    `p_value` tests if `errors` (n,) are larger than those of held-out training rows. For classes, an interval is a set,
    its length is the number of its classes, and `calibration` has the calibration error and its p-value. For numbers,
    `calibration` is empty.
    """

    covered: list[Mask]
    sizes: list[Array]
    errors: Floats
    p_value: float | None
    calibration: Entries


def _classes_held(intervals: Intervals, scoring: ModelScoring, tested: Tested, levels: Levels) -> _Held:
    """Compare the predicted sets of classes with the true classes."""
    outputs, of_fit = tested.predicted, intervals.calibration_rows
    right, known = scoring.own_classes(tested.labels)
    errors = intervals.errors_of(outputs, np.eye(outputs.shape[1])[right] * known[:, None])
    sets, every = [intervals.sets(outputs, level) for level in levels], np.arange(len(right))
    p_value = None if of_fit is None else calibration_p_value(outputs, np.where(known, right, -1), of_fit)
    return _Held(
        [(one[every, right] & known)[:, None] for one in sets],
        [one.sum(axis=1, keepdims=True) for one in sets],
        errors,
        compared_errors(errors, intervals.error),
        {"calibration_error": intervals.calibration_error, "calibration_p_value": p_value},
    )


def _numbers_held(
    intervals: Intervals, tested: Tested, levels: Levels, ends: Floats, order: list[int]
) -> _Held:
    """Compare the intervals of a regression with the true numbers.

    `ends` (n, levels, k, 2) are in the order of the labels, and `order` holds the index of each label in the model.
    """
    truth, back = tested.labels.reshape(len(tested.labels), 1, -1), np.argsort(order)
    outputs, own = tested.predicted[:, back], truth[:, 0, back]
    scores = intervals.scores_of(own - outputs, levels[0], ends[:, 0, back])
    return _Held(
        list(np.moveaxis((ends[..., 0] <= truth) & (truth <= ends[..., 1]), 1, 0)),
        list(np.moveaxis(ends[..., 1] - ends[..., 0], 1, 0)),
        intervals.errors_of(outputs, own),
        compared_scores(scores, intervals.scores),
        {},
    )


def _promises(
    intervals: Intervals,
    scoring: ModelScoring,
    tested: Tested,
    levels: Levels,
    ends: Floats | None,
    order: list[int],
) -> dict[str, Any]:
    """Return coverage, errors and calibration on these rows, compared with the held-out training rows."""
    held = (
        _classes_held(intervals, scoring, tested, levels)
        if ends is None
        else _numbers_held(intervals, tested, levels, ends, order)
    )
    coverage, rows = [], len(intervals.scores)
    for level, one, size in zip(levels, held.covered, held.sizes, strict=True):
        least = int(np.argmin(one.mean(axis=0)))  # the label with the lowest coverage
        (n, k), count = one.shape, int(one[:, least].sum())
        p_value = min(1.0, k * coverage_p_value(count, n, level, rows))
        mean = float(size[:, least].mean())
        coverage.append({"level": level, "coverage": count / n, "size": mean, "p_value": p_value})
    held_out = {
        "rows": rows, "score": 1.0 - float(intervals.error[0]), "score_here": 1.0 - float(held.errors.mean()),
        "p_value": held.p_value, **held.calibration,
    }  # fmt: skip
    return {"coverage": coverage, "held_out": held_out}


class ScoredModel(NamedTuple):
    """The scores and coverage of a model's predictions, the data of figures, and functions to predict and to score."""

    entries: Entries
    figures: ModelFigures | None
    predict: Callable[[InputRows], Floats]
    """Returns the predictions (n, k) for rows (n, d)."""
    score: Callable[[Tested], float]
    """Returns the deciding score of predictions."""


def score_model(
    fm: FeatureMap,
    subject: MapOnData,
    truth: Truth,
    test: Mask,
    request: EvaluationRequest,
    deciding: Score,
) -> ScoredModel | None:
    """Score the predictions for the test rows. Return None if the map has no predictor, or one for other labels."""
    predictor, order = fm.predictor, fm.predictor.order_of(request.labels) if fm.predictor else None
    if predictor is None or order is None:
        return None
    rule, k = ModelScoring.of(truth.task, predictor.labels), predictor.n_outputs
    scoring = Scoring(rule.task, deciding, probabilities=True)
    levels = tuple(level for level in sorted({*_LEVELS, deciding.level}) if predictor.has_interval(level))
    rows, made = subject.predictions(fm, test, levels)

    def outputs_of(made: Floats) -> Floats:
        return made[:, :k][:, order] if predictor.labels.classes is None else made

    tested = truth.tested(rows, outputs_of(made))
    ends = made[:, k:].reshape(len(made), -1, k, 2)[:, :, order] if made.shape[1] > k else None
    if ends is not None and deciding.level in levels:
        tested = tested._replace(ends=ends[:, levels.index(deciding.level)].swapaxes(1, 2))
    known = rule.known(tested)
    figures = drawn(rule.task, known)
    error = {} if figures is None else {"calibration_error": figures[0].error}
    entries: Entries = {**scoring.every(known), **error, "equivalent": equivalent_predictor(predictor)}
    if predictor.intervals is not None and levels:
        entries |= _promises(predictor.intervals, rule, tested, levels, ends, order)
    return ScoredModel(
        entries,
        figures,
        lambda X: outputs_of(subject.predict(fm, X)),
        lambda tested: scoring.score(rule.known(tested)),
    )


def with_predictor(fit: Fit, data: RereadableData) -> FeatureMap:
    """Return a map with the predictor of its config, which is fitted here on the training rows of the map."""
    if fit.job is None:
        return fit.map
    with data.open() as source:
        rows = replace(fit.job.data, source=source)
        return fit_predictor(fit.map, replace(fit.job, data=rows))


def test_rows_seen(fm: FeatureMap, data: RereadableData, test: Mask) -> int | None:
    """Return how many test rows a saved model may have learned from, or None if it was fitted on another file."""
    learned = data.learned_from(fm, len(test))
    return None if learned is None else int((test & learned).sum())


def score_predictions(
    models: Sequence[str], data: str, label: Sequence[str] = (), scoring: str | None = None, **asked: Any
) -> list[Record]:
    """Return one record with scores for each model. All must end in a predictor. docs/reference/json.md lists the keys.

    The default `label` is the one that the model was fitted with. `scoring` names the deciding score. `asked` are
    options of an evaluation: `reading`, `interval`, `drop_unlabelled` and `jobs`.
    """
    request = EvaluationRequest(label=tuple(label), scoring=scoring or (), **asked)
    with rereadable(data, request.reading, request.labels if request.drop_unlabelled else None) as source:
        loaded = [(load_from(parse_location(model)), model) for model in models]
        return [
            _scored(fm, model, replace(source, fitted=fm.columns.file_dialect), request)
            for fm, model in loaded
        ]


def refuse_low_scores(
    records: Sequence[Record],
    least: float | None,
    least_coverage: float | None = None,
    level: float = INTERVAL,
) -> None:
    """Raise `GateError` if a score is below `least` or undefined, or if intervals cover less than `least_coverage`."""
    low = list[str]()
    for record in records:
        name, model = record.about["map"], record.scored.tested["model"]
        covered = [each["coverage"] for each in model.get("coverage", ()) if each["level"] == level]
        if least_coverage is not None and not covered:
            raise UsageError(
                f"--min-coverage: expected a model with intervals of {level:g}, got {name}: fit it again with "
                "--intervals, or on more rows"
            )
        score = model["score"] if np.isfinite(model["score"]) else None
        found = [("score_model", least, score)]
        found += [(f"coverage of {level:g}", least_coverage, covered[0])] if covered else []
        low += [
            f"{name}: {what}: expected at least {bound:g}, got {'none' if got is None else format(got, '.4g')}"
            for what, bound, got in found
            if bound is not None and (got is None or got < bound)
        ]
    if low:
        raise GateError("\n".join(low))


def _scored(fm: FeatureMap, name: str, data: RereadableData, request: EvaluationRequest) -> Record:
    predictor = fm.needed_predictor(name)
    own = predictor.labels
    names = request.labels or tuple(data.columns_named(own.names))
    soft = own.soft and len(names) > 1
    request = replace(request, label=label_names(label_of_task(names, "soft" if soft else "auto")))
    labels, task = _labels_to_score(own, data, request)
    some = _OF_MODELS if predictor.has_interval(request.interval) else _OF_MODELS[:1]
    deciding = Scoring.of(task, request, name, some).first
    every, truth = np.ones(len(labels), dtype=bool), Truth(task, labels, Folded.of(None, len(labels)))
    subject = MapOnData(fm, data, jobs=request.jobs, reserved=request.reserved)
    scored = score_model(fm, subject, truth, every, request, deciding)
    if scored is None:
        raise UsageError(
            f"{name}: expected a model that predicts {', '.join(request.labels)}, got one that predicts "
            f"{', '.join(own.names) or 'other labels'}"
        )
    rule = ModelScoring.of(task, own)
    named = rule.named(labels)
    tested = {
        "model": {**scored.entries, "test_rows_seen": test_rows_seen(fm, data, every)},
        "constant": {"score": deciding.of_constant(rule.task, named, named)},
    }
    about = {
        "map": name, "label": plain_names(request.labels), "task": task.kind, "rows_test": len(labels),
        "scoring": deciding.name,
    }  # fmt: skip
    return Record(about=about, scored=Scored(tested=tested))


def _labels_to_score(
    own: PredictedLabels, data: RereadableData, request: EvaluationRequest
) -> tuple[Array, PredictionTask]:
    """Return the labels of all rows, and their task."""
    if not request.labels:
        raise UsageError("--all-rows: expected --label, since the model's labels have no name")
    labels = data.rows_known(request.labels).labels
    if labels is None or not len(labels):
        raise DataError(f"{data.name}: expected rows to score, got none")
    kind: TaskKind = "regression" if own.classes is None else "classification"
    kind = "soft" if own.soft and labels.ndim > 1 else kind
    return labels, data.task_of(labels, kind, task_to_score, request.labels)
