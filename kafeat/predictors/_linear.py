"""The base class of the linear predictors, with their state and their transform."""

from __future__ import annotations

from typing import Any

import numpy as np

from kafeat.contract.predictor import Predictor
from kafeat.contract.step import Transform
from kafeat.maths.linear_output import LinearOutput
from kafeat.types import ArrayOf, Shapes, State


class LinearPredictor(Predictor):
    """A predictor with the scores Wᵀz + b."""

    def predicts_classes(self, state: State) -> bool:
        return "temperature" in state

    def state_shapes(self, state: State, n_features_in: int) -> Shapes:
        intercept = state.get("intercept")
        k = 1 if intercept is None or intercept.ndim != 1 else len(intercept)
        return {
            "weights": (n_features_in, k),
            "intercept": (k,),
            "lambda": (),
            "wide": ArrayOf((), "bool"),
            "temperature": ArrayOf((), optional=True, sign="above 0"),  # only for classes
        }

    def check_state(self, state: State, n_features_in: int) -> None:
        if not len(state["intercept"]):
            raise ValueError("state.intercept: expected at least one output")

    def n_features_out(self, state: State, n_features_in: int) -> int:
        return len(state["intercept"])

    def bind(self, state: State, n_features_in: int, dtype: np.dtype[Any]) -> Transform:
        temperature = float(state["temperature"]) if "temperature" in state else None
        return LinearOutput(state["weights"], state["intercept"], temperature, dtype, bool(state["wide"]))
