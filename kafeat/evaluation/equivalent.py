"""The model of scikit-learn on the features that equals a learner or a predictor."""

from __future__ import annotations

from kafeat.maths.task import Kind
from kafeat.model.predictor import FittedPredictor


def equivalent_learner(learner: str, kind: Kind, penalty: float) -> str | None:
    """Return the call that makes the model of scikit-learn; None for learners without a plain one."""
    if learner == "ridge":
        return f"{'Ridge' if kind == 'regression' else 'RidgeClassifier'}(alpha={penalty!r})"
    return f"LogisticRegression(C={1.0 / penalty!r})" if learner == "logistic" and penalty > 0.0 else None


def equivalent_predictor(predictor: FittedPredictor) -> str | None:
    """Return the call that makes the model of scikit-learn with the weights of this predictor, but for scale."""
    kind: Kind = "regression" if predictor.labels.classes is None else "classification"
    penalty = float(predictor.fitted.state["lambda"])
    # Scikit-learn has one vector of weights for two classes. Here there are two, ±w/2, with half the squared norm.
    half = predictor.fitted.step.kind == "logistic" and predictor.n_outputs == 2
    return equivalent_learner(predictor.fitted.step.kind, kind, penalty / 2.0 if half else penalty)
