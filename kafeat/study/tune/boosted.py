"""Gradient boosting with its defaults, on the rows and folds of the chosen map."""

from __future__ import annotations

import numpy as np

from kafeat.contract.folds import Folded
from kafeat.errors import DataError
from kafeat.jobs.fit.map_on_data import Inputs
from kafeat.maths.task import PredictionTask
from kafeat.study.learners import Truth, split
from kafeat.types import Array, Floats

MOST_BOOSTED = 100_000
"""Rows that boosting learns from, all of which are in memory."""


def boosted(task: PredictionTask, Z: Floats, labels: Array, held: Floats) -> Floats:
    """Return what boosting of columns Z (n, d) with labels (n,) predicts of other rows (m, d): numbers or shares.

    DataError without scikit-learn, or if it would take long.
    """
    try:
        from kafeat.study.boosting import boost
    except ImportError as error:
        raise DataError(f"{error}; pip install 'kafeat[evaluate]'") from None
    nothing = np.zeros(len(Z), dtype=bool)
    model = boost(Inputs.of(Z), split(len(Z), 0, nothing), Truth(task, labels, Folded.of(None, len(Z))))
    if isinstance(model, str):
        raise DataError(model)
    return model(held)
