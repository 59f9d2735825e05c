"""Sixteen columns of trees beside a kernel map, against boosting and the kernel map alone: errors, and µs a row.

    python -m benchmarks.trees LABEL TABLE.parquet ...

Each table has a column `split` (train or test). The errors on its test rows are the share of wrong classes, or the root
mean square over the standard deviation. At most 6,000 training rows are used, on one thread. Needs scikit-learn and
LightGBM; `trees` is compared with their `predict` for as many trees.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"

import lightgbm
import numpy as np
import pyarrow.parquet as pq
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

import kafeat
from kafeat.maths.task import task_of

ROWS, TIMED, REPEATS = 6000, 40_000, 5
TREES = {"kind": "trees", "n_components": 16}
GROWTH = {"learning_rate": 0.05, "max_leaf_nodes": 31, "min_samples_leaf": 10, "early_stopping": False}


def kernel(columns: int) -> list[dict[str, Any]]:
    return [{"kind": "quantile", "output": "normal"}, {"kind": "nystroem", "n_components": columns}]


def union(*trees: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"kind": "union", "maps": [{"steps": kernel(496)}, *({"steps": [one]} for one in trees)]}]


HALF = {**TREES, "n_components": 8}
MAPS = {"kernel": kernel(512), "trees": [TREES], "both": union(TREES), "two trees": union(HALF, HALF)}


def error(predicted: np.ndarray, y: np.ndarray) -> float:
    if task_of(y).classes is not None:
        return float((predicted.astype(str) != y.astype(str)).mean())
    return float(np.sqrt(((predicted - y) ** 2).mean()) / y.std())


def micros(work: Callable[[], object], rows: int) -> float:
    """The least time of some runs."""
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return 1e6 * min(times) / rows


def errors(X: np.ndarray, y: np.ndarray, test: np.ndarray, truth: np.ndarray, seed: int) -> str:
    boosting = HistGradientBoostingRegressor if task_of(y).classes is None else HistGradientBoostingClassifier
    found = {"boosting": error(boosting(random_state=seed).fit(X, y).predict(test), truth)}
    for name, steps in MAPS.items():
        fm = kafeat.fit({"seed": seed, "steps": [*steps, {"kind": "ridge"}]}, X, y, intervals=False)
        found[name] = error(np.asarray(fm.predict(test)), truth)
    return "  ".join(f"{name} {one:.4f}" for name, one in found.items())


def speeds(X: np.ndarray, y: np.ndarray) -> str:
    task = task_of(y)
    fm = kafeat.fit({"steps": [TREES]}, X, y)
    boosting = HistGradientBoostingRegressor if task.classes is None else HistGradientBoostingClassifier
    ours = boosting(max_iter=300, **GROWTH).fit(X, y)
    objective = (
        {"objective": "regression"}
        if task.classes is None
        else {"objective": "multiclass", "num_class": len(task.classes)}
        if len(task.classes) > 2
        else {"objective": "binary"}
    )
    shape = {
        "num_leaves": 31,
        "learning_rate": 0.05,
        "min_data_in_leaf": 10,
        "num_threads": 1,
        "verbosity": -1,
    }
    target = y if task.classes is None else task.numbers(y)
    theirs = lightgbm.train({**objective, **shape}, lightgbm.Dataset(X, target), 300)
    rows = np.resize(X, (TIMED, X.shape[1]))
    decide = ours.predict if task.classes is None else ours.decision_function
    own = micros(lambda: fm.transform(rows, jobs=1), TIMED)
    others = {
        "scikit-learn": micros(lambda: decide(rows), TIMED),
        "LightGBM": micros(lambda: theirs.predict(rows, num_threads=1), TIMED),
    }
    return f"trees {own:.2f} µs" + "".join(
        f"  {name} {one:.2f} ({one / own:.1f} times)" for name, one in others.items()
    )


def main(label: str, *files: str) -> None:
    for file in files:
        table = pq.read_table(file)
        y = table[label].to_numpy(zero_copy_only=False)
        names = [
            name
            for name in table.column_names
            if name not in (label, "split") and table[name].to_numpy().dtype.kind in "fiub"
        ]
        X = np.column_stack([table[name].to_numpy().astype(float) for name in names])
        train = np.asarray(table["split"]) == "train"
        for seed in (0, 1):
            some = np.random.default_rng(seed).permutation(np.flatnonzero(train))[:ROWS]
            print(Path(file).stem, errors(X[some], y[some], X[~train], y[~train], seed), sep="  ", flush=True)
        print(Path(file).stem, speeds(X[some], y[some]), sep="  ", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
