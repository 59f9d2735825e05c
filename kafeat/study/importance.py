"""Permutation importance: how much a score falls when a column's values are shuffled among held-out rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from kafeat.contract import InputRows, TextRows, dense
from kafeat.errors import DataError
from kafeat.types import Array, Floats

SHUFFLES = 5
"""The number of times that each column is shuffled."""
# The most columns to shuffle. The shuffles use 200 to 1000 rows: as many as give about 5e7 feature values in total.
_MOST_COLUMNS, _LEAST_ROWS, _MOST_ROWS, _MOST_MADE = 300, 200, 1000, 5e7


class Loss(NamedTuple):
    """The mean decrease of the score over the shuffles, and its standard error."""

    mean: float
    error: float


Losses = dict[str, Loss]
"""The loss of each column by the column's name, largest first."""

HeldOut = tuple[InputRows, Callable[[InputRows], Floats]]
"""Held-out rows, and a function that predicts (n, k) for such rows with a model that has not seen them."""


def named(losses: Losses | None) -> dict[str, dict[str, float] | None]:
    """Return the losses and their standard errors under the keys of JSON."""
    if losses is None:
        return {"importance": None, "importance_error": None}
    return {
        "importance": {name: loss.mean for name, loss in losses.items()},
        "importance_error": {name: loss.error for name, loss in losses.items()},
    }


def rows_to_shuffle(columns: int, width: int) -> int:
    """Return how many rows to shuffle, for this many columns and features, or 0 if there are too many columns."""
    affordable = int(_MOST_MADE / (SHUFFLES * max(1, columns) * max(1, width)))
    return 0 if columns > _MOST_COLUMNS else int(np.clip(affordable, _LEAST_ROWS, _MOST_ROWS))


def score_losses(
    places: Mapping[str, slice], held_out: Sequence[HeldOut], score: Callable[[Floats], float], seed: int
) -> Losses | None:
    """Return for each column how much the score of all predictions falls if the column is shuffled in held-out sets.

    If two columns hold the same information, shuffling one costs little, because the other remains. Return None if the
    score is not defined, or if the map refuses a row with a shuffled value.

    Source: Breiman 2001, section 10; Fisher, Rudin & Dominici 2019.
    """
    whole, found = score(np.concatenate([predict(X) for X, predict in held_out])), Losses()
    for j, (name, place) in enumerate(places.items()):
        rng = np.random.default_rng([seed, 11, j])
        try:
            scores = np.array([score(_predicted(held_out, place, rng)) for _ in range(SHUFFLES)])
        except DataError:
            return None
        lost = whole - scores
        if not np.isfinite(lost).all():
            return None
        found[name] = Loss(float(lost.mean()), float(lost.std(ddof=1) / np.sqrt(SHUFFLES)))
    return dict(sorted(found.items(), key=lambda item: -item[1].mean))


def _predicted(held_out: Sequence[HeldOut], place: slice, rng: np.random.Generator) -> Floats:
    shuffled = ((predict, with_column_of(X, place, rng.permutation(len(X)))) for X, predict in held_out)
    return np.concatenate([predict(X) for predict, X in shuffled])


def with_column_of(X: InputRows, place: slice, others: Array) -> InputRows:
    """Return rows X (n, d) in which the columns `place` are replaced by those of X[others], with `others` (n,)."""
    if isinstance(X, TextRows):
        text = X.starts == place.start
        if text.any():
            return replace(X, texts=np.where(text, X.texts[others], X.texts))
        own = (X.plain >= place.start) & (X.plain < place.stop)
        return replace(X, numbers=np.where(own, X.numbers[others], X.numbers))
    rows = dense(X).copy()
    rows[:, place] = rows[others, place]
    return rows
