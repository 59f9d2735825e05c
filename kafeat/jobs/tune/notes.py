"""Sentences about a choice: what is odd in the table or in the result."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kafeat.jobs.tune.budget import Budget
from kafeat.jobs.tune.search import Search
from kafeat.jobs.tune.widths import Choice
from kafeat.maths.task import PredictionTask, TaskKind
from kafeat.types import Array


def notes(
    search: Search,
    choice: Choice,
    budget: Budget,
    goal: PredictionTask,
    task: TaskKind,
    constant: float,
    predictor: str | None,
) -> Iterator[str]:
    """Yield the sentences; the last one says how to repeat the search, for a config that ends in `predictor`.

    `constant` is the score of a constant prediction.
    """
    table, best = search.space.table, choice.chosen.outcome
    for name, reason in table.groups.left_out.items():
        yield f"Left out: {name} ({reason})."
    if goal.classes is None and task == "auto" and _may_be_classes(table.labels):
        yield (
            f"The label has {len(np.unique(table.labels))} different whole numbers, which are predicted as numbers: "
            "--task classification takes them for classes."
        )
    if best.score - constant <= 2.0 * best.error:
        yield (
            f"The score is no better than a constant prediction ({constant:z.4f}) by more than noise (two standard "
            f"errors, {2.0 * best.error:.4f})."
        )
    if choice.chosen.size.width > len(table.labels):
        yield f"A Nyström map has at most as many columns as there are training rows: {len(table.labels):,}."
    yield from choice.reasons
    if search.ended_early:
        yield (
            "The search ended before all maps of its plan were tried: more time or trials may find a better one."
        )
    if predictor is None:
        yield (
            "The config makes a map. For predictions, add `- kind: ridge` to its steps, "
            "or search with --predictor ridge."
        )
    splits = search.sizes[-1].splits
    last_step = "" if predictor is None else f" --predictor {predictor}"
    yield f"The same search again: {budget.spelled()}--seeds {splits} --trials {len(search.trials)}{last_step}"


# Whole numbers are rather classes if each stands in as many rows on average.
_ROWS_OF_CLASS = 5


def _may_be_classes(labels: Array) -> bool:
    """Return true for whole numbers that repeat, as the numbers of classes do."""
    if labels.ndim > 1 or not (labels == np.round(labels)).all():
        return False
    return len(np.unique(labels)) * _ROWS_OF_CLASS <= len(labels)
