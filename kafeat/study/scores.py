"""The scores of an evaluation, of learners and of finished models: one decides, the others have their names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np

from kafeat.contract.folds import Folded
from kafeat.contract.tile import InputRows
from kafeat.errors import DataError, GateError, UsageError
from kafeat.jobs.fit.labels import plain_names
from kafeat.jobs.fit.map_on_data import MapOnData
from kafeat.jobs.fit.predictor import fit_predictor
from kafeat.jobs.fit.reread import RereadableData, rereadable
from kafeat.maths.calibration import calibration_p_value, reliability
from kafeat.maths.intervals import Intervals, compared_errors, compared_scores, coverage_p_value
from kafeat.maths.scoring import INTERVAL, Judged, Score, score_for, scores_of
from kafeat.maths.task import PredictionTask, class_numbers, task_to_score
from kafeat.model.feature_map import FeatureMap
from kafeat.model.load import load
from kafeat.model.predictor import PredictedLabels
from kafeat.pictures.figure_data import ModelFigures
from kafeat.study.candidates import Fit
from kafeat.study.learners import Tested, Truth, equivalent_predictor
from kafeat.study.records import Entries, Record, Scored
from kafeat.study.request import EvaluationRequest
from kafeat.types import Array, Floats, Mask

_RESAMPLES = 100
# Levels of intervals whose coverage is measured.
_LEVELS = (0.8, 0.9, 0.95)


def resampled_scores(
    scoring: Score,
    task: PredictionTask,
    predicted: Floats,
    labels: Array,
    n: int,
    rng: np.random.Generator | None = None,
    groups: Floats | None = None,
) -> list[float]:
    """Return the scores on `n` resamples of the rows, or of whole groups (n_rows,)."""
    rng = rng or np.random.default_rng(0)
    if groups is None:
        draws = [rng.integers(len(labels), size=len(labels)) for _ in range(n)]
    else:
        names, own = np.unique(groups, return_inverse=True)
        counts = [
            np.bincount(rng.integers(len(names), size=len(names)), minlength=len(names)) for _ in range(n)
        ]
        draws = [np.repeat(np.arange(len(own)), count[own]) for count in counts]
    return [scoring.of(task, predicted[rows], labels[rows]) for rows in draws]


@dataclass(frozen=True)
class Scoring:
    """The rule that scores predictions: the task, the score that decides, and true if predictions are probabilities."""

    task: PredictionTask
    first: Score
    probabilities: bool

    @classmethod
    def of(cls, task: PredictionTask, asked: EvaluationRequest, probabilities: bool) -> Scoring:
        """Return the scoring of the learner by the scores that are asked for, or by the usual one of the task."""
        predicts: tuple[Judged, ...] = ("probabilities",) if probabilities else ()
        scores = [
            score_for(name, task.kind, asked.learner, predicts, asked.interval)
            for name in asked.scores or ("auto",)
        ]
        return cls(task, scores[0], probabilities)

    def _judged(self, score: Score, tested: Tested) -> Floats | None:
        """Return the predictions that a score judges; None without any."""
        if score.judges == "intervals":
            return tested.ends
        return None if score.judges == "probabilities" and not self.probabilities else tested.predicted

    def score(self, tested: Tested) -> float:
        """Return the score that decides; a higher one is better, so an error counts as negative."""
        judged = self._judged(self.first, tested)
        return float("nan") if judged is None else self.first.of(self.task, judged, tested.labels)

    @property
    def _scores(self) -> list[Score]:
        return [replace(score, level=self.first.level) for score in scores_of(self.task.kind)]

    def every(self, tested: Tested, known: Tested | None = None) -> dict[str, float | None]:
        """Return all scores of the test rows, None where they do not judge what is predicted.

        `score` is the one that decides, `training_score` that of the `known` rows.
        """
        judged = {score: self._judged(score, tested) for score in self._scores}
        return {
            **self.deciding(tested),
            **({} if known is None else {"training_score": self.score(known)}),
            **{
                score.name: None if one is None else score.figure(self.task, one, tested.labels)
                for score, one in judged.items()
            },
        }

    def deciding(self, tested: Tested) -> dict[str, float | None]:
        """Return the score that decides, and its uncertainty where it has no formula."""
        uncertainty = self.uncertainty(tested)
        return {
            "score": self.score(tested),
            **({} if uncertainty is None else {"score_uncertainty": uncertainty}),
        }

    def of_constant(self, known: Array, labels: Array) -> dict[str, float]:
        """Return the scores of one prediction for all rows: the mean of `known`, or its shares of the classes."""
        figures = {
            score.name: score.stated(score.of_constant(self.task, known, labels)) for score in self._scores
        }
        return {"score": self.first.stated(figures[self.first.name]), **figures}

    def uncertainty(self, tested: Tested) -> float | None:
        """Return the standard error of the score, from resampled rows or groups; None if it has a formula."""
        judged, groups = self._judged(self.first, tested), tested.groups
        if judged is None or (groups is None and self.first.noise is not None):
            return None
        scores = resampled_scores(self.first, self.task, judged, tested.labels, _RESAMPLES, groups=groups)
        known = [one for one in scores if np.isfinite(one)]
        return float(np.std(known)) if len(known) > 1 else None


@dataclass(frozen=True)
class ModelScoring:
    """The task of a model on labels: all classes that it knows and those that the labels have beside, or numbers.

    Classes are compared by their names, as another file may hold them in another type.
    """

    task: PredictionTask
    model: PredictedLabels
    places: Array
    """The number of each class of the model among all classes."""

    @classmethod
    def of(cls, task: PredictionTask, model: PredictedLabels) -> ModelScoring:
        """Return the scoring of a model on labels of this task; refuse a model of the other task."""
        predicts = "regression" if model.classes is None else "classification"
        if predicts != task.kind:
            told = {"regression": "numbers", "classification": "classes"}
            raise DataError(
                f"label: expected {told[predicts]}, which the model predicts, got {told[task.kind]}: say "
                f"--task {predicts}"
            )
        if task.classes is None:
            return cls(task, model, np.empty(0, dtype=np.intp))
        known, own = model.class_names, [model.name_of(one) for one in task.classes.tolist()]
        text = model.type == "text"
        if text != (task.classes.dtype.kind == "O") and not set(own) <= set(known):
            wanted, found = ("text", "numbers") if text else ("numbers", "text")
            raise DataError(
                f"label: expected {wanted}, as the classes of the model are, got {found}: "
                "give the column that the model was fitted with"
            )
        classes = sorted({*known, *own}, key=Decimal if model.type in ("integer", "number") else None)
        places = np.array([classes.index(one) for one in known])
        return cls(PredictionTask("classification", np.array(classes, dtype=object)), model, places)

    def predicted(self, outputs: Floats) -> Floats:
        """Return what the model predicts as the task has it: probabilities of all classes, or scaled numbers."""
        if self.task.classes is None:
            return (outputs - self.task.centre) / self.task.unit
        wide: Floats = np.zeros((len(outputs), len(self.task.classes)))
        wide[:, self.places] = outputs
        return wide

    def named(self, labels: Array) -> Array:
        """Return classes by their names, and numbers as they are."""
        if self.task.classes is None:
            return labels
        classes, numbers = class_numbers(labels)
        return np.array([self.model.name_of(one) for one in classes.tolist()], dtype=object)[numbers]

    def own_classes(self, labels: Array) -> tuple[Array, Mask]:
        """Return the number of each label among the classes of the model, and a mask of those that are among them."""
        if self.task.classes is None:
            raise TypeError("a regression has no classes")
        own = np.full(len(self.task.classes), -1)
        own[self.places] = np.arange(len(self.places))
        numbers = own[self.task.numbers(self.named(labels))]
        known: Mask = numbers >= 0
        return np.maximum(numbers, 0), known

    def known(self, tested: Tested) -> Tested:
        """Return predictions and labels as the task has them."""
        ends = None if tested.ends is None else self.predicted(tested.ends)
        return tested._replace(
            predicted=self.predicted(tested.predicted), labels=self.named(tested.labels), ends=ends
        )


def drawn(task: PredictionTask, tested: Tested) -> ModelFigures | None:
    """Return the data of the figures of classes."""
    if task.classes is None:
        return None
    numbers, k = task.numbers(tested.labels), len(task.classes)
    counts = np.bincount(numbers * k + tested.predicted.argmax(axis=1), minlength=k * k).reshape(k, k)
    return reliability(tested.predicted, numbers), (counts, tuple(map(str, task.classes)))


def _promises(
    intervals: Intervals,
    scoring: ModelScoring,
    tested: Tested,
    levels: tuple[float, ...],
    ends: Floats | None,
    order: list[int],
) -> dict[str, Any]:
    """Compare coverage, errors and calibration of the rows with what the fit knows of rows held out.

    `ends` (n, levels, k, 2) are those of numbers, in the order of the labels: `order` has their places in the model.
    """
    outputs, labels = tested.predicted, tested.labels
    calibration = {}
    if ends is None:
        right, known = scoring.own_classes(labels)
        targets = np.eye(outputs.shape[1])[right] * known[:, None]
        held = [intervals.sets(outputs, level) for level in levels]
        covered = [(one[np.arange(len(right)), right] & known)[:, None] for one in held]
        sizes = [one.sum(axis=1, keepdims=True) for one in held]
        of_fit = intervals.calibration_rows
        calibration = {
            "calibration_error": intervals.calibration_error,
            "calibration_p_value": None
            if of_fit is None
            else calibration_p_value(outputs, np.where(known, right, -1), of_fit),
        }
        errors = intervals.errors_of(outputs, targets)
        p_value = compared_errors(errors, intervals.error)
    else:
        truth = labels.reshape(len(labels), 1, -1)
        covered = list(np.moveaxis((ends[..., 0] <= truth) & (truth <= ends[..., 1]), 1, 0))
        sizes = list(np.moveaxis(ends[..., 1] - ends[..., 0], 1, 0))
        back = np.argsort(order)
        outputs, truth = outputs[:, back], truth[:, 0, back]
        errors = intervals.errors_of(outputs, truth)
        scores = intervals.scores_of(truth - outputs, levels[0], ends[:, 0, back])
        p_value = compared_scores(scores, intervals.scores)
    coverage = []
    for level, one, size in zip(levels, covered, sizes, strict=True):
        least = int(np.argmin(one.mean(axis=0)))  # of several labels, the one that is covered least
        (n, k), count = one.shape, int(one[:, least].sum())
        of_least = coverage_p_value(count, n, level, len(intervals.scores))
        coverage.append({
            "level": level, "coverage": count / n, "size": float(size[:, least].mean()),
            "p_value": min(1.0, k * of_least),
        })  # fmt: skip
    held_out = {
        "rows": len(intervals.scores), "score": 1.0 - float(intervals.error[0]),
        "score_here": 1.0 - float(errors.mean()), "p_value": p_value, **calibration,
    }  # fmt: skip
    return {"coverage": coverage, "held_out": held_out}


class ScoredModel(NamedTuple):
    """The scores and promises of the predictions of a model, the data of their figures, and how they are made."""

    entries: Entries
    figures: ModelFigures | None
    predict: Callable[[InputRows], Floats]
    """Returns the predictions (n, k) of rows (n, d)."""
    score: Callable[[Tested], float]
    """Returns the score of predictions that decides."""


def score_model(
    fm: FeatureMap,
    subject: MapOnData,
    truth: Truth,
    test: Mask,
    request: EvaluationRequest,
    deciding: Score,
) -> ScoredModel | None:
    """Score the predictions of the test rows; None without a predictor, or if it predicts other labels."""
    predictor = fm.predictor
    order = None if predictor is None else predictor.order_of(request.labels)
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
    """Return a map with the predictor that its config ends in, fitted on the rows that the map has learned from."""
    if fit.job is None:
        return fit.map
    with data.open() as source:
        rows = replace(fit.job.data, source=source)
        return fit_predictor(fit.map, replace(fit.job, data=rows))


def test_rows_seen(fm: FeatureMap, data: RereadableData, test: Mask) -> int | None:
    """Return how many test rows a saved model may have learned from; None if it was fitted on another file."""
    if not data.made(fm):
        return None
    split = fm.provenance.split
    return int((test if split is None else test & ~data.test_rows_of(split)).sum())


def score_predictions(
    models: Sequence[str], data: str, label: Sequence[str] = (), scoring: str | None = None, **asked: Any
) -> list[Record]:
    """Return a record with the scores of every model, which ends in a predictor; docs/reference/json.md has its keys.

    Without `label` it is the one that the model was fitted with. `scoring` names the score that decides. `asked` are
    options of an evaluation: `reading`, `interval`, `drop_unlabelled` and `jobs`.
    """
    request = EvaluationRequest(label=tuple(label), scoring=scoring or (), **asked)
    with rereadable(data, request.reading, request.labels if request.drop_unlabelled else None) as source:
        loaded = [(load(model), model) for model in models]
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
    """Raise `GateError` if a model has a score, or a coverage of its intervals of a level, that is lower, or none."""
    low = list[str]()
    for record in records:
        name, model = record.about["map"], record.scored.tested["model"]
        covered = [each["coverage"] for each in model.get("coverage", ()) if each["level"] == level]
        if least_coverage is not None and not covered:
            raise UsageError(
                f"--min-coverage: expected a model with intervals of {level:g}, got {name}: fit it again with "
                "--intervals, on more rows if it has some"
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
    if fm.predictor is None:
        raise UsageError(
            f"{name}: expected a model that ends in a predictor, such as ridge, got a map of features alone"
        )
    own = fm.predictor.labels
    names = request.labels or tuple(data.columns_named(own.names))
    if not names:
        raise UsageError("--all-rows: expected --label, as the model was fitted on labels without a name")
    known = data.rows_known(names)
    n, labels = known.n, known.labels
    if labels is None or not n:
        raise DataError(f"{data.name}: expected rows to score, got none")
    task = data.task_of(labels, "regression" if own.classes is None else "classification", task_to_score)
    predicts: tuple[Judged, ...] = ("probabilities", "intervals")
    some = predicts if fm.predictor.has_interval(request.interval) else predicts[:1]
    deciding = score_for(next(iter(request.scores), None), task.kind, name, some, request.interval)
    every, request = np.ones(n, dtype=bool), replace(request, label=names)
    subject = MapOnData(fm, data, jobs=request.jobs, reserved=request.reserved)
    truth = Truth(task, labels, Folded.of(None, n))
    scored = score_model(fm, subject, truth, every, request, deciding)
    if scored is None:
        raise UsageError(
            f"{name}: expected a model that predicts {', '.join(names)}, got one that predicts "
            f"{', '.join(own.names) or 'other labels'}"
        )
    model = {**scored.entries, "test_rows_seen": test_rows_seen(fm, data, every)}
    rule = ModelScoring.of(task, own)
    named = rule.named(labels)
    constant = {"score": deciding.of_constant(rule.task, named, named)}
    about = {
        "map": name, "label": plain_names(names), "task": task.kind, "rows_test": n, "scoring": deciding.name,
    }  # fmt: skip
    return Record(about=about, scored=Scored(tested={"model": model, "constant": constant}))
