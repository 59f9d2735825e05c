"""Scores of predictions, each an object of `Score`. Higher is better, so errors count as negative scores."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from kafeat.errors import DataError, UsageError
from kafeat.maths.calibration import of_all_classes
from kafeat.maths.task import Kind, PredictionTask, r2
from kafeat.types import Array, Floats

Judged = Literal["numbers", "probabilities", "intervals"]
_REMEDIES: dict[Judged, str] = {
    "probabilities": "use --learner logistic, or score a finished model (--all-rows)",
    "intervals": "score a model that was fitted with --intervals on enough rows for this --interval (--all-rows)",
}
_OF_TRIALS: tuple[Judged, ...] = ("probabilities",)
INTERVAL = 0.9
"""The probability of the intervals that a score judges, by default."""


@dataclass(frozen=True)
class Score:
    """A score or an error by which predictions are judged.

    Attributes:
        name: The name in options and in JSON.
        kind: The task; None if the score fits both tasks.
        measure: A function that returns the score, or a positive error. Its arguments are scores (n, k) of classes and
            the true class numbers (n,), or predicted and true numbers or probabilities (n, k), or the ends of intervals
            (n, 2, k), the true numbers (n, k) and `level`.
        title: The name in tables; empty if it equals `name`.
        is_error: True if lower is better. The best value is 0 for errors, and 1 for other scores.
        judges: The predictions that the score needs: numbers of any size, probabilities of classes, or intervals.
        noise: A formula for the standard error, given the score and the number of rows; None resamples rows.
        unit: The power of the label's unit in the score: 1 for an absolute error, 2 for a squared one.
        level: The probability of the intervals.
    """

    name: str
    kind: Kind | None
    measure: Callable[..., float]
    title: str = ""
    is_error: bool = False
    judges: Judged = "numbers"
    noise: Callable[[float, int], float] | None = None
    unit: int = 0
    level: float = INTERVAL

    def __str__(self) -> str:
        return self.title or self.name.replace("_", " ")

    @property
    def needs_probabilities(self) -> bool:
        """True if the score needs probabilities of classes, not just numbers that rank them."""
        return self.judges == "probabilities"

    @property
    def is_noisy(self) -> bool:
        """True if the score counts correct rows, so that small differences between maps are often due to chance."""
        return self.noise is _noise_of_share

    @property
    def best(self) -> float:
        """The score of perfect predictions."""
        return 0.0 if self.is_error else 1.0

    def stated(self, score: float) -> float:
        """Convert a score (higher is better) to the form in which it is reported, or back: errors change their sign."""
        return -score if self.is_error else score

    def of(self, task: PredictionTask, predicted: Floats, labels: Array) -> float:
        """Return the score (higher is better) of predictions (n, k) or interval ends (n, 2, k); NaN if undefined."""
        if self.kind not in (None, task.kind):
            raise self.refused(task.kind)
        return self.stated(self.figure(task, predicted, labels))

    def figure(self, task: PredictionTask, predicted: Floats, labels: Array) -> float:
        """Return the score as it is usually reported: errors are positive."""
        if not np.isfinite(predicted).all():
            return float("nan")
        if self.kind is None:
            return self.measure(predicted, task.targets(labels))
        if task.classes is None:
            unit = (
                task.unit if self.unit else 1.0
            )  # scaled, because squares in the unit of the label may overflow
            levels = (self.level,) if self.judges == "intervals" else ()
            return self.measure(predicted * unit, task.targets(labels) * unit, *levels)
        truth = task.targets(labels) if self.needs_probabilities else task.numbers(labels)
        return self.measure(of_all_classes(predicted), truth)

    def of_constant(self, task: PredictionTask, known: Array, labels: Array) -> float:
        """Return the score on `labels` of a constant prediction that is learned from the labels `known`.

        It is the mean of numbers, the frequencies of classes, or two quantiles for intervals. Maps have to beat it.
        """
        if self.judges == "intervals":
            shares = [(1.0 - self.level) / 2.0, (1.0 + self.level) / 2.0]
            ends = np.quantile(task.targets(known), shares, axis=0)
            return self.of(task, np.broadcast_to(ends, (len(labels), *ends.shape)), labels)
        return self.of(task, constant_predictions(task, known, len(labels)), labels)

    def check(self, who: str, predicts: Collection[Judged]) -> Score:
        """Return this score, or raise an error if it needs other predictions than `who` makes (`predicts`)."""
        if self.judges in ("numbers", *predicts):
            return self
        raise UsageError(
            f"scoring: expected a score of what {who} predicts, got {self.name}, which needs {self.judges}: "
            f"{_REMEDIES[self.judges]}"
        )

    def refused(self, kind: Kind) -> DataError:
        """Return the error for a label of this kind, which the score does not fit."""
        names = [score.name for score in scores_of(kind)]
        label = "numbers" if kind == "regression" else "classes"
        return DataError(f"scoring: expected {' or '.join(names)} for a label of {label}, got {self.name}")


def constant_predictions(task: PredictionTask, known: Array, n: int) -> Floats:
    """Return the mean of the known numbers, or the frequencies of the known classes, for each of n rows, (n, k)."""
    constant = task.targets(known).mean(axis=0)
    return np.broadcast_to(constant, (n, len(constant)))


def _accuracy(predicted: Floats, classes: Array) -> float:
    return float((predicted.argmax(axis=1) == classes).mean())


def _error_rate(predicted: Floats, classes: Array) -> float:
    return float((predicted.argmax(axis=1) != classes).mean())


def _balanced_accuracy(predicted: Floats, classes: Array) -> float:
    right = predicted.argmax(axis=1) == classes
    return float(np.mean([right[classes == one].mean() for one in np.unique(classes)]))


def _f1(predicted: Floats, classes: Array) -> float:
    """Return the F1 score, averaged over the classes."""
    chosen = predicted.argmax(axis=1)
    each = []
    for one in np.union1d(classes, chosen):
        hits = np.sum((chosen == one) & (classes == one))
        each.append(2.0 * hits / (np.sum(chosen == one) + np.sum(classes == one)))
    return float(np.mean(each))


def _auc(predicted: Floats, classes: Array) -> float:
    """Return the area under the ROC curve, averaged over each class against the rest (Hand & Till 2001)."""
    from scipy.stats import rankdata

    each = []
    for one in np.unique(classes):
        own = classes == one
        positives, negatives = int(own.sum()), int((~own).sum())
        if not negatives:
            return float("nan")
        ranks = rankdata(predicted[:, one])[own].sum()
        each.append((ranks - positives * (positives + 1) / 2) / (positives * negatives))
    return float(np.mean(each))


def _log_loss(predicted: Floats, truth: Floats) -> float:
    """Return the mean of −Σ q log p over rows, with p clipped to machine epsilon, for true probabilities q."""
    logs = np.log(np.maximum(predicted, np.finfo(np.float64).eps))
    return -float((truth * logs).sum(axis=1).mean())


def _brier(predicted: Floats, truth: Floats) -> float:
    """Return the mean of Σ (p − q)² over rows, for true probabilities q (Brier 1950)."""
    return float(np.square(predicted - truth).sum(axis=1).mean())


def _mae(predicted: Floats, Y: Floats) -> float:
    return float(np.abs(Y - predicted).mean())


def _mse(predicted: Floats, Y: Floats) -> float:
    return float(((Y - predicted) ** 2).mean())


def _rmse(predicted: Floats, Y: Floats) -> float:
    """Return the root mean squared error over all rows and labels, computed in a unit in which squares fit float64."""
    errors = np.abs(Y - predicted)
    largest = float(errors.max())
    return largest * float(np.sqrt(np.square(errors / largest).mean())) if largest else 0.0


def _pinball(ends: Floats, Y: Floats, level: float) -> float:
    """Return the pinball loss max(q e, (q − 1) e), e = y − end, averaged over rows and ends (Koenker & Bassett 1978).

    The lower end is the quantile q = (1 − level)/2 of the label, and the upper end is (1 + level)/2.
    """
    errors, q = Y[:, None] - ends, np.array([[(1.0 - level) / 2.0], [(1.0 + level) / 2.0]])
    return float(np.maximum(q * errors, (q - 1.0) * errors).mean())


def _noise_of_share(score: float, rows: int) -> float:
    """Return the standard error √(p(1 − p)/n) of p = |score|, a share of correct or (if negative) of wrong rows."""
    share = min(abs(score), 1.0)
    return float(np.sqrt(share * (1.0 - share) / max(rows, 1)))


def _noise_of_r2(score: float, rows: int) -> float:
    """Return the standard error 2|R|(1 − R²)/√n of R² (Olkin & Finn 1995)."""
    share = min(max(score, 0.0), 1.0)
    return float(2.0 * np.sqrt(share / max(rows, 1)) * (1.0 - share))


_of_classes = partial(Score, kind="classification")
_of_numbers = partial(Score, kind="regression")
# The default score of each task comes first.
SCORES = {
    score.name: score
    for score in (
        _of_classes("accuracy", measure=_accuracy, noise=_noise_of_share),
        _of_classes("error_rate", measure=_error_rate, is_error=True, noise=_noise_of_share),
        _of_classes("balanced_accuracy", measure=_balanced_accuracy),
        _of_classes("f1", measure=_f1, title="F1"),
        _of_classes("auc", measure=_auc, title="AUC"),
        _of_classes("log_loss", measure=_log_loss, is_error=True, judges="probabilities"),
        _of_classes("brier", measure=_brier, title="Brier score", is_error=True, judges="probabilities"),
        _of_numbers("r2", measure=r2, title="R²", noise=_noise_of_r2),
        _of_numbers("mae", measure=_mae, title="MAE", is_error=True, unit=1),
        _of_numbers("mse", measure=_mse, title="MSE", is_error=True, unit=2),
        _of_numbers("rmse", measure=_rmse, title="RMSE", is_error=True, unit=1),
        _of_numbers(
            "pinball", measure=_pinball, title="pinball loss", is_error=True, judges="intervals", unit=1
        ),
    )
}
if TYPE_CHECKING:
    ScoringName: TypeAlias = str
else:
    ScoringName = Literal[("auto", *SCORES)]
PROPER: dict[Kind, Score] = {"classification": SCORES["log_loss"], "regression": SCORES["r2"]}
"""The scores by which maps are chosen by default. Accuracy would prefer constant predictions of a frequent class."""


def scores_of(kind: Kind) -> list[Score]:
    """Return all scores for a kind of task, including errors."""
    return [score for score in SCORES.values() if score.kind == kind]


def score_for(
    name: str | None,
    kind: Kind,
    who: str = "a search",
    predicts: Collection[Judged] = _OF_TRIALS,
    level: float = INTERVAL,
) -> Score:
    """Return the score with this name; None and "auto" mean the default score of the task.

    `level` is the probability of intervals. It is an error if the score is for the other task. `predicts` are the kinds
    of predictions that `who` makes, and a score that needs another kind is also an error.
    """
    usual = name in (None, "auto")
    score = replace(scores_of(kind)[0] if usual else SCORES[str(name)], level=level)
    if score.kind != kind:
        raise score.refused(kind)
    return score.check(who, predicts)
