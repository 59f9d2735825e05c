"""The predictor that the chosen config ends in."""

from __future__ import annotations

from typing import Literal

from kafeat.config import Config
from kafeat.errors import DataError, UsageError
from kafeat.maths.task import PredictionTask, TaskKind
from kafeat.registry import predictors

PredictorKind = Literal["ridge", "logistic"]


def with_predictor(start: Config, kind: PredictorKind | None, task: TaskKind) -> Config:
    """Return the config with a predictor for this task at its end; one that it has is kept."""
    if kind is not None and kind not in predictors():
        raise UsageError(f"predictor: expected {' or '.join(predictors())}, got {kind!r}")
    if kind is None or start.predictor is not None:
        return start
    # "auto" is the default, and logistic knows no task but classification
    step = {"kind": kind, **({"task": task} if task == "classification" or kind == "ridge" else {})}
    plain = start.to_plain()
    return Config.model_validate({**plain, "steps": [*plain["steps"], step]})


def check_predictor(config: Config, goal: PredictionTask, place: str) -> None:
    """Refuse a predictor of classes for a label of numbers, before the search."""
    step = config.predictor
    if step is not None and step.classes_only and step.task == "auto" and goal.classes is None:
        raise DataError(
            f"{place}: {step.kind}: expected a label of classes, got numbers: ridge predicts numbers, and "
            "--task classification takes whole numbers for classes"
        )
