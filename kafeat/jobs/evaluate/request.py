"""The options of an evaluation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from kafeat.jobs.fit.labels import LabelNames

Say = Callable[[str], None]
Task = Literal["auto", "classification", "regression"]


@dataclass(frozen=True)
class EvaluationRequest:
    """Options of an evaluation, the same for every map.

    Attributes:
        labels: Columns to predict; none compares kernels only.
        split: Column of train and test; None chooses the held-out rows at random.
        task: Kind of prediction; auto decides by the labels.
        learner: Name of the model that predicts the label.
        tau: Quantile or width of the loss, for the learners that have one.
        penalty: Penalty of every learner; None searches for the best of each.
        scoring: Names of scores, of which the first decides; none takes accuracy or R².
        rows: Number of rows for the Gram matrices.
        exact_rows: Largest number of training rows of the exact kernel machine.
        jobs: Number of threads; None takes all cores.
        output_dtype: Type that features are rounded to; None takes that of the map.
    """

    labels: LabelNames = ()
    split: str | None = None
    task: Task = "auto"
    learner: str = "ridge"
    tau: float = 0.1
    penalty: float | None = None
    scoring: tuple[str, ...] = ()
    rows: int = 2000
    exact_rows: int = 2000
    jobs: int | None = None
    output_dtype: str | None = None

    @property
    def reserved(self) -> list[str]:
        """The columns that are no features: the labels and the split."""
        return [*self.labels, *([] if self.split is None else [self.split])]
