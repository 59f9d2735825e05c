"""Fit one step of a chain, and keep fits that several chains share."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from kafeat.chain.fitted_step import FittedStep
from kafeat.chain.tiles import run_tiles
from kafeat.contract.step import DOUBLE, Names, Sample, Step, Transform
from kafeat.errors import DataError, InvalidValueError, quoted
from kafeat.types import Floats, State

Fit = tuple[FittedStep, Sample]
"""A fitted step, and the sample after it."""


_MOST_KNOWN = 16


class FitCache:
    """Fits that chains on one sample have made lately, by the recipes of their steps."""

    def __init__(self, most: int = _MOST_KNOWN) -> None:
        self._most, self._known = most, dict[str, Fit]()

    def find(self, steps: Sequence[Step]) -> Fit | None:
        """Return the fit of the last of these steps, or None."""
        return self._known.get(_recipes(steps))

    def keep(self, steps: Sequence[Step], fit: Fit) -> None:
        """Keep the fit of the last of these steps, and drop the oldest of many."""
        if len(self._known) >= self._most:
            del self._known[next(iter(self._known))]
        self._known[_recipes(steps)] = fit


def _recipes(steps: Sequence[Step]) -> str:
    return json.dumps([step.recipe() for step in steps])


def fit_step(steps: Sequence[Step], i: int, sample: Sample, rng: np.random.Generator) -> Fit:
    """Fit a step of a chain on the sample before it, in float64; after the last step the sample is not needed."""
    step, last = steps[i].settled(sample), i + 1 == len(steps)
    fitted = FittedStep(step, _learned(step, sample, rng), sample.X.shape[1])
    _refuse_width(fitted, i)
    names, n_categories = _handed_on(fitted, sample, last)
    # The last step is bound as well, so that the fit reports what float64 cannot hold.
    bound = fitted.bind(DOUBLE)
    if last:
        return fitted, sample
    given = {name: _run_given(bound, name, rows) for name, rows in sample.given.items()}
    X = run_tiles(bound, sample.X, DOUBLE)
    return fitted, replace(sample, X=X, given=given, names=names, n_categories=n_categories)


def _learned(step: Step, sample: Sample, rng: np.random.Generator) -> State:
    """Fit the step. Overflow on the way is ignored, as the state is checked afterwards."""
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        state = step.fit(sample, rng)
    for name, value in state.items():
        if not np.isfinite(value).all():
            raise DataError(
                f"{step.kind}: expected rows that it can learn from in float64, got {name} = "
                f"{value[~np.isfinite(value)][0]:g}: scale the input, or choose another gamma"
            )
    return state


def _handed_on(fitted: FittedStep, sample: Sample, last: bool) -> tuple[Names | None, tuple[int, ...] | None]:
    """Return the names of the outputs, and the number of categories of each.

    Codes and times that a step takes for plain numbers are refused: the step that reads them has to come before.
    """
    if sample.names is None:
        return None, None
    names = fitted.step.names_out(sample.names, fitted.state)
    coded = dict(zip(sample.names, sample.n_categories or (), strict=False))
    unread = () if fitted.step.inner_chains else sample.names if names is None else names if last else ()
    for name in unread:
        if name is not None and (coded.get(name) or name in sample.times):
            got, reader = ("categories", "one_hot") if coded.get(name) else ("times", "date_parts")
            raise DataError(
                f"{fitted.step.kind}: column {quoted(name)}: expected plain numbers, got {got}, which only {reader} "
                "reads: put it before, or leave the column out of the columns of this map"
            )
    if names is None or sample.n_categories is None:
        return names, None
    return names, tuple(coded.get(name, 0) for name in names)


def _run_given(transform: Transform, name: str, rows: Floats) -> Floats:
    try:
        return run_tiles(transform, rows, DOUBLE)
    except InvalidValueError as refused:  # the row is in an extra file of the step, which the message names
        raise DataError(f"{name}: {refused}") from None


def _refuse_width(fitted: FittedStep, i: int) -> None:
    try:
        fitted.check_width()
    except ValueError as error:
        raise DataError(f"steps[{i}]: {error}: take fewer columns, or fewer outputs of each") from None
