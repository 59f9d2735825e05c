"""Numbers or classes: a linear model of the label on the features, as the last step of a config."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from kafeat.contract.predictor import HeldOut, Learned, Learning, Targets, TrainingRows
from kafeat.maths.calibration import fit_calibration
from kafeat.maths.linear_output import leaves_float32, needs_float64
from kafeat.maths.ridge import LinearModel, NormalEquations
from kafeat.predictors._linear import LinearPredictor
from kafeat.types import Floats


class Ridge(LinearPredictor):
    """ŷ = Wᵀz + b with W, b = argmin Σ‖y − Wᵀz − b‖² + λ‖W‖², and p = softmax(ŷ/T + a) for classes.

    The sums ZᵀZ and ZᵀY of all rows are added up in one pass in float64, so memory does not grow with the rows. The
    target of a class is 1 for its own rows and 0 for others. The λ of the formula is `penalty` times the mean diagonal
    of the centred ZᵀZ, so one number means the same for any number of rows and features. `auto` uses the best of 21
    from 1e-9 to 10 by the squared error of three folds. The temperature T and the biases a of the classes minimize the
    log loss of held-out rows. Several numeric labels are predicted together. With `task: soft`, labels and predictions
    are probabilities of classes. Source: Hastie, Tibshirani & Friedman 2009, section 3.4.1; Alexandari et al. 2020
    (temperature and biases).
    """

    penalties: ClassVar[tuple[float, ...]] = tuple(10.0 ** (power / 2.0) for power in range(-18, 3))

    def begin(self, width: int, targets: Targets, jobs: int) -> Learning:
        return _Learning(self, width, targets, jobs)


class _Learning(Learning):
    """Fits ridge regression from sums over all rows, the normal equations."""

    def __init__(self, step: Ridge, width: int, targets: Targets, jobs: int) -> None:
        self._step, self._targets = step, targets
        self._equations = NormalEquations(width, targets.n, jobs, folds=targets.folds)

    def add(self, rows: TrainingRows) -> None:
        self._equations.add(rows.features, rows.targets, rows.parts, rows.weights)

    def learned(self, kept: TrainingRows) -> Learned:
        ridge, multiples = self._equations, self._step.multiples
        scores = tuple(map(float, ridge.scores(np.array(multiples)))) if len(multiples) > 1 else ()
        chosen = float(multiples[int(np.argmax(scores))] if scores else multiples[0])
        model = ridge.model_of(chosen)
        state = self._state(ridge, model)
        if self._targets.classes:
            scored = _scored(ridge, chosen, kept)
            calibration = fit_calibration(scored.outputs, scored.rows.targets, scored.rows.weights)
            state["temperature"] = np.array(calibration.temperature)
            # softmax(s/T + a) = softmax((s + T a)/T), so the biases of the classes become part of the intercept.
            state["intercept"] = state["intercept"] + calibration.temperature * calibration.biases
        multiples = multiples if scores else ()

        def held_out() -> HeldOut:
            if self._targets.classes:
                return HeldOut(scored.rows, calibration(scored.outputs))
            own = ridge.held_out(chosen, kept.features, kept.targets, kept.parts, kept.weights)
            return HeldOut(kept, own)

        return Learned(self._step.with_penalty(chosen), state, multiples, scores, held_out=held_out)

    def _state(self, ridge: NormalEquations, model: LinearModel) -> dict[str, Floats]:
        unit, centre = self._targets.unit, self._targets.centre
        weights = model.w * unit
        wide = leaves_float32(weights) or needs_float64(model.w, ridge.squares(), np.ones(self._targets.n))
        return {
            "weights": weights,
            "intercept": model.intercept * unit + centre,
            "lambda": np.array(model.penalty),
            "wide": np.array(wide),
        }


def _scored(ridge: NormalEquations, multiple: float, kept: TrainingRows) -> HeldOut:
    """Return the scores of the kept rows, each from a model that was fitted without the row's fold."""
    scores = ridge.without_part(multiple, kept.features, kept.parts)
    order = np.argsort(kept.parts, kind="stable")
    known = order[~np.isnan(scores[order]).any(axis=1)]
    if not len(known):
        raise ridge.folds.one_part
    return HeldOut(kept.select(known), scores[known])
