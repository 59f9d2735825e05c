"""Evaluate every candidate map on the same rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Literal, cast

import numpy as np

from kafeat.errors import DataError, UsageError, quoted
from kafeat.evaluation.choose_learner import learner_of
from kafeat.evaluation.folds import Split, split
from kafeat.evaluation.kernel_error import distortion, kernel_error
from kafeat.evaluation.learners import Inputs, Learner, Truth, score
from kafeat.evaluation.records import EvaluationRecord, Scores
from kafeat.evaluation.report.figure_data import FigureData
from kafeat.evaluation.task import task_of
from kafeat.jobs.evaluate.candidates import Candidate
from kafeat.jobs.evaluate.inputs import EvaluatedMap, RereadableData, TimedInputs
from kafeat.jobs.fit.labels import check_split, parse_test_rows, spell_value
from kafeat.jobs.fit.messages import Listener
from kafeat.runtime.environment import count_jobs
from kafeat.types import Array, Floats, Mask

Say = Callable[[str], None]
Task = Literal["auto", "classification", "regression"]


@dataclass(frozen=True)
class EvaluationRequest:
    """Options of an evaluation, the same for every map.

    Attributes:
        label: Column to predict; None compares kernels only.
        split: Column of train and test; None chooses the held-out rows at random.
        task: Kind of prediction; auto decides by the labels.
        learner: Name of the model that predicts the label.
        tau: Quantile or width of the loss, for the learners that have one.
        rows: Number of rows for the Gram matrices.
        exact_rows: Largest number of training rows of the exact kernel machine.
        jobs: Number of threads; None takes all cores.
        output_dtype: Type that features are rounded to; None takes that of the map.
    """

    label: str | None = None
    split: str | None = None
    task: Task = "auto"
    learner: str = "ridge"
    tau: float = 0.1
    rows: int = 2000
    exact_rows: int = 2000
    jobs: int | None = None
    output_dtype: str | None = None


# Runs of a transform, of which the median counts: one run of a few rows is too short to measure.
_RUNS = 5


def _timed(work: Callable[[], Floats], runs: int) -> tuple[Floats, float]:
    """Return the result, and the median of the seconds."""
    seconds = []
    for _ in range(runs):
        started = time.perf_counter()
        result = work()
        seconds.append(time.perf_counter() - started)
    return result, float(np.median(seconds))


# Two rows to compare or to test on, and some to fit and to train on.
_LEAST_ROWS = 5


@dataclass(frozen=True)
class _Learned:
    """Result of a learner on some columns."""

    score: float
    seconds: float
    nonzero: int
    penalty: float
    converged: bool


@dataclass(frozen=True)
class _LearnedExact(_Learned):
    """Result of a learner with the exact kernel, and the numbers of its rows."""

    rows: int
    rows_test: int


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
            candidate.refuse_features([name for name in (request.label, request.split) if name is not None])
        self._learner: Learner | None = (
            None
            if request.label is None
            else learner_of(request.learner, request.tau, count_jobs(request.jobs))
        )
        self._split, labels = self._split_rows(candidates[0].base_seed)
        if self._learner is not None and labels is not None:
            with self._data.open() as source:
                place = source.location
            try:
                self._truth = Truth(task_of(labels, request.task), labels, self._split.folds)
            except DataError as error:
                raise DataError(f"{place}: {error}") from None
        # Several maps often share their raw columns, or their exact kernel.
        self._raw: dict[tuple[object, ...], _Learned] = {}
        self._kernels: dict[bytes, _LearnedExact] = {}

    def _split_rows(self, seed: int) -> tuple[Split, Array | None]:
        """Return the training, test and validation rows, and the labels."""
        request = self._request
        check_split(request.split, request.label)
        n, columns = self._data.label_columns({"--label": request.label, "--split": request.split})
        if n < _LEAST_ROWS:
            with self._data.open() as source:
                raise DataError(
                    f"{source.location}: expected at least {_LEAST_ROWS} rows to evaluate on, got {n}"
                )
        test = None if request.split is None else _test_rows(request.split, columns[request.split])
        return split(n, seed, test), None if request.label is None else columns[request.label]

    def record(self, candidate: Candidate, say: Say | None, listener: Listener) -> EvaluationRecord:
        """Evaluate one map; `listener` follows the fit of a recipe."""
        tell = say or (lambda _step: None)
        tell(f"{candidate.spelled}: fitting")
        request = self._request
        started = time.perf_counter()
        fm = candidate.fit(self._data, request.label, request.split, self._split.test, listener)
        fitted = time.perf_counter() - started
        no_exact = next((one.step.no_exact for one in fm.chain.steps if one.step.no_exact), None)
        if no_exact:
            raise UsageError(f"evaluate: {no_exact}")
        tell(f"{candidate.spelled}: comparing")
        columns = [name for name in (request.label, request.split) if name is not None]
        subject = EvaluatedMap(
            fm, self._data, len(self._split.test), columns, request.jobs, request.output_dtype
        )
        rows, X = subject.select_rows(self._compared_rows(candidate))
        _ = subject.map.transformer  # compute derived arrays before the time is measured
        Z, transform_seconds = _timed(lambda: subject.transform(X), _RUNS)
        K, exact_seconds = _timed(lambda: subject.map.exact_kernel(X), 1)
        Z = Z.astype(np.float64)
        projects = fm.chain.steps[-1].step.kind == "projection"
        values = {
            "map": candidate.name,
            "setting": candidate.setting,
            "seed": fm.config.seed,
            "kinds": [one.step.kind for one in fm.chain.steps],
            "rows": len(rows),
            "rows_seen_in_fit": candidate.rows_seen(fm, self._data, rows, len(self._split.test)),
            "n_components": fm.n_components,
            "n_features_in": fm.n_features_in,
            "dtype": subject.dtype.name,
            "bytes_per_row": fm.n_components * subject.dtype.itemsize,
            "fit_seconds": None if candidate.config is None else fitted,
            "transform_seconds": transform_seconds,
            "exact_seconds": exact_seconds,
            "reference": fm.chain.exact_kernel_note(),
            "kernel_mean": float(K.mean()),
            **kernel_error(K, Z),
            **(distortion(K, Z) if projects else {}),
        }
        if self._learner is not None:
            tell(f"{candidate.spelled}: learning")
            values |= self._scores(subject, self._learner)
        record = cast(EvaluationRecord, values)
        if self._figure_data is not None:
            between = not (any(fm.columns.n_categories) or fm.columns.missing)
            self._figure_data.keep(record, subject.map, X, K, Z, between)
        return record

    def _compared_rows(self, candidate: Candidate) -> Array:
        """Choose rows for the Gram matrices: held-out ones, or of all rows if nothing is fitted or split here."""
        held = candidate.config is not None or self._split.given
        return self._split.some(
            self._split.test if held else np.ones(len(self._split.test), bool), self._request.rows
        )

    def _scores(self, subject: EvaluatedMap, learner: Learner) -> Scores:
        """Score the learner on raw columns, on the features, and on the exact kernel."""
        test, truth = self._split.test, self._truth
        train = ~test
        if train.sum() < 2 or not test.any():
            raise DataError(
                f"label: expected rows to train and rows to test on, got {train.sum()} and {test.sum()}"
            )
        known = (
            np.isin(truth.labels[test], truth.labels[train]) if truth.task.classes is not None else test[test]
        )
        if not known.any():
            raise DataError(
                f"label {quoted(str(self._request.label))}: expected classes of the test rows among the training "
                "rows, got none of them: each class needs several rows"
            )
        key = subject.raw_key
        if key not in self._raw:
            self._raw[key] = self._learned(subject.raw, learner)
        raw, features = self._raw[key], self._learned(subject.features, learner)
        exact, map_exact_rows = self._exact(subject, learner)
        return {
            "label": self._request.label, "split": self._request.split,
            "task": truth.task.kind, "learner": learner.name,
            "rows_train": int(train.sum()), "rows_test": int(test.sum()),
            "score_raw": raw.score, "learn_seconds_raw": raw.seconds, "nonzero_raw": raw.nonzero,
            "penalty_raw": raw.penalty, "converged_raw": raw.converged,
            "score_map": features.score, "learn_seconds_map": features.seconds, "nonzero_map": features.nonzero,
            "penalty_map": features.penalty, "converged_map": features.converged,
            "score_exact": exact.score, "learn_seconds_exact": exact.seconds, "nonzero_exact": exact.nonzero,
            "penalty_exact": exact.penalty, "converged_exact": exact.converged, "rows_exact": exact.rows,
            "rows_test_exact": exact.rows_test, "score_map_exact_rows": map_exact_rows,
        }  # fmt: skip

    def _learned(self, inputs: Inputs, learner: Learner) -> _Learned:
        """Fit and score the learner on these inputs."""
        timed = TimedInputs(inputs)
        started = time.perf_counter()
        model = learner.linear(replace(inputs, blocks=timed.blocks), ~self._split.test, self._truth)
        seconds = time.perf_counter() - started - timed.seconds
        reached = score(model, inputs, self._split.test, self._truth)
        return _Learned(reached, seconds, model.nonzero, model.penalty, model.converged)

    def _exact(self, subject: EvaluatedMap, learner: Learner) -> tuple[_LearnedExact, float]:
        """Score the learner with the exact kernel, and on features of the same rows; at most `exact_rows` rows."""
        most, test = self._request.exact_rows, self._split.test
        train_rows, train = subject.select_rows(self._split.some(~test, most))
        K = subject.map.exact_kernel(train)
        key = sha256(np.ascontiguousarray(K).data).digest()
        if key not in self._kernels:
            self._kernels[key] = self._learned_exact(subject, learner, K, train_rows, train)
        # The loss by the approximation shows if the features are trained on the same rows as the exact kernel.
        same_rows = np.zeros(len(test), dtype=bool)
        same_rows[train_rows] = True
        model = learner.linear(subject.features, same_rows, self._truth)
        return self._kernels[key], score(model, subject.features, test, self._truth)

    def _learned_exact(
        self, subject: EvaluatedMap, learner: Learner, K: Floats, train_rows: Array, train: Floats
    ) -> _LearnedExact:
        """Fit and score the learner with the kernel matrix K of the rows `train`."""
        most, truth = self._request.exact_rows, self._truth
        test_rows, tests = subject.select_rows(self._split.some(self._split.test, 5 * most))
        started = time.perf_counter()
        model = learner.exact(K, train_rows, truth)
        seconds = time.perf_counter() - started
        predicted = [
            model(subject.map.exact_kernel(tests[i : i + most], train)) for i in range(0, len(tests), most)
        ]
        reached = truth.task.score(np.concatenate(predicted), truth.labels[test_rows])
        return _LearnedExact(
            reached, seconds, model.nonzero, model.penalty, model.converged, len(train_rows), len(test_rows)
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
