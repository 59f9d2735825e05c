"""What a linear model gains from a map: ridge on the raw columns, on the features, and with the exact kernel."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from kafeat.errors import DataError
from kafeat.evaluation.ridge import Basis, features_basis, kernel_basis, ridge
from kafeat.types import Array, Floats

# Share of the rows that the models are tested on.
_TEST_SHARE = 0.2
# More different whole numbers than this are a quantity and no class.
_MOST_CLASSES = 100


def usefulness(X: Floats, Z: Floats, K: Floats, labels: Array, rng: np.random.Generator) -> dict[str, Any]:
    """Test scores of ridge models: accuracy for classes, R² for a numeric target.

    The penalty of each is chosen by its leave-one-out error on the training rows, over one grid relative to the mean
    eigenvalue of its Gram matrix. Raw columns are standardized. A random fifth of the rows is the test.
    """
    order = rng.permutation(len(labels))
    X, Z, K, labels = X[order], Z[order], K[np.ix_(order, order)], labels[order]
    task = task_of(labels)
    targets, classes = _targets(labels, task)
    train = len(labels) - max(1, int(_TEST_SHARE * len(labels)))
    if train < 2:
        raise DataError(f"label: expected at least 3 rows to train and test on, got {len(labels)}")
    report: dict[str, Any] = {"task": task, "rows_train": train, "rows_test": len(labels) - train}
    learners: dict[str, Callable[[], Basis]] = {
        "raw": lambda: features_basis(_standardized(X, train), train),
        "map": lambda: features_basis(Z, train),
        "exact": lambda: kernel_basis(K, train),
    }
    for name, basis in learners.items():
        started = time.perf_counter()
        predicted, penalty = ridge(basis(), targets[:train])
        report[f"score_{name}"] = _score(predicted, targets[train:], classes)
        report[f"fit_seconds_{name}"] = time.perf_counter() - started
        report[f"penalty_{name}"] = penalty
    return report


def features_score(Z: Floats, labels: Array, train: int) -> float:
    """The score of ridge on features Z (n, D): trained on the first `train` rows, tested on the others."""
    targets, classes = _targets(labels, task_of(labels))
    predicted, _ = ridge(features_basis(Z, train), targets[:train])
    return _score(predicted, targets[train:], classes)


def task_of(labels: Array) -> str:
    """classification for text, booleans and few whole numbers; regression for everything else."""
    if labels.dtype.kind not in "fiu":
        return "classification"
    if labels.dtype.kind == "f" and not (labels == np.round(labels)).all():
        return "regression"
    return "classification" if len(np.unique(labels)) <= _MOST_CLASSES else "regression"


def _targets(labels: Array, task: str) -> tuple[Floats, bool]:
    if task == "regression":
        if not np.isfinite(labels).all():
            raise DataError("label: expected finite numbers, got nan or inf")
        return labels.astype(np.float64)[:, None], False
    values, index = np.unique(labels.astype(str) if labels.dtype.kind == "O" else labels, return_inverse=True)
    if len(values) < 2:
        raise DataError(f"label: expected at least two classes, got only {str(values[0])!r}")
    return np.eye(len(values))[index], True


def _standardized(X: Floats, train: int) -> Floats:
    mean, scale = X[:train].mean(axis=0), X[:train].std(axis=0)
    standardized: Floats = (X - mean) / np.where(scale > 0.0, scale, 1.0)
    return standardized


def _score(predicted: Floats, targets: Floats, classes: bool) -> float:
    if classes:
        return float((predicted.argmax(axis=1) == targets.argmax(axis=1)).mean())
    spread = float(((targets - targets.mean()) ** 2).sum())
    missed = float(((targets - predicted) ** 2).sum())
    return 1.0 - missed / spread if spread > 0.0 else float("nan")
