"""Gradient boosting with its defaults, on the rows and folds of the chosen map."""

from __future__ import annotations

from types import ModuleType

import numpy as np

from kafeat.contract import Folded
from kafeat.errors import DataError
from kafeat.jobs.fit import Inputs
from kafeat.maths import PredictionTask
from kafeat.study.learners import Truth, split
from kafeat.types import Array, Floats


def library() -> ModuleType:
    """Return the module that boosts; DataError without scikit-learn."""
    try:
        import kafeat.study.boosting
    except ImportError as error:
        raise DataError(f"{error}; pip install 'kafeat[evaluate]'") from None
    return kafeat.study.boosting


def boosted(task: PredictionTask, Z: Floats, labels: Array, held: Floats) -> Floats:
    """Return what boosting of columns Z (n, d) with labels (n,) predicts of other rows (m, d): numbers or shares.

    DataError if it would take long.
    """
    nothing = np.zeros(len(Z), dtype=bool)
    rows = split(len(Z), 0, nothing)
    model = library().boost(Inputs.of(Z), rows, Truth(task, labels, Folded.of(None, len(Z))))
    if isinstance(model, str):
        raise DataError(model)
    predicted: Floats = model(held)
    return predicted
