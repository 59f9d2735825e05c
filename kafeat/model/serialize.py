"""Turn fitted steps into builtins and arrays, and back, with full validation."""

from __future__ import annotations

from typing import Any

import numpy as np
from pydantic import ValidationError

from kafeat.chain.chain import Chain, FittedStep
from kafeat.contract.checks import check_indices
from kafeat.contract.describe import spell
from kafeat.errors import UsageError
from kafeat.registry import build_step
from kafeat.types import Array


def chain_content(chain: Chain) -> list[dict[str, Any]]:
    """Return recipe, input width and state of each step."""
    for i, fitted in enumerate(chain.steps):
        if fitted.step.unsaved is not None:
            raise UsageError(f"steps[{i}].{fitted.step.unsaved}: such a map cannot be saved")
    return [
        {
            "recipe": fitted.step.recipe(),
            "n_features_in": fitted.n_features_in,
            "state": {name: np.asarray(value) for name, value in fitted.state.items()},
        }
        for fitted in chain.steps
    ]


def read_chain(content: object, n_features_in: int, outputs: object = None, cast_after: object = 0) -> Chain:
    """Return the chain of an untrusted model file; raise `ValueError` with the place of an invalid entry."""
    if not isinstance(content, list) or not content:
        raise ValueError("steps: expected a list of at least one step")
    if type(cast_after) is not int or not 0 <= cast_after <= len(content):
        raise ValueError(
            f"cast_after: expected a whole number from 0 to {len(content)}, got {cast_after!r:.40}"
        )
    steps: list[FittedStep] = []
    width = n_features_in
    for i, entry in enumerate(content):
        try:
            steps.append(_read_step(entry, width))
            width = steps[-1].n_features_out
        except ValidationError as error:
            first = error.errors()[0]
            key = ".".join(map(str, first["loc"]))
            raise ValueError(f"steps[{i}].recipe.{key}: {first['msg']}") from None
        except ValueError as error:
            raise ValueError(f"steps[{i}].{error}") from None
    return Chain(tuple(steps), None if outputs is None else _read_outputs(outputs, width), cast_after)


def _read_outputs(outputs: object, width: int) -> Array:
    if (
        not isinstance(outputs, np.ndarray)
        or outputs.ndim != 1
        or outputs.dtype != np.int64
        or not len(outputs)
    ):
        raise ValueError("outputs: expected whole numbers, the outputs that are kept")
    check_indices("outputs", outputs, width)
    if (np.diff(outputs) <= 0).any():
        raise ValueError("outputs: expected ascending numbers")
    return outputs


def _read_step(entry: object, width: int) -> FittedStep:
    if not isinstance(entry, dict) or set(entry) != {"recipe", "n_features_in", "state"}:
        raise ValueError("recipe: expected recipe, n_features_in and state")
    if type(entry["n_features_in"]) is not int or entry["n_features_in"] != width:
        raise ValueError(f"n_features_in: expected {width}, got {spell(entry['n_features_in'])}")
    if not isinstance(entry["recipe"], dict):  # a config may name the kind alone, a model file does not
        raise ValueError("recipe: expected the parameters of a step")
    step = build_step(entry["recipe"])
    state = entry["state"]
    if not isinstance(state, dict) or not all(isinstance(value, np.ndarray) for value in state.values()):
        raise ValueError("state: expected a dict of arrays")
    return FittedStep.checked(step, state, width)
