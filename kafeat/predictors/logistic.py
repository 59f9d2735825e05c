"""Probabilities of classes: logistic regression on the features, as the last step of a config."""

from __future__ import annotations

from typing import ClassVar, Literal, NamedTuple

import numpy as np

from kafeat.contract.folds import Folded
from kafeat.contract.predictor import HeldOut, Learned, Learning, Targets, TrainingRows
from kafeat.contract.step import parameter
from kafeat.errors import DataError
from kafeat.maths.calibration import rows_of, softmax, softmax_loss
from kafeat.maths.linear_output import needs_float64
from kafeat.maths.logistic import LogisticProblem
from kafeat.predictors._linear import LinearPredictor
from kafeat.types import Floats

# The most entries of features in memory, 512 MB in float32, and the most rows on which penalties are compared.
_MOST_NUMBERS, _MOST_SEARCHED = 1 << 27, 20_000
# The tolerance of the loss per row while penalties are compared.
_ROUGHLY = 1e-5


class Logistic(LinearPredictor):
    """p = softmax(Wᵀz + b) with W, b = argmin Σ −log p(y) + λ/2 ‖W‖²: logistic regression of two classes or more.

    With `task: soft` the label is the probabilities q of the classes, and −Σ q log p replaces −log p(y). The loss is
    minimized by L-BFGS over features in memory. It uses all rows up to 134 million numbers (131,072 rows of 1,024
    features), and beyond that a uniform random sample. The λ of the formula is `penalty` times the mean diagonal of the
    centred ZᵀZ, so one number means the same for any number of rows and features. `auto` uses the best of 1e-6, 1e-5,
    …, 0.1 by the log loss of three folds.

    Source: Hastie, Tibshirani & Friedman 2009, section 4.4; Böhning 1992 (preconditioner).
    """

    classes_only: ClassVar[bool] = True
    penalties: ClassVar[tuple[float, ...]] = tuple(10.0**power for power in range(-6, 0))

    task: Literal["auto", "classification", "soft"] = parameter(
        "auto",
        "classes; soft: several label columns are the probabilities of classes; other numbers are an error",
    )

    def most_kept(self, width: int) -> int:
        return max(1, _MOST_NUMBERS // width)

    def begin(self, width: int, targets: Targets, jobs: int) -> Learning:
        if not targets.classes:
            raise DataError(
                "logistic: expected a label of classes, got numbers: ridge predicts numbers, "
                "and `task: classification` makes classes of whole numbers"
            )
        return _Learning(self, targets, jobs)


class _Tried(NamedTuple):
    """The results of penalties on held-out rows.

    `scores` has for each penalty 1 − its log loss / the log loss of predicting the class frequencies.
    `logits` (penalties, n, c) are from models that were fitted without the row; NaN if no model was.
    """

    scores: list[float]
    rows: TrainingRows
    logits: Floats


class _Learning(Learning):
    """Fits logistic regression to the rows that are kept in memory."""

    def __init__(self, step: Logistic, targets: Targets, jobs: int) -> None:
        self._step, self._n_classes, self._folds, self._jobs = step, targets.n, targets.folds, jobs

    def add(self, rows: TrainingRows) -> None:
        return

    def learned(self, kept: TrainingRows) -> Learned:
        multiples = self._step.multiples
        tried = self._tried(kept, multiples) if len(multiples) > 1 else None
        scores = () if tried is None else tuple(tried.scores)
        chosen = multiples[int(np.argmax(scores))] if scores else multiples[0]
        problem, Z = self._problem(kept), kept.features
        W, b = problem.fit(problem.penalty(chosen))
        squares = np.square(Z[:: max(1, len(Z) // 1000)].astype(np.float64)).mean(axis=0)
        state = {
            "weights": W,
            "intercept": b,
            "lambda": np.array(problem.penalty(chosen)),
            "temperature": np.array(1.0),
            "wide": np.array(needs_float64(W, squares, np.ones(self._n_classes))),
        }

        def held_out() -> HeldOut:
            own = self._tried(kept, (chosen,)) if tried is None else tried
            logits = own.logits[multiples.index(chosen)]
            probabilities: Floats = np.empty(logits.shape)
            softmax(logits, 1.0, probabilities)
            return HeldOut(own.rows, probabilities)

        return Learned(
            self._step.with_penalty(chosen),
            state,
            multiples if scores else (),
            scores,
            len(Z),
            held_out,
        )

    def _problem(self, rows: TrainingRows) -> LogisticProblem:
        return LogisticProblem(rows.features, rows.targets, rows.own_weights, self._jobs)

    def _tried(self, kept: TrainingRows, multiples: tuple[float, ...]) -> _Tried:
        """Return the scores of all penalties on held-out rows."""
        kept = kept.select(np.arange(0, len(kept.features), -(-len(kept.features) // _MOST_SEARCHED)))
        logits = np.full((len(multiples), *kept.targets.shape), np.nan)
        losses, spread = np.zeros(len(multiples)), 0.0
        for train, own in Folded(kept.parts, self._folds).cuts:
            rest, held = kept.select(train), kept.select(own)
            problem, W = self._problem(rest), None
            # From large to small penalties, because each solution is the start for the next.
            for i in np.argsort(multiples)[::-1]:
                W, b = problem.fit(problem.penalty(multiples[i]), W, _ROUGHLY)
                logits[i, own] = scores = held.features @ W + b
                losses[i] += _loss(scores, held)
            spread += _loss(np.tile(_frequencies(rest), (len(held.features), 1)), held)
        saved = [float(1.0 - loss / spread) if spread > 0.0 else 0.0 for loss in losses]
        return _Tried(saved, kept, logits)


def _loss(scores: Floats, rows: TrainingRows) -> float:
    return softmax_loss(scores, rows.targets, rows.own_weights) * float(rows.own_weights.sum())


def _frequencies(rows: TrainingRows) -> Floats:
    """Return the logarithms of the class frequencies. A class without rows counts as half a row."""
    shares = (rows.own_weights[:, None] * rows.targets).sum(axis=0) / rows.own_weights.sum()
    return np.log(np.maximum(shares, 0.5 / rows_of(rows.own_weights)))
