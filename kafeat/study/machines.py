"""Train and test a learner on raw columns, on features and with exact kernels, and measure the cost of each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from typing import NamedTuple

import numpy as np

from kafeat.contract import InputRows
from kafeat.errors import DataError, UsageError, quoted
from kafeat.jobs.fit import Inputs, Listener, MapOnData, RereadableData, plain_names, timed
from kafeat.maths import Judged
from kafeat.pictures import ModelFigures
from kafeat.study.boosting import boost
from kafeat.study.candidates import ComparedMap, Fit
from kafeat.study.importance import Losses, named, rows_to_shuffle, score_losses
from kafeat.study.learners import Learner, Ridge, Split, Tested, Trained, Truth, equivalent_learner, train
from kafeat.study.models import ScoredModel, score_model, test_rows_seen, with_predictor
from kafeat.study.records import Entries, Record, Scored
from kafeat.study.request import LEARNERS, EvaluationRequest
from kafeat.study.scores import Scoring
from kafeat.types import Array, Floats, Mask


def learner_of(name: str, tau: float = 0.1, jobs: int = 1, n_labels: int = 1) -> Learner:
    """Return a learner by its name. All except ridge need the extra kafeat[evaluate], and ridge uses `jobs` threads.

    Only ridge can learn several labels.
    """
    if name == "ridge":
        return Ridge(jobs)
    if name not in LEARNERS:
        raise UsageError(f"learner: expected one of {', '.join(LEARNERS)}, got {name!r}")
    if n_labels > 1:
        raise UsageError(f"learner: expected ridge, as there are {n_labels} labels, got {name}")
    try:
        from kafeat.study.learners_sklearn import learner
    except ImportError as error:
        raise UsageError(
            f"learner {name}: expected scikit-learn, got: {error}; pip install 'kafeat[evaluate]'"
        ) from error
    return learner(name, tau)


# Attributes of linear models, and of boosting, that go into a record.
_OF_MODELS = ("nonzero", "penalty", "converged", "rounds", "rows")


@dataclass(frozen=True)
class Learned:
    """A trained model, its scores, and its costs.

    Attributes:
        scores: Every test score by its name. `score` is the deciding score, and `training_score` is the same score on
            training rows.
        tested: The predictions and the labels of the test rows.
        predict_seconds: Seconds to predict the test rows from the columns that the map reads.
        making_seconds: Seconds to make the features, or the kernel matrix, of the training rows.
        matrix_bytes: Size of the columns, features or kernel matrix of all training rows.
    """

    trained: Trained
    scores: dict[str, float | None]
    tested: Tested
    predict_seconds: float
    making_seconds: float
    matrix_bytes: int

    def total_seconds(self, fit_seconds: float) -> float:
        """Return the seconds to fit the map, to make the features or the kernel matrix, and to fit the model once."""
        return fit_seconds + self.making_seconds + self.trained.learn_seconds

    def entries(self, fit_seconds: float = 0.0) -> Entries:
        """Return the scores and costs for a record. The total seconds include those of fitting the map."""
        model, learn, search = self.trained
        return {
            **self.scores, **{name: getattr(model, name) for name in _OF_MODELS if hasattr(model, name)},
            "learn_seconds": learn, "search_seconds": search,
            "predict_seconds": self.predict_seconds, "total_seconds": self.total_seconds(fit_seconds),
            "matrix_bytes": self.matrix_bytes,
        }  # fmt: skip


class Compared(NamedTuple):
    """The results of a learner on raw columns, on features and with the exact kernel, and of boosting.

    `same_rows` is the learner on features, trained only on the rows of `exact`. If boosting is left out, `boosting` is
    the reason, as text.
    """

    raw: Learned
    boosting: Learned | str
    features: Learned
    exact: Learned
    same_rows: Learned


# The score on the training rows uses at most this many training rows.
_MOST_TRAINING = 100_000


def check_labels(chosen: Split, truth: Truth, label: str) -> None:
    """Refuse a split without rows to train or test on, or with only unknown classes in the test rows."""
    test, train = chosen.test, chosen.train
    if train.sum() < 2 or not test.any():
        raise DataError(
            f"label: expected rows to train and rows to test on, got {train.sum()} and {test.sum()}"
        )
    numbers = None if truth.task.classes is None else truth.task.numbers(truth.labels)
    if numbers is not None and not np.isin(numbers[test], numbers[train]).any():
        raise DataError(
            f"label {quoted(label)}: expected test rows with classes that training rows have, got none: each class "
            "needs several rows"
        )


class Machines:
    """Trains one learner on everything that is compared, and reuses results that several maps share.

    If the request has no penalty, the learner searches for the best one each time.
    """

    def __init__(
        self, learner: Learner, data: RereadableData, split: Split, truth: Truth, request: EvaluationRequest
    ) -> None:
        self._learner, self._data, self._split, self._request = learner, data, split, request
        self.truth = truth
        predicts: tuple[Judged, ...] = ("probabilities",) if learner.probabilities else ()
        self.scoring = Scoring.of(truth.task, request, request.learner, predicts)
        self._exact_rows, self._penalty = request.exact_rows, request.penalty
        # Results to reuse, because several maps often have the same raw columns and the same exact kernel.
        self._raw: dict[tuple[object, ...], tuple[Learned, Learned | str]] = {}
        self._raw_validated: dict[tuple[object, ...], float] = {}
        self._exact: dict[bytes, Learned] = {}

    def record(
        self, candidate: ComparedMap, fit: Fit, subject: MapOnData, drawn: bool, listener: Listener
    ) -> tuple[Record, ModelFigures | None]:
        """Train and test the learner and the map's predictor. Return a record, and the data of the predictor's figures.

        The importance of columns is measured only if it will be `drawn` in a report.
        """
        check_labels(self._split, self.truth, self._request.labels[0])
        compared = self.compare(subject)
        # A saved model costs no seconds of fitting.
        scored, task = self.scored(subject, compared, fit.seconds or 0.0), self.about(compared)
        model = self._model(candidate, fit, subject, listener)
        if model is not None:
            scored = replace(scored, tested={**scored.tested, "model": model.entries})
        losses = self._losses(compared, subject, model) if drawn else None
        if losses is not None:
            task |= named(losses)
        return Record(about=task, scored=scored, parts=self.parts(subject)), model and model.figures

    def _losses(self, of: Compared, subject: MapOnData, model: ScoredModel | None) -> Losses | None:
        """Return the importance of columns for the map's predictor or, without one, for the learner on its features."""
        places = subject.map.columns.named_places if subject.matrix is None else {}
        most = rows_to_shuffle(len(places), subject.map.n_components) if places else 0
        if not most:
            return None
        rows, X = subject.select_rows(self._split.some(self._split.test, most))
        labels, learned = self.truth.labels[rows], of.features.trained.model

        def predict(X: InputRows) -> Floats:
            return model.predict(X) if model else learned(subject.transform(X).astype(np.float64))

        def score(predicted: Floats) -> float:
            tested = Tested(predicted, labels)
            return model.score(tested) if model else self.scoring.score(tested)

        return score_losses(places, [(X, predict)], score, subject.map.config.seed)

    def _model(
        self, candidate: ComparedMap, fit: Fit, subject: MapOnData, listener: Listener
    ) -> ScoredModel | None:
        """Score the map's predictor, if there is one. A recipe's predictor is first fitted on the training rows."""
        test, request = self._split.test, self._request
        fm = with_predictor(fit, self._data)
        scored = score_model(fm, subject, self.truth, test, request, self.scoring.first)
        if scored is not None:
            seen = 0 if candidate.fitted is None else test_rows_seen(fm, self._data, test)
            return scored._replace(entries={**scored.entries, "test_rows_seen": seen})
        if fm.predictor is not None:
            own = ", ".join(fm.predictor.labels.names) or "other labels"
            listener.warn(
                f"{candidate.name}: predicts {own}, not {', '.join(request.labels)}: its predictions are not "
                "scored, only its features"
            )
        return None

    def compare(self, subject: MapOnData) -> Compared:
        """Learn from the raw columns, from the features, and with the exact kernel of at most `exact_rows` rows."""
        key, every, itemsize = subject.raw_key, self._split.train, subject.dtype.itemsize
        if key not in self._raw:
            try:
                linear = self._learned(subject.raw(), subject.map.input_dtype.itemsize, every)
            except DataError as error:
                raise DataError(
                    f"{error}; evaluate also learns from the raw columns, for comparison: use fewer columns, or leave "
                    "--label out to see only the errors of the kernel"
                ) from None
            self._raw[key] = linear, self._boosted(subject.raw())
        features = self._learned(subject.features(), itemsize, every)
        some = self._split.some(every, self._exact_rows)
        exact, same_rows = self._with_kernel(subject, *subject.select_rows(some)), features
        # Also train on features of only these rows, to show what the approximation costs in score and saves in time.
        if some.sum() < every.sum():
            same_rows = self._learned(subject.features(), itemsize, some)
        return Compared(*self._raw[key], features, exact, same_rows)

    def scored(self, subject: MapOnData, of: Compared, fit_seconds: float) -> Scored:
        """Return the scores and costs of the learner on raw columns, features and exact kernel, and of boosting."""
        labels, split = self.truth.labels, self._split
        name, penalty = self._learner.name, of.features.trained.model.penalty
        tested = {
            "constant": self.scoring.of_constant(labels[split.train], labels[split.test]),
            "raw": of.raw.entries(),
            "map": {
                **of.features.entries(fit_seconds), "transform_seconds": of.features.making_seconds,
                "equivalent": equivalent_learner(name, self.truth.task.kind, penalty),
            },
            "exact": {**of.exact.entries(), "kernel_seconds": of.exact.making_seconds},
            **({} if isinstance(of.boosting, str) else {"boosting": of.boosting.entries()}),
        }  # fmt: skip
        same, seconds = of.same_rows.scores["score"], of.same_rows.total_seconds(fit_seconds)
        exact_rows, validation = {"map": {"score": same, "total_seconds": seconds}}, self._split.validation
        validated = {} if validation is None else self._validated(subject, validation)
        return Scored(tested=tested, validation=validated, exact_rows=exact_rows)

    def about(self, of: Compared) -> Entries:
        """Return the entries of a record about the label, the learner, and the rows to train and to test on."""
        request, task, validation = self._request, self.truth.task, self._split.validation
        train = int(self._split.train.sum())
        return {
            "label": plain_names(request.labels), "split": request.split,
            "task": task.kind, "classes": None if task.classes is None else len(task.classes),
            "learner": request.learner, "scoring": self.scoring.first.name,
            "rows_train": train, "rows_test": int(self._split.test.sum()),
            "rows_exact": min(train, self._exact_rows), "rows_test_exact": len(of.exact.tested.labels),
            **({} if validation is None else {"rows_validation": int(validation.sum())}),
            **({"boosting_left_out": of.boosting} if isinstance(of.boosting, str) else {}),
        }  # fmt: skip

    def _validated(self, subject: MapOnData, validation: Mask) -> dict[str, Entries]:
        """Return the scores on the validation rows, after learning from the other training rows.

        Only the choice between maps needs this, so its costs are not reported.
        """
        key, known = subject.raw_key, ~self._split.held_out
        if key not in self._raw_validated:
            self._raw_validated[key] = self.scoring.score(self._tested(subject.raw(), known, validation))
        tested = self._tested(subject.features(), known, validation)
        return {"raw": {"score": self._raw_validated[key]}, "map": self.scoring.deciding(tested)}

    def parts(self, subject: MapOnData) -> list[Entries]:
        """Return for each part of a union the learner's score without this part. Other maps have no entries."""
        parts = subject.map.chain.parts
        scored = []
        for name, columns in parts if len(parts) > 1 else ():
            rest = subject.features().without(columns)
            score = self.scoring.score(self._tested(rest, self._split.train, self._split.test))
            known = score if np.isfinite(score) else None
            scored.append({"part": name, "columns": len(columns), "score_without": known})
        return scored

    def _tested(self, inputs: Inputs, train: Mask, test: Mask) -> Tested:
        """Learn from the rows of `train`, and return predictions for the rows of `test`, with their labels."""
        trained = self._learner.linear(inputs, train, self.truth, self._penalty)
        return self.truth.predicted(trained.model, inputs, test)

    def _learned(self, inputs: Inputs, itemsize: int, train: Mask) -> Learned:
        """Fit the learner on these rows, and return its scores and costs."""
        trained = self._learner.linear(inputs, train, self.truth, self._penalty)
        return self._scored(trained, self.scoring, inputs, train, int(train.sum()) * inputs.width * itemsize)

    def _boosted(self, inputs: Inputs) -> Learned | str:
        """Fit gradient boosting. Return its scores and costs, or the reason why boosting is left out."""
        model = boost(inputs, self._split, self.truth)
        if isinstance(model, str):
            return model
        likely, n_bytes = replace(self.scoring, probabilities=True), model.rows * inputs.width * 8
        return self._scored(Trained(model, model.seconds), likely, inputs, self._split.train, n_bytes)

    def _scored(
        self, trained: Trained, scoring: Scoring, inputs: Inputs, train: Mask, n_bytes: int
    ) -> Learned:
        """Return scores and costs of a model that was just fitted. The seconds to predict do not include reading."""
        making = inputs.last_making  # read now, because predicting changes it
        predict = partial(self.truth.predicted, trained.model, inputs)
        tested, predicting = timed(partial(predict, self._split.test), lambda: inputs.reading)
        known = predict(self._split.some(train, _MOST_TRAINING))
        return Learned(trained, scoring.every(tested, known), tested, predicting, making, n_bytes)

    def _with_kernel(self, subject: MapOnData, rows: Array, X: InputRows) -> Learned:
        """Fit and score a kernel machine on training rows X with the numbers `rows`, once for each kernel matrix."""
        K, seconds = timed(partial(subject.exact_kernel, X))
        key = sha256(np.ascontiguousarray(K).data).digest()
        if key not in self._exact:
            trained = train(partial(self._learner.on_kernel, K, rows, self.truth), self._penalty)
            test, kernel = self._split.test, subject.kernel_with(X, self._exact_rows)
            some = self._split.some(test, 5 * self._exact_rows)
            predict = partial(self.truth.predicted, trained.model, kernel, some)
            tested, predicting = timed(predict, lambda: kernel.reading)
            scores = self.scoring.every(tested, self.truth.tested(rows, trained.model(K)))
            # Each row costs the same, so the cost of all test rows is extrapolated from some test rows.
            predicting *= int(test.sum()) / int(some.sum())
            self._exact[key] = Learned(trained, scores, tested, predicting, seconds, K.nbytes)
        return self._exact[key]
