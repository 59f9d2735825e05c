"""Asks every map the same about the same rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, Literal

import numpy as np

from kafeat.errors import DataError, UsageError, quoted
from kafeat.evaluation.choose_learner import learner_of
from kafeat.evaluation.folds import Split, split
from kafeat.evaluation.kernel_error import distortion, kernel_error
from kafeat.evaluation.learners import Inputs, Learner, Truth, score
from kafeat.evaluation.report.figure_data import FigureData
from kafeat.evaluation.task import task_of
from kafeat.jobs.evaluate.candidates import Candidate
from kafeat.jobs.evaluate.inputs import Data, EvaluatedMap, TimedInputs
from kafeat.jobs.fit.listener import Listener
from kafeat.jobs.fit.sample import check_split, spell_value, tested
from kafeat.runtime.environment import count_jobs
from kafeat.types import Array, Floats, Mask

Say = Callable[[str], None]
Task = Literal["auto", "classification", "regression"]


@dataclass(frozen=True)
class EvaluationRequest:
    """What is asked of every map alike."""

    label: str | None = None
    split: str | None = None
    task: Task = "auto"
    learner: str = "ridge"
    tau: float = 0.1
    rows: int = 2000
    exact_rows: int = 2000
    jobs: int | None = None
    output_dtype: str | None = None


# Runs of a transform, of which the median counts: few rows take so little time that one run says nothing.
_TIMES = 5


def _timed(work: Callable[[], Floats], times: int) -> tuple[Floats, float]:
    """The result, and the median of the seconds."""
    seconds = []
    for _ in range(times):
        started = time.perf_counter()
        result = work()
        seconds.append(time.perf_counter() - started)
    return result, float(np.median(seconds))


# Two to compare or to test on, and some to fit and to train on.
_FEWEST = 5


class Evaluator:
    """Asks every map the same about the same rows."""

    def __init__(
        self, data: Data, question: EvaluationRequest, found: Sequence[Candidate], gallery: FigureData | None
    ) -> None:
        self._data, self._question, self._gallery = data, question, gallery
        for contender in found:
            contender.refuse_features([name for name in (question.label, question.split) if name is not None])
        self._learner: Learner | None = (
            None
            if question.label is None
            else learner_of(question.learner, question.tau, count_jobs(question.jobs))
        )
        self._split, labels = self._survey(found[0].base_seed)
        if self._learner is not None and labels is not None:
            with self._data.open() as source:
                place = source.location
            try:
                self._truth = Truth(task_of(labels, question.task), labels, self._split.folds)
            except DataError as error:
                raise DataError(f"{place}: {error}") from None
        self._known: dict[Any, Any] = {}
        """What was learned already: raw columns are the same for every map, and kernels often are."""

    def _survey(self, seed: int) -> tuple[Split, Array | None]:
        asked = self._question
        check_split(asked.split, asked.label)
        n, columns = self._data.whole({"--label": asked.label, "--split": asked.split})
        if n < _FEWEST:
            with self._data.open() as source:
                raise DataError(
                    f"{source.location}: expected at least {_FEWEST} rows to evaluate on, got {n}"
                )
        test = None if asked.split is None else _test_rows(asked.split, columns[asked.split])
        return split(n, seed, test), None if asked.label is None else columns[asked.label]

    def record(self, contender: Candidate, say: Say | None, listener: Listener) -> dict[str, Any]:
        """Everything about one map; `listener` follows the fit of a recipe."""
        tell = say or (lambda _step: None)
        tell(f"{contender.spelled}: fitting")
        asked = self._question
        started = time.perf_counter()
        fm = contender.fit(self._data, asked.label, asked.split, self._split.test, listener)
        fitted = time.perf_counter() - started
        unknown = next((one.step.no_exact for one in fm.chain.steps if one.step.no_exact), None)
        if unknown:
            raise UsageError(f"evaluate: {unknown}")
        tell(f"{contender.spelled}: comparing")
        columns = [name for name in (asked.label, asked.split) if name is not None]
        subject = EvaluatedMap(fm, self._data, len(self._split.test), columns, asked.jobs, asked.output_dtype)
        compared = self._compared(contender)
        rows, X = subject.some(compared)
        _ = subject.map.transformer  # derived arrays are made once in a process
        Z, transform_seconds = _timed(lambda: subject.transform(X), _TIMES)
        K, exact_seconds = _timed(lambda: subject.map.exact_kernel(X), 1)
        Z = Z.astype(np.float64)
        projects = fm.chain.steps[-1].step.kind == "projection"
        record: dict[str, Any] = {
            "map": contender.name,
            "setting": contender.setting,
            "seed": fm.config.seed,
            "kinds": [one.step.kind for one in fm.chain.steps],
            "rows": len(rows),
            "rows_seen_in_fit": contender.seen(fm, self._data, rows, len(self._split.test)),
            "n_components": fm.n_components,
            "n_features_in": fm.n_features_in,
            "dtype": subject.dtype.name,
            "bytes_per_row": fm.n_components * subject.dtype.itemsize,
            "fit_seconds": None if contender.config is None else fitted,
            "transform_seconds": transform_seconds,
            "exact_seconds": exact_seconds,
            "reference": fm.chain.reference(),
            "kernel_mean": float(K.mean()),
            **kernel_error(K, Z),
            **(distortion(K, Z) if projects else {}),
        }
        if self._learner is not None:
            tell(f"{contender.spelled}: learning")
            record |= self._usefulness(subject, self._learner)
        if self._gallery is not None:
            between = not (any(fm.columns.n_categories) or fm.columns.missing)
            self._gallery.keep(record, subject.map, X, K, Z, between)
        return record

    def _compared(self, contender: Candidate) -> Array:
        """Rows for the Gram matrices: held out where something was fitted here, the last to be fitted on elsewhere."""
        held = contender.config is not None or self._split.given
        return self._split.some(
            self._split.test if held else np.ones(len(self._split.test), bool), self._question.rows
        )

    def _usefulness(self, subject: EvaluatedMap, learner: Learner) -> dict[str, Any]:
        test, truth = self._split.test, self._truth
        train = ~test
        if train.sum() < 2 or not test.any():
            raise DataError(
                f"label: expected rows to train and rows to test on, got {train.sum()} and {test.sum()}"
            )
        record: dict[str, Any] = {
            "label": self._question.label, "split": self._question.split,
            "task": truth.task.kind, "learner": learner.name,
            "rows_train": int(train.sum()), "rows_test": int(test.sum()),
        }  # fmt: skip
        raw = ("raw", *subject.plain)
        if raw not in self._known:
            self._known[raw] = self._learned("raw", subject.raw, learner)
        record |= self._known[raw]
        known = (
            np.isin(truth.labels[test], truth.labels[train]) if truth.task.classes is not None else test[test]
        )
        if not known.any():
            raise DataError(
                f"label {quoted(str(self._question.label))}: expected classes of the test rows among the training "
                "rows, got none of them: each class needs several rows"
            )
        return record | self._learned("map", subject.features, learner) | self._exact(subject, learner)

    def _learned(self, name: str, inputs: Inputs, learner: Learner) -> dict[str, Any]:
        watch = TimedInputs(inputs)
        started = time.perf_counter()
        model = learner.linear(replace(inputs, blocks=watch.blocks), ~self._split.test, self._truth)
        seconds = time.perf_counter() - started - watch.seconds
        return {
            f"score_{name}": score(model, inputs, self._split.test, self._truth),
            f"learn_seconds_{name}": seconds,
            f"nonzero_{name}": model.nonzero,
            f"penalty_{name}": model.penalty,
            f"converged_{name}": model.converged,
        }

    def _exact(self, subject: EvaluatedMap, learner: Learner) -> dict[str, Any]:
        """The exact machine, on as many rows as it is allowed."""
        most, test = self._question.exact_rows, self._split.test
        train_rows, train = subject.some(self._split.some(~test, most))
        test_rows, tests = subject.some(self._split.some(test, 5 * most))
        K = subject.map.exact_kernel(train)
        key = ("exact", sha256(np.ascontiguousarray(K).data).digest())
        if key not in self._known:
            started = time.perf_counter()
            model = learner.exact(K, train_rows, self._truth)
            seconds = time.perf_counter() - started
            predicted = [
                model(subject.map.exact_kernel(tests[i : i + most], train))
                for i in range(0, len(tests), most)
            ]
            self._known[key] = {
                "score_exact": self._truth.task.score(
                    np.concatenate(predicted), self._truth.labels[test_rows]
                ),
                "learn_seconds_exact": seconds,
                "nonzero_exact": model.nonzero,
                "penalty_exact": model.penalty,
                "converged_exact": model.converged,
                "rows_exact": len(train_rows),
                "rows_test_exact": len(test_rows),
            }
        # What the kernel loses by the map shows on the rows that both were trained on.
        few = np.zeros(len(test), dtype=bool)
        few[train_rows] = True
        model = learner.linear(subject.features, few, self._truth)
        same = score(model, subject.features, test, self._truth)
        return {**self._known[key], "score_map_exact_rows": same}


def _test_rows(name: str, values: Array) -> Mask:
    """A column that says train or test."""
    test, odd = tested(values)
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
