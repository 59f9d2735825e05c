"""Evaluate every candidate map on the same rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, cast

import numpy as np

from kafeat.errors import DataError, quoted
from kafeat.evaluation.costs import repeated, seconds_of
from kafeat.evaluation.kernel_error import distortion, kernel_error
from kafeat.evaluation.learners import Learner, Truth, learner_of
from kafeat.evaluation.preparation import Split, split
from kafeat.evaluation.records import EvaluationRecord, Named, Scores
from kafeat.evaluation.report.figure_data import FigureData
from kafeat.jobs.evaluate.candidates import Candidate, Fit
from kafeat.jobs.evaluate.inputs import EvaluatedMap, RereadableData
from kafeat.jobs.evaluate.machines import Machines, Predictions
from kafeat.jobs.fit.labels import (
    LabelNames,
    check_split,
    joint_labels,
    parse_test_rows,
    plain_names,
    spell_value,
)
from kafeat.jobs.fit.messages import Listener
from kafeat.maths.task import task_of
from kafeat.model.importance import first_importance
from kafeat.runtime.environment import count_jobs
from kafeat.types import Array, Mask

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
    rows: int = 2000
    exact_rows: int = 2000
    jobs: int | None = None
    output_dtype: str | None = None

    @property
    def reserved(self) -> list[str]:
        """The columns that are no features: the labels and the split."""
        return [*self.labels, *([] if self.split is None else [self.split])]


# The part of the training rows that several maps are chosen on, and the least number of training rows for this.
_VALIDATION_PART, _LEAST_TO_CHOOSE = 4, 40
# Two rows to compare or to test on, and some to fit and to train on.
_LEAST_ROWS = 5


class Evaluator:
    """Evaluates every candidate map on the same rows."""

    def __init__(
        self,
        data: RereadableData,
        request: EvaluationRequest,
        candidates: Sequence[Candidate],
        figure_data: FigureData | None,
    ) -> None:
        self._data, self._request, self._figure_data = data, request, figure_data
        for candidate in candidates:
            candidate.refuse_features(request.reserved)
            candidate.refuse_without_exact()
        self._learner: Learner | None = (
            learner_of(request.learner, request.tau, count_jobs(request.jobs), len(request.labels))
            if request.labels
            else None
        )
        self._split, labels = self._split_rows(candidates[0].base_seed)
        self._validation = self._validation_rows(candidates)
        if self._learner is not None and labels is not None:
            with self._data.open() as source:
                place = source.location
            try:
                self._truth = Truth(task_of(labels, request.task), labels, self._split.folds)
            except DataError as error:
                raise DataError(f"{place}: {error}") from None
            self._machines = Machines(
                self._learner, self._split, self._truth, self._validation, request.exact_rows, request.penalty
            )

    def _split_rows(self, seed: int) -> tuple[Split, Array | None]:
        """Return the training, test and validation rows, and the labels."""
        request = self._request
        check_split(request.split, request.labels)
        of_split = [] if request.split is None else [request.split]
        n, columns = self._data.label_columns({"--label": request.labels, "--split": of_split})
        if n < _LEAST_ROWS:
            with self._data.open() as source:
                raise DataError(
                    f"{source.location}: expected at least {_LEAST_ROWS} rows to evaluate on, got {n}"
                )
        test = None if request.split is None else _test_rows(request.split, columns[request.split])
        labels = {name: columns[name] for name in request.labels}
        return split(n, seed, test), joint_labels(labels, self._data.name) if labels else None

    def _validation_rows(self, candidates: Sequence[Candidate]) -> Mask | None:
        """Return the training rows that the recommendation is chosen on; None if there is nothing to choose.

        Recipes are not fitted on them, so that a map that learns from the label is not preferred for having seen it.
        """
        train = ~self._split.test
        settings = {(one.name, repr(one.setting)) for one in candidates}
        if self._learner is None or len(settings) < 2 or train.sum() < _LEAST_TO_CHOOSE:
            return None
        rows = np.zeros(len(train), dtype=bool)
        rows[self._split.some(train, int(train.sum()) // _VALIDATION_PART)] = True
        return rows

    def record(self, candidate: Candidate, say: Say | None, listener: Listener) -> EvaluationRecord:
        """Evaluate one map; `listener` follows the fit of a recipe."""
        tell = say or (lambda _step: None)
        tell(f"{candidate.spelled}: fitting")
        fit = self._fitted(candidate, listener)
        fm = fit.map
        tell(f"{candidate.spelled}: comparing")
        request, n_rows = self._request, len(self._split.test)
        subject = EvaluatedMap(fm, self._data, n_rows, request.reserved, request.jobs, request.output_dtype)
        rows, X = subject.select_rows(self._compared_rows(candidate))
        _ = subject.map.transformer  # compute derived arrays before the time is measured
        transform_seconds = repeated(seconds_of(lambda: subject.transform(X)))
        Z, started = subject.transform(X).astype(np.float64), time.perf_counter()
        K = subject.map.exact_kernel(X)
        exact_seconds = time.perf_counter() - started
        values = {
            "map": candidate.name, "setting": candidate.setting,
            "seed": fm.config.seed, "kinds": [one.step.kind for one in fm.chain.steps],
            "rows": len(rows), "rows_seen_in_fit": candidate.rows_seen(fm, self._data, rows, n_rows),
            "n_components": fm.n_components, "n_features_in": fm.n_features_in,
            "dtype": subject.dtype.name, "bytes_per_row": fm.n_components * subject.dtype.itemsize,
            "fit_seconds": fit.seconds, "transform_seconds": transform_seconds, "exact_seconds": exact_seconds,
            "reference": fm.chain.exact_kernel_note(), "kernel_mean": float(K.mean()),
            **kernel_error(K, Z),
            **(distortion(K, Z) if fm.chain.steps[-1].step.kind == "projection" else {}),
        }  # fmt: skip
        drawn = self._figure_data is not None and not self._figure_data.has(cast(Named, values))
        predictions: Predictions | None = None
        if self._learner is not None:
            tell(f"{candidate.spelled}: learning")
            scores, predictions = self._scores(subject, fit, drawn)
            values |= scores
        record = cast(EvaluationRecord, values)
        if self._figure_data is not None:
            between = not (any(fm.columns.n_categories) or fm.columns.missing)
            self._figure_data.keep(record, subject.map, X, K, Z, between, first_importance(fm), predictions)
        return record

    def _fitted(self, candidate: Candidate, listener: Listener) -> Fit:
        """Return the map of a candidate, and what its fit costs if it is a recipe."""
        request = self._request
        held = self._split.test if self._validation is None else self._split.test | self._validation
        return candidate.fit(self._data, request.labels, request.split, held, listener)

    def _compared_rows(self, candidate: Candidate) -> Array:
        """Choose rows for the Gram matrices: held-out ones, or of all rows if nothing is fitted or split here."""
        held = candidate.config is not None or self._split.by_column
        return self._split.some(
            self._split.test if held else np.ones(len(self._split.test), bool), self._request.rows
        )

    def _scores(self, subject: EvaluatedMap, fit: Fit, drawn: bool) -> tuple[Scores, Predictions | None]:
        """Score the learner on raw columns, on the features, and on the exact kernel, and count the costs.

        If figures are `drawn`, return the seconds to predict so many rows too.
        """
        self._check_labels()
        test, request = self._split.test, self._request
        raw, features = self._machines.raw(subject), self._machines.features(subject)
        exact, same_rows = self._machines.exact(subject, features)
        # A model was fitted before, at no cost here.
        cost = (0.0, 0) if fit.seconds is None else (fit.seconds, fit.peak_bytes)
        values = {
            "label": plain_names(request.labels), "split": request.split,
            "task": self._truth.task.kind, "learner": request.learner,
            "rows_train": int((~test).sum()), "rows_test": int(test.sum()),
            **raw.keys("raw"), **features.keys("map", *cost), **exact.keys("exact"),
            "transform_seconds_map": features.making_seconds, "kernel_seconds_exact": exact.making_seconds,
            "rows_exact": exact.rows, "rows_test_exact": exact.rows_test, "score_map_exact_rows": same_rows.score,
            "total_seconds_map_exact_rows": same_rows.keys("map", *cost)["total_seconds_map"],
        }  # fmt: skip
        if self._validation is not None:
            values["rows_validation"] = int(self._validation.sum())
            values["score_raw_validation"] = self._machines.raw_validated(subject)
            values["score_map_validation"] = self._machines.features_validated(subject)
        models = features.trained.model, exact.trained.model
        return cast(Scores, values), self._machines.predictions(subject, *models) if drawn else None

    def _check_labels(self) -> None:
        """Refuse a split without rows to train or test on, and test rows of unknown classes alone."""
        test, truth = self._split.test, self._truth
        train = ~test
        if train.sum() < 2 or not test.any():
            raise DataError(
                f"label: expected rows to train and rows to test on, got {train.sum()} and {test.sum()}"
            )
        if truth.task.classes is not None and not np.isin(truth.labels[test], truth.labels[train]).any():
            raise DataError(
                f"label {quoted(self._request.labels[0])}: expected classes of the test rows among the training "
                "rows, got none of them: each class needs several rows"
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
