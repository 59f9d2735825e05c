"""Evaluate every candidate map on the same rows: rows to test on, to choose a map by, and to compare kernels on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from kafeat.contract import InputRows, SparseRows, numbers_of
from kafeat.errors import DataError, UsageError, quoted
from kafeat.jobs.fit import (
    SILENT,
    LabelSummary,
    Listener,
    MapOnData,
    RereadableData,
    check_split,
    label_names,
    label_of_task,
)
from kafeat.maths import TaskKind, task_of
from kafeat.pictures import MapFigures, map_figures, same_map
from kafeat.study.candidates import ComparedMap
from kafeat.study.learners import Learner, Split, Truth, split
from kafeat.study.machines import Machines
from kafeat.study.records import Entries, Record
from kafeat.study.request import EvaluationRequest, Say
from kafeat.types import Mask

# One in four training rows is a validation row, to decide between maps, if there are at least 40 training rows.
_VALIDATION_PART, _LEAST_TO_CHOOSE = 4, 40
# Every evaluation needs two rows to test or compare on, and three to fit and train on.
_LEAST_ROWS = 5


def compared_rows(rows: Split, candidate: ComparedMap, most: int) -> Mask:
    """Return the rows to compare kernels on: test rows or, for a saved model without a --split column, any rows."""
    held = candidate.fitted is None or rows.seed is None
    return rows.some(rows.test if held else np.ones(len(rows.test), bool), most)


def choose_rows(
    data: RereadableData,
    request: EvaluationRequest,
    candidates: Sequence[ComparedMap],
    splits: int,
    listener: Listener = SILENT,
) -> list[Split]:
    """Read the labels and return the splits of the rows. The seed of split i is that of the first config plus i."""
    check_split(request.split, request.labels)
    base = candidates[0].config
    known = data.rows_known(request.labels, request.split, base)
    n, labels, keys = known.n, known.labels, known.keys
    if n < _LEAST_ROWS:
        with data.open() as source:
            raise DataError(
                f"{source.location}: expected at least {_LEAST_ROWS} rows to evaluate on, got {n}"
            )
    test = None if request.split is None else known.test
    if request.split is not None:
        _check_test_rows(request.split, known.test)
    divided = [split(n, base.seed + i, test, keys) for i in range(splits)]
    if labels is None:
        return divided
    kind, summary = _task_asked(request, candidates), LabelSummary()
    summary.add(labels)
    listener.inform(summary.taken_for(kind, "--task {}"))
    task, groups = (
        data.task_of(labels, kind, task_of, request.labels),
        None if keys is None or keys.ordered else keys.values,
    )
    truths = [Truth(task, labels, one.folds, groups) for one in divided]
    return [
        replace(one, validation=_validation_rows(one, candidates), truth=truth)
        for one, truth in zip(divided, truths, strict=True)
    ]


def with_soft_label(request: EvaluationRequest, candidates: Sequence[ComparedMap]) -> EvaluationRequest:
    """If the task is `soft`, return a request whose labels are probabilities, and refuse maps with another task."""
    kinds = {one.task(request.labels) for one in candidates} - {"auto"}
    task = _task_asked(request, candidates)
    if "soft" not in (task, *kinds):
        return request
    if kinds - {"soft"} or task != "soft":
        raise UsageError(
            f"evaluate: expected the same task for --task and all maps, got soft and "
            f"{', '.join(sorted({task, *kinds} - {'soft'}))}: evaluate them separately"
        )
    return replace(request, task=task, label=label_names(label_of_task(request.labels, task)))


def _task_asked(request: EvaluationRequest, candidates: Sequence[ComparedMap]) -> TaskKind:
    """Return the task of the option or, if that is `auto`, the only task that models and recipes state."""
    kinds = {one.task(request.labels) for one in candidates} - {"auto"}
    return kinds.pop() if request.task == "auto" and len(kinds) == 1 else request.task


def _validation_rows(chosen: Split, candidates: Sequence[ComparedMap]) -> Mask | None:
    """Return the validation rows, whose score decides which map is recommended, or None if there is only one map.

    No recipe is fitted on them, so that maps that learn from labels have no advantage.
    """
    train = chosen.train
    settings = {(one.name, repr(one.setting)) for one in candidates}
    if len(settings) < 2 or train.sum() < _LEAST_TO_CHOOSE:
        return None
    return chosen.validation_rows(_VALIDATION_PART)


def _check_test_rows(name: str, test: Mask) -> None:
    """Refuse a --split column with fewer than two rows of train or of test."""
    if test.sum() < 2 or (~test).sum() < 2:
        raise DataError(
            f"split {quoted(name)}: expected at least two rows of each kind, got {(~test).sum()} train and "
            f"{test.sum()} test"
        )


@dataclass(frozen=True)
class Evaluator:
    """An evaluator of candidate maps on the rows of one split."""

    data: RereadableData
    request: EvaluationRequest
    learner: Learner | None
    rows: Split
    exhibits: list[MapFigures] | None

    @cached_property
    def _machines(self) -> Machines | None:
        learner, truth = self.learner, self.rows.truth
        return Machines(learner, self.data, self.rows, truth, self.request) if learner and truth else None

    def record(self, candidate: ComparedMap, tell: Say, listener: Listener) -> Record:
        """Evaluate one map. `tell` is called with the name of each step, and `listener` follows the fit of a recipe."""
        tell("fitting")
        request, rows = self.request, self.rows
        fit = candidate.fit(self.data, request, self.learner, rows.held_out, listener)
        tell("comparing")
        subject = MapOnData(
            fit.map, self.data, reserved=request.reserved, dtype=request.output_dtype, jobs=request.jobs,
            fitted_on=np.flatnonzero(~rows.held_out),
        )  # fmt: skip
        compared = compared_rows(rows, candidate, request.rows)
        _, X = subject.select_rows(compared)
        measured, reference, (K, Z) = subject.errors(X)
        about = {**self._about(candidate, subject, compared, X), "reference": reference}
        learned, exhibits, figures = Record(about={}), self.exhibits, None
        drawn = exhibits is not None and not any(same_map(one.about, about) for one in exhibits)
        if self._machines is not None:
            tell("learning")
            learned, figures = self._machines.record(candidate, fit, subject, drawn, listener)
        if exhibits is not None and drawn:
            exhibits.append(map_figures(about, K, Z, figures))
        kernel = {"fit_seconds": fit.seconds, **measured}
        return replace(learned, about={**about, **learned.about}, kernel=kernel)

    def _about(self, candidate: ComparedMap, subject: MapOnData, compared: Mask, X: InputRows) -> Entries:
        """Return the entries of a record about a map, and about the rows that are compared."""
        fm, numbers = subject.map, X.values if isinstance(X, SparseRows) else numbers_of(X)
        return {
            "map": candidate.name, "setting": candidate.setting,
            "seed": fm.config.seed, "kinds": [one.step.kind for one in fm.chain.steps],
            "n_components": fm.n_components, "n_features_in": subject.n_features_in, "columns_raw": subject.raw_width,
            "dtype": subject.dtype.name, "bytes_per_row": fm.n_components * subject.dtype.itemsize,
            "split_seed": self.rows.seed, "rows": len(X),
            "rows_seen_in_fit": candidate.rows_seen(fm, self.data, compared),
            "data_rows": len(self.rows.test),
            "missing_share": float(np.isnan(numbers).sum() / (len(X) * X.shape[1])),
        }  # fmt: skip
