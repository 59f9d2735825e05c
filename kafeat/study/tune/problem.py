"""The problem of a search: its options, its table, and the task and the score that follow from both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from kafeat.config import Config
from kafeat.errors import DataError
from kafeat.io.options import words_of
from kafeat.jobs.fit import LabelArgument, Recipe, RereadableData, fit_reader, label_names, with_columns
from kafeat.maths import PROPER, SCORES, PredictionTask, Score, TaskKind, score_for, task_of
from kafeat.model import FeatureMap
from kafeat.study.tune.input import TunedTable
from kafeat.study.tune.options import TuneOptions
from kafeat.study.tune.space import SearchSpace
from kafeat.study.tune.trials import Budget

LEAST_ROWS = 20
"""Fewer rows than this are refused, because nothing can be chosen on them."""


@dataclass(frozen=True, kw_only=True)
class Problem:
    """The data of a search, a sample of them in `table`, the options `asked`, and the config to `start` from.

    The results do not depend on `jobs`, the number of threads.
    """

    asked: TuneOptions
    data: RereadableData
    label: LabelArgument
    start: Config
    table: TunedTable
    jobs: int = 1
    budget: Budget = field(default_factory=Budget)
    own: Sequence[Recipe] = ()
    """The steps of the config to start from, which become a candidate."""

    @cached_property
    def space(self) -> SearchSpace:
        """The candidates to try for this table."""
        return SearchSpace(self.table, self.own, self.budget.searched)

    @property
    def seed(self) -> int:
        """The seed of splits, maps and resampled rows."""
        return self.start.seed

    @property
    def taken_for(self) -> str:
        """The line that explains whether the label is read as numbers or classes, and why."""
        return self.table.summary.taken_for(self.asked.task, "--task {}")

    @cached_property
    def task(self) -> PredictionTask:
        """The prediction task. Refuse labels that nothing can be learned from, and a score of another task."""
        labels, place = self.table.labels, self.table.place
        if len(labels) < LEAST_ROWS:
            raise DataError(f"{place}: expected at least {LEAST_ROWS} rows to choose on, got {len(labels)}")
        try:
            # With `auto`, the labels of all rows decide, not only those of the sample.
            kind = self.table.summary.kind if self.asked.task == "auto" else self.asked.task
            task = task_of(labels, kind, label_names(self.label))
            score_for(self.asked.scoring, task.kind)
        except DataError as error:
            raise DataError(f"{place}: {error}") from None
        self._check_predictor(task, place)
        if task.classes is not None and 2 * len(task.classes) > len(labels):
            numbers = task.classes.dtype.kind != "O"
            raise DataError(
                f"{place}: label: expected classes that several rows have, got {len(task.classes):,} different "
                f"{'numbers' if numbers else 'texts'} such as {task.classes[0]!s:.40} in {len(labels):,} rows: "
                + ("--task regression predicts numbers" if numbers else "text like this cannot be predicted")
            )
        return task

    @property
    def predictor_task(self) -> TaskKind:
        """The parameter `task` that a predictor of these labels needs."""
        return "soft" if self.asked.task == "soft" else self.task.kind

    def _check_predictor(self, task: PredictionTask, place: str) -> None:
        """Before the search, refuse a classifier or class weights if the label is a number."""
        step = self.start.predictor
        if step is not None and step.class_weight == "balanced" and task.classes is None:
            raise DataError(f"{place}: class_weight: balanced: expected a label of classes, got numbers")
        if step is not None and step.classes_only and step.task == "auto" and task.classes is None:
            raise DataError(
                f"{place}: {step.kind}: expected a label of classes, got numbers: ridge predicts numbers, and "
                "--task classification treats whole numbers as classes"
            )

    @property
    def balanced(self) -> bool:
        """True if every class counts the same, however many rows it has."""
        return self.start.predictor is not None and self.start.predictor.class_weight == "balanced"

    @property
    def scoring(self) -> Score:
        """The deciding score."""
        if self.asked.scoring != "auto":
            return SCORES[self.asked.scoring]
        return SCORES["balanced_accuracy"] if self.balanced else PROPER[self.task.kind]

    def spelled(self, trials: int) -> list[str]:
        """Return options of `kafeat tune` that repeat the search, limited to this many trials."""
        last = self.start.predictor
        asked = replace(
            self.asked,
            trials=trials,
            split_by=self.start.split_by,
            predictor=None if last is None else last.kind,  # type: ignore[arg-type]  # one of these
            class_weight="balanced" if self.balanced else None,
        )
        from_file = ["base"] if isinstance(asked.base, str) else []
        rest = ("trials", "task", "scoring", "split_by", "rows", *from_file, "predictor", "class_weight")
        bounds = words_of(asked, "columns", "max_bytes_per_row")
        return [*bounds, "--seeds", str(asked.seeds), *words_of(asked, *rest)]

    def config(self, steps: Sequence[Recipe]) -> Config:
        """Return the config with these steps, which reads the usable columns of the table."""
        return with_columns(self.start, self.table.groups, steps)

    def fit(self, config: Config, data: RereadableData, intervals: bool) -> FeatureMap:
        """Fit a config on the training rows, with intervals if they are requested."""
        weight = None if config.predictor is None else self.asked.weight
        with data.open() as source:
            return fit_reader(
                config, source, self.label, split=self.asked.split, weight=weight, jobs=self.jobs,
                intervals=intervals,
            )  # fmt: skip
