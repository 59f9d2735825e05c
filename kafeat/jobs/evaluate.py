"""What maps are worth on rows of a data set: their error against the exact kernel, and what learners make of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, Literal

import numpy as np

from kafeat.errors import DataError, GateError, UsageError, quoted
from kafeat.evaluation.distortion import distortion
from kafeat.evaluation.fidelity import fidelity
from kafeat.evaluation.folds import Split, split
from kafeat.evaluation.gallery import Gallery
from kafeat.evaluation.learners import Inputs, Learner, Mask, Truth, learner_of, score
from kafeat.evaluation.summary import budgets, recommend, spell, summarize
from kafeat.evaluation.task import task_of
from kafeat.feature_map import FeatureMap
from kafeat.io.selection import match
from kafeat.jobs.contenders import Contender, contenders
from kafeat.jobs.report import check_report, write_report
from kafeat.jobs.rereading import Data, rereadable
from kafeat.jobs.rows import matrices
from kafeat.jobs.sweep import Sweep, read_sweep
from kafeat.jobs.transform import Input
from kafeat.types import Array, Floats

Say = Callable[[str], None]
Task = Literal["auto", "classification", "regression"]


@dataclass(frozen=True)
class Question:
    """What is asked of every map alike."""

    label: str | None = None
    split: str | None = None
    task: Task = "auto"
    learner: str = "ridge"
    tau: float = 0.1
    rows: int = 2000
    exact_rows: int = 2000
    jobs: int | None = None


def evaluate(
    model: Any = None,
    data: Any = None,
    label: str | None = None,
    rows: int = 2000,
    reading: Input | None = None,
    *,
    config: Any = (),
    sweep: Sequence[str] | Mapping[str, Sequence[Any]] = (),
    seeds: int = 1,
    split: str | None = None,
    task: Task = "auto",
    learner: str = "ridge",
    tau: float = 0.1,
    exact_rows: int = 2000,
    jobs: int | None = None,
    report: str | None = None,
    say: Say | None = None,
) -> dict[str, Any]:
    """What maps are worth: errors against the exact kernel and, with a label, scores of learners.

    `model` is a map, the path of one, or a list of them; `config` likewise recipes, which are fitted on the rows
    that are not held out, once for each of `seeds` seeds and each combination of `sweep`. The keys of the result are
    documented in docs/evaluate.md: `records`, one for each map, setting and seed, and their `summary`; of a single
    record the keys stand at the top too. `report` is a folder for a page with pictures. Raises errors of
    `kafeat.errors`.
    """
    if data is None:
        raise UsageError("evaluate: expected data, got none")
    question = Question(label, split, task, learner, tau, rows, exact_rows, jobs)
    swept = [Sweep(key, tuple(values)) for key, values in sweep.items()] if isinstance(sweep, Mapping) else [
        read_sweep(text) for text in sweep
    ]  # fmt: skip
    if report is not None:
        check_report(report)
    gallery = None if report is None else Gallery()
    found = contenders(_listed(model), _listed(config), swept, seeds)
    with rereadable(data, reading) as again:
        examiner = _Examiner(again, question, found, gallery)
        records = [_finite(examiner.record(contender, say)) for contender in found]
    summary = summarize(records)
    result: dict[str, Any] = {
        "records": records,
        "summary": summary,
        "budgets": budgets(summary) if len(summary) > 1 else {},
        "recommendation": recommend(summary),
    }
    if report is not None and gallery is not None:
        write_report(report, again.name, result, gallery)
    return {**records[0], **result} if len(records) == 1 else result


def gate(report: Mapping[str, Any], max_error: float | None, min_score: float | None) -> None:
    """Raise `GateError` unless every map keeps both bounds on the average over its seeds."""
    missed = []
    for entry in report["summary"]:
        for key, bound, sign in (("relative_frobenius", max_error, 1.0), ("score_map", min_score, -1.0)):
            if bound is None:
                continue
            if key not in entry:
                raise UsageError("--min-score: expected --label, as without one there is no score")
            value = entry[key]["mean"]
            if value is None or sign * value > sign * bound:
                most = "at most" if sign > 0 else "at least"
                got = "none" if value is None else f"{value:.4g}"
                missed.append(f"{spell(entry)}: {key}: expected {most} {bound:g}, got {got}")
    if missed:
        raise GateError("\n".join(missed))


def _listed(given: Any) -> list[Any]:
    if given is None:
        return []
    return list(given) if isinstance(given, list | tuple) else [given]


def _finite(record: dict[str, Any]) -> dict[str, Any]:
    # A ratio to nothing has no value: null in JSON.
    return {
        key: None if isinstance(value, float) and not np.isfinite(value) else value
        for key, value in record.items()
    }


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


class _Examiner:
    """Asks every map the same about the same rows."""

    def __init__(
        self, data: Data, question: Question, found: Sequence[Contender], gallery: Gallery | None
    ) -> None:
        self._data, self._question, self._gallery = data, question, gallery
        for contender in found:
            contender.refuse_features([name for name in (question.label, question.split) if name is not None])
        self._learner: Learner | None = (
            None if question.label is None else learner_of(question.learner, question.tau)
        )
        self._split, labels = self._survey(found[0].base_seed)
        if self._learner is not None and labels is not None:
            with self._data.open() as source:
                place = source.place
            try:
                self._truth = Truth(task_of(labels, question.task), labels, self._split.folds)
            except DataError as error:
                raise DataError(f"{place}: {error}") from None
        self._known: dict[Any, Any] = {}
        """What was learned already: raw columns are the same for every map, and kernels often are."""

    def _survey(self, seed: int) -> tuple[Split, Array | None]:
        asked = self._question
        names = [name for name in (asked.label, asked.split) if name is not None]
        if len(set(names)) < len(names):
            raise UsageError(f"split: expected another column than the label, got {asked.split}")
        n, columns = self._data.whole(names)
        if n < 2:
            with self._data.open() as source:
                raise DataError(f"{source.place}: expected at least two rows to evaluate on, got {n}")
        test = None if asked.split is None else _test_rows(asked.split, columns[asked.split])
        return split(n, seed, test), None if asked.label is None else columns[asked.label]

    def record(self, contender: Contender, say: Say | None) -> dict[str, Any]:
        """Everything about one map."""
        tell = say or (lambda _step: None)
        tell(f"{contender.spelled}: fitting")
        asked = self._question
        aside = [name for name in (asked.split,) if name is not None]
        started = time.perf_counter()
        fm = contender.fit(self._data, asked.label, aside, self._split.test)
        fitted = time.perf_counter() - started
        unknown = next((one.step.no_exact for one in fm.chain.steps if one.step.no_exact), None)
        if unknown:
            raise UsageError(f"evaluate: {unknown}")
        tell(f"{contender.spelled}: comparing")
        columns = [name for name in (asked.label, asked.split) if name is not None]
        subject = _Subject(fm, self._data, len(self._split.test), columns, asked.jobs)
        compared = self._compared(contender)
        rows, X = subject.some(compared)
        _ = subject.map.transformer  # derived arrays are made once in a process
        Z, transform_seconds = _timed(lambda: subject.map.transform(X, asked.jobs), _TIMES)
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
            "dtype": fm.dtype,
            "bytes_per_row": fm.n_components * np.dtype(fm.dtype).itemsize,
            "fit_seconds": None if contender.config is None else fitted,
            "transform_seconds": transform_seconds,
            "exact_seconds": exact_seconds,
            "reference": fm.chain.reference(),
            **fidelity(K, Z),
            **(distortion(K, Z) if projects else {}),
        }
        if self._learner is not None:
            tell(f"{contender.spelled}: learning")
            record |= self._usefulness(subject, self._learner)
        if self._gallery is not None:
            between = not (any(fm.columns.n_categories) or fm.columns.missing)
            self._gallery.keep(record, subject.map, X, K, Z, between)
        return record

    def _compared(self, contender: Contender) -> Array:
        """Rows for the Gram matrices: held out where something was fitted here, the last to be fitted on elsewhere."""
        held = contender.config is not None or self._split.given
        return self._split.some(
            self._split.test if held else np.ones(len(self._split.test), bool), self._question.rows
        )

    def _usefulness(self, subject: _Subject, learner: Learner) -> dict[str, Any]:
        test, truth = self._split.test, self._truth
        train = ~test
        if train.sum() < 2 or not test.any():
            raise DataError(
                f"label: expected rows to train and rows to test on, got {train.sum()} and {test.sum()}"
            )
        record: dict[str, Any] = {
            "task": truth.task.kind, "learner": learner.name,
            "rows_train": int(train.sum()), "rows_test": int(test.sum()),
        }  # fmt: skip
        raw = ("raw", *subject.plain)
        if raw not in self._known:
            self._known[raw] = self._learned("raw", subject.raw, learner)
        record |= self._known[raw]
        return record | self._learned("map", subject.features, learner) | self._exact(subject, learner)

    def _learned(self, name: str, inputs: Inputs, learner: Learner) -> dict[str, Any]:
        watch = _Watch(inputs)
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

    def _exact(self, subject: _Subject, learner: Learner) -> dict[str, Any]:
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
        found: dict[str, Any] = self._known[key]
        return found


class _Watch:
    """Counts the seconds that reading and transforming take, which are no learning."""

    def __init__(self, inputs: Inputs) -> None:
        self._inputs, self.seconds = inputs, 0.0

    def blocks(self, rows: Mask) -> Iterator[tuple[Array, Floats]]:
        """The blocks of the inputs."""
        pieces = self._inputs.blocks(rows)
        while True:
            started = time.perf_counter()
            piece = next(pieces, None)
            self.seconds += time.perf_counter() - started
            if piece is None:
                return
            yield piece


class _Subject:
    """A map and the data that it is asked about."""

    def __init__(self, fm: FeatureMap, data: Data, n: int, aside: list[str], jobs: int | None) -> None:
        # Rows are read as numbers once; the map then takes them as they are.
        self._fm, self._data, self._n, self._aside, self._jobs = fm, data, n, aside, jobs
        self.map = replace(fm, columns=fm.columns.as_read)
        with data.open() as source:
            columns = match(source, fm.columns, aside)
            own = {column.name for column in columns.features}
            for name in aside:
                if name in own:
                    raise DataError(
                        f"{source.place}: label {quoted(name)}: expected a column that is no feature of the map, "
                        "got one"
                    )

    @property
    def plain(self) -> tuple[object, ...]:
        """What the raw columns follow from: which they are, and how they are made numbers."""
        steps = [one.step for one in self._fm.chain.steps]
        makers = [repr(step.recipe()) for step in steps if step.missing == "fill" or step.coded_columns]
        return self._fm.columns.names, self._fm.dtype, *makers

    def _matrices(self, rows: Mask) -> Iterator[tuple[Array, Floats]]:
        """These rows, as the map reads them, piece by piece."""
        with self._data.open() as source:
            columns = match(source, self._fm.columns, self._aside)
            for chunk, X in matrices(source, columns, (), self._fm.chunk_rows, self._fm.dtype):
                wanted = np.flatnonzero(rows[chunk.start : chunk.start + chunk.rows])
                if len(wanted):
                    yield chunk.start + wanted, np.ascontiguousarray(X[wanted])

    def some(self, rows: Array) -> tuple[Array, Floats]:
        """These rows as one matrix, with their numbers."""
        mask = np.zeros(self._n, dtype=bool)
        mask[rows] = True
        parts = list(self._matrices(mask))
        return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])

    @property
    def raw(self) -> Inputs:
        """The columns that the map reads: missing numbers filled, and categories coded, as it does."""
        numbers = self._fm.chain.numbers
        width = numbers(np.zeros((1, self._fm.n_features_in), dtype=self._fm.dtype)).shape[1]

        def blocks(rows: Mask) -> Iterator[tuple[Array, Floats]]:
            for found, X in self._matrices(rows):
                yield found, numbers(X)

        return Inputs(width, blocks, standardize=True)

    @property
    def features(self) -> Inputs:
        """The map's features."""

        def blocks(rows: Mask) -> Iterator[tuple[Array, Floats]]:
            for found, X in self._matrices(rows):
                yield found, self.map.transform(X, self._jobs)

        return Inputs(self._fm.n_components, blocks)


def _test_rows(name: str, values: Array) -> Mask:
    """A column that says train or test."""
    text = np.char.lower(values.astype(str))
    test: Mask = text == "test"
    train = text == "train"
    if not (test | train).all():
        got = values[int(np.argmin(test | train))]
        raise DataError(f"split {quoted(name)}: expected train or test in every row, got {got!r}")
    if not (test.any() and train.any()):
        raise DataError(f"split {quoted(name)}: expected rows of both kinds, got only {values[0]!r}")
    return test
