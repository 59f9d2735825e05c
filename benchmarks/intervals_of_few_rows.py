"""Coverage of the intervals of models of few rows. The table goes to benchmarks/results/intervals.md.

    python benchmarks/intervals_of_few_rows.py [--tables 300]

A table has two uniform columns and a label that is a curve or a line of them with noise, or two classes. The models
are ridge on the standardized columns, or on 64 Fourier features of them. Each predicts 200 new rows.
"""

import argparse
import warnings

import numpy as np

import kafeat
from kafeat.errors import KafeatWarning, UsageError

LEVELS, NEW = (0.8, 0.9, 0.95), 200
FEATURES = {"ridge": [], "fourier": [{"kind": "fourier", "n_components": 64}]}
CASES = (("ridge", "curve"), ("fourier", "curve"), ("fourier", "line"), ("fourier", "classes"))


def rows(n, label, rng):
    X = rng.uniform(-2.0, 2.0, (n, 2))
    line, curve = X[:, 0] - X[:, 1], np.sin(2.0 * X[:, 0]) + 0.5 * X[:, 1] ** 2
    if label == "classes":
        return X, np.where(rng.random(n) < 1.0 / (1.0 + np.exp(-2.0 * (curve - 0.7))), "a", "b")
    noise = 0.3 * (1.0 + 0.5 * np.abs(X[:, 1])) * rng.standard_normal(n)
    return X, (curve if label == "curve" else line) + noise


def covered(features, label, n, seed):
    """The share of new rows in the intervals of each level; NaN for a level that so few rows cannot have."""
    rng = np.random.default_rng(seed)
    (X, y), (X_new, y_new) = rows(n, label, rng), rows(NEW, label, rng)
    if label == "classes" and len(set(y)) < 2:
        return [np.nan] * len(LEVELS)
    ridge = {"kind": "ridge", "task": "classification" if label == "classes" else "regression"}
    steps = [{"kind": "standardize"}, *FEATURES[features], ridge]
    fm = kafeat.fit({"seed": seed, "steps": steps}, X, label=y)
    shares = []
    for level in LEVELS:
        try:
            found = fm.predict_interval(X_new, level)
        except UsageError:
            shares.append(np.nan)
            continue
        if label == "classes":
            shares.append(found[np.arange(NEW), np.searchsorted(fm.classes, y_new)].mean())
        else:
            shares.append(((found[:, 0] <= y_new) & (y_new <= found[:, 1])).mean())
    return shares


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tables", type=int, default=300)
    tables = parser.parse_args().tables
    for kind in (KafeatWarning, RuntimeWarning):  # of few rows, and of levels that no table can have
        warnings.simplefilter("ignore", kind)
    print("rows", *(f"{features}-{label}" for features, label in CASES))
    for n in (9, 15, 20, 30, 40, 60, 80, 100):
        found = [np.array([covered(*case, n, seed) for seed in range(tables)]) for case in CASES]
        shown = ["; ".join(f"{one:.3f}" for one in np.nanmean(each, axis=0)) for each in found]
        print(f"| {n} | {' | '.join(shown)} |", flush=True)


if __name__ == "__main__":
    main()
