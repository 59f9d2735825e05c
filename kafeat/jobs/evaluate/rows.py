"""Choose the rows of an evaluation: those to test on, to choose a map by, and to compare kernels on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kafeat.errors import DataError, quoted
from kafeat.evaluation.learners import Truth
from kafeat.evaluation.preparation import Split, split
from kafeat.jobs.evaluate.candidates import Candidate
from kafeat.jobs.evaluate.inputs import RereadableData
from kafeat.jobs.evaluate.request import EvaluationRequest
from kafeat.jobs.fit.labels import check_split, joint_labels, parse_test_rows, spell_value
from kafeat.maths.task import task_of
from kafeat.types import Array, Mask

# The part of the training rows that several maps are chosen on, and the least number of training rows for this.
_VALIDATION_PART, _LEAST_TO_CHOOSE = 4, 40
# Two rows to compare or to test on, and some to fit and to train on.
_LEAST_ROWS = 5


@dataclass(frozen=True)
class EvaluatedRows:
    """The rows of one split of the data.

    Attributes:
        split: Which rows are tested on.
        seed: Seed of the choice of these rows; None if a column names them.
        validation: Training rows that the recommendation is chosen on; None if there is nothing to choose.
        truth: The labels; None without any.
    """

    split: Split
    seed: int | None
    validation: Mask | None
    truth: Truth | None

    @property
    def held_out(self) -> Mask:
        """The rows that no recipe is fitted on."""
        return self.split.test if self.validation is None else self.split.test | self.validation

    def compared(self, candidate: Candidate, most: int) -> Array:
        """Choose rows for the Gram matrices: held-out ones, or of all rows if nothing is fitted or split here."""
        held = candidate.config is not None or self.split.by_column
        return self.split.some(self.split.test if held else np.ones(len(self.split.test), bool), most)


def choose_rows(
    data: RereadableData, request: EvaluationRequest, candidates: Sequence[Candidate], splits: int
) -> list[EvaluatedRows]:
    """Read the labels and return the rows of every split, the first by the seed of the recipes."""
    check_split(request.split, request.labels)
    of_split = [] if request.split is None else [request.split]
    n, columns = data.label_columns({"--label": request.labels, "--split": of_split})
    if n < _LEAST_ROWS:
        with data.open() as source:
            raise DataError(
                f"{source.location}: expected at least {_LEAST_ROWS} rows to evaluate on, got {n}"
            )
    test = None if request.split is None else _test_rows(request.split, columns[request.split])
    labels = (
        joint_labels({name: columns[name] for name in request.labels}, data.name) if request.labels else None
    )
    base = candidates[0].base_seed
    return [
        _rows_of(split(n, base + i, test), None if test is not None else base + i, data, labels, request, candidates)
        for i in range(splits)
    ]  # fmt: skip


def _rows_of(
    chosen: Split,
    seed: int | None,
    data: RereadableData,
    labels: Array | None,
    request: EvaluationRequest,
    candidates: Sequence[Candidate],
) -> EvaluatedRows:
    if labels is None:
        return EvaluatedRows(chosen, seed, None, None)
    try:
        truth = Truth(task_of(labels, request.task), labels, chosen.folds)
    except DataError as error:
        with data.open() as source:
            raise DataError(f"{source.location}: {error}") from None
    return EvaluatedRows(chosen, seed, _validation_rows(chosen, candidates), truth)


def _validation_rows(chosen: Split, candidates: Sequence[Candidate]) -> Mask | None:
    """Return the training rows that the recommendation is chosen on; None if there is nothing to choose.

    Recipes are not fitted on them, so that a map that learns from the label is not preferred for having seen it.
    """
    train = ~chosen.test
    settings = {(one.name, repr(one.setting)) for one in candidates}
    if len(settings) < 2 or train.sum() < _LEAST_TO_CHOOSE:
        return None
    rows = np.zeros(len(train), dtype=bool)
    rows[chosen.some(train, int(train.sum()) // _VALIDATION_PART)] = True
    return rows


def check_labels(chosen: Split, truth: Truth, label: str) -> None:
    """Refuse a split without rows to train or test on, and test rows of unknown classes alone."""
    test = chosen.test
    train = ~test
    if train.sum() < 2 or not test.any():
        raise DataError(
            f"label: expected rows to train and rows to test on, got {train.sum()} and {test.sum()}"
        )
    numbers = None if truth.task.classes is None else truth.task.numbers(truth.labels)
    if numbers is not None and not np.isin(numbers[test], numbers[train]).any():
        raise DataError(
            f"label {quoted(label)}: expected classes of the test rows among the training rows, got none of them: each "
            "class needs several rows"
        )


def _test_rows(name: str, values: Array) -> Mask:
    """Parse a column of train and test; return true for test rows."""
    test, odd = parse_test_rows(values)
    if odd is not None:
        raise DataError(
            f"split {quoted(name)}: expected train or test in every row, got {spell_value(values[odd])}"
        )
    if test.sum() < 2 or (~test).sum() < 2:
        raise DataError(
            f"split {quoted(name)}: expected at least two rows of each kind, got {(~test).sum()} train and "
            f"{test.sum()} test"
        )
    return test
