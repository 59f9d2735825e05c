"""The options of an evaluation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kafeat.jobs.fit.labels import LabelNames
from kafeat.maths.task import TaskKind

Say = Callable[[str], None]


@dataclass(frozen=True)
class EvaluationRequest:
    """Options of `kafeat.evaluate` that are the same for every map; its docstring says what they mean."""

    labels: LabelNames = ()
    split: str | None = None
    task: TaskKind = "auto"
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
