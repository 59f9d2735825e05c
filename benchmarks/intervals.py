"""Coverage and width of the intervals of `predict --interval`, beside those of conformalized quantile boosting.

    python benchmarks/intervals.py DATA_FOLDER [--tables wine] [--splits 5] [--rows 6000] [--out intervals.json]

DATA_FOLDER holds NAME.parquet and tabular/NAME.parquet, with a target (`label` or `medianHouseValue`). A split draws at
most --rows training rows and 4,000 test rows from all rows. kafeat fits standardize, Nyström of the laplacian kernel
with 512 columns, whose landmarks learn from the label, so every fold fits it anew, and ridge. The other side fits
HistGradientBoostingRegressor(loss="quantile") for both ends on three quarters of the training rows, and moves both ends
by the quantile of their errors on the rest (Romano, Patterson & Candès 2019). Widths are divided by the standard
deviation of the target. For classes the mean size of the sets is printed, and the calibration error beside the 95th
percentile of 200 outcomes that are drawn from the probabilities of the model itself.
"""

import argparse
import json
import warnings
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from scores import NUMBERS, prepared
from sklearn.ensemble import HistGradientBoostingRegressor
from threadpoolctl import threadpool_limits

import kafeat
from kafeat.errors import KafeatWarning
from kafeat.maths.calibration import reliability

LEVELS = (0.8, 0.9, 0.95)
MOST_TEST_ROWS, DRAWS = 4_000, 200
STEPS = [
    {"kind": "standardize"},
    {"kind": "nystroem", "kernel": "laplacian", "n_components": 512},
    {"kind": "ridge"},
]


def fitted(X, y, seed, numbers):
    """The model of kafeat."""
    *before, nystroem, ridge = STEPS
    width = min(nystroem["n_components"], len(X) // 2)
    task = "regression" if numbers else "classification"
    steps = [*before, {**nystroem, "n_components": width}, {**ridge, "task": task}]
    return kafeat.fit({"seed": seed, "steps": steps}, X, label=y, intervals=True)


def quantile_boosting(X, y, test, level, seed):
    """Lower and upper ends of the test rows."""
    order = np.random.default_rng(seed).permutation(len(X))
    held, rest = order[: len(X) // 4], order[len(X) // 4 :]
    alpha = 1.0 - level
    ends = [
        HistGradientBoostingRegressor(loss="quantile", quantile=q, random_state=seed).fit(X[rest], y[rest])
        for q in (alpha / 2.0, 1.0 - alpha / 2.0)
    ]
    low, high = (one.predict(X[held]) for one in ends)
    scores = np.sort(np.maximum(low - y[held], y[held] - high))
    moved = scores[min(len(scores), int(np.ceil((len(scores) + 1) * level))) - 1]
    return ends[0].predict(test) - moved, ends[1].predict(test) + moved


def of_numbers(train, test, seed):
    """Coverages and widths of both sides at every level."""
    (X, y), (test_X, test_y) = train, test
    fm = fitted(X, y, seed, True)
    unit = np.std(y)
    record = {}
    for level in LEVELS:
        ends = fm.predict_interval(test_X, level).T
        for side, (low, high) in (
            ("kafeat", ends),
            ("boosting", quantile_boosting(X, y, test_X, level, seed)),
        ):
            covered = (low <= test_y) & (test_y <= high)
            record[f"{side} {level}"] = [float(covered.mean()), float(np.mean(high - low) / unit)]
    return record


def of_classes(train, test, seed):
    """Coverage and mean size of the sets at every level, the calibration error, and its bound."""
    (X, y), (test_X, test_y) = train, test
    fm = fitted(X, y, seed, False)
    right = np.searchsorted(fm.classes, test_y)
    record = {}
    for level in LEVELS:
        held = fm.predict_interval(test_X, level)
        covered = held[np.arange(len(held)), right].mean()
        record[f"kafeat {level}"] = [float(covered), float(held.sum(axis=1).mean())]
    p, rng = fm.predict_proba(test_X), np.random.default_rng(seed)
    drawn = [
        reliability(
            p, (p.cumsum(axis=1) < rng.random((len(p), 1))).sum(axis=1).clip(max=p.shape[1] - 1)
        ).error
        for _ in range(DRAWS)
    ]
    record["calibration"] = [reliability(p, right).error, float(np.quantile(drawn, 0.95))]
    record["accuracy"] = float((p.argmax(axis=1) == right).mean())
    return record


def measured(path, splits, most_rows):
    """The records of all splits of a table, and the number of its test rows."""
    table = pq.read_table(path)
    if "split" not in table.column_names:
        return None
    X, y, _ = prepared(table)
    numbers = "medianHouseValue" in table.column_names or path.stem in NUMBERS or y.dtype.kind == "f"
    numbers = numbers and len(np.unique(y)) > 2
    if not numbers and y.dtype.kind not in "iu":
        y = np.unique(y, return_inverse=True)[1]
    y = y.astype(np.float64) if numbers else y
    records = []
    for seed in range(splits):
        order = np.random.default_rng(seed).permutation(len(X))
        held = min(len(X) // 5, MOST_TEST_ROWS)
        test, train = order[:held], order[held : held + most_rows]
        judge = of_numbers if numbers else of_classes
        records.append(judge((X[train], y[train]), (X[test], y[test]), seed))
    return {"numbers": bool(numbers), "rows": len(train), "rows_test": held, "splits": records}


def shown(name, found):
    """One line about a table."""
    records, parts = found["splits"], []
    for level in LEVELS:
        for side in ("kafeat", "boosting") if found["numbers"] else ("kafeat",):
            covered, size = np.mean([one[f"{side} {level}"] for one in records], axis=0)
            parts.append(f"{side} {level:g}: {covered:.3f} {size:.3f}")
    if not found["numbers"]:
        error, bound = np.mean([one["calibration"] for one in records], axis=0)
        parts.append(f"calibration {error:.4f}, bound {bound:.4f}")
    return f"{name} ({found['rows']:,} + {found['rows_test']:,} rows): {'; '.join(parts)}"


def main():
    """Measure all tables, or those that are named."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("--tables", default="")
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--rows", type=int, default=6000)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    known = json.loads(asked.out.read_text()) if asked.out and asked.out.exists() else {}
    paths = {
        path.stem: path
        for path in sorted([*asked.data.glob("*.parquet"), *asked.data.glob("tabular/*.parquet")])
    }
    for name in asked.tables.split(",") if asked.tables else paths:
        if name not in known:
            with warnings.catch_warnings(), threadpool_limits(2):
                warnings.simplefilter("ignore", KafeatWarning)
                found = measured(paths[name], asked.splits, asked.rows)
            if found is None:
                continue
            known[name] = found
            if asked.out:
                asked.out.write_text(json.dumps(known, indent=1) + "\n")
        print(shown(name, known[name]), flush=True)


if __name__ == "__main__":
    main()
