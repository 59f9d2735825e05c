"""Accuracy of Fourier features against scikit-learn's RBFSampler, side by side on real data.

    python benchmarks/accuracy_fourier.py DATA_FOLDER [--seeds 5] [--rows 10000] [--json FILE] [NAME ...]

Every NAME.parquet in DATA_FOLDER is standardized by its fit rows; gamma is the median rule; the error is the relative
Frobenius error of ZZᵀ on 1,000 rows that no fit has seen. The same rows and the same gamma for both sides.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from sklearn.kernel_approximation import RBFSampler
from sklearn.metrics.pairwise import rbf_kernel

import kafeat

NAMES = ["letter", "usps", "ijcnn1", "covtype20k", "california", "mnist"]
NOT_FEATURES = ("label", "split", "medianHouseValue")
# What a user can choose; the first is the default.
OURS = {
    "default": {},
    "orthogonal, uniform": {"frequencies": "orthogonal", "weights": "uniform"},
    "orthogonal, fitted": {"frequencies": "orthogonal"},
    "structured, fitted": {"frequencies": "structured"},
    "qmc, fitted": {"frequencies": "qmc"},
}


def load(path: Path, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows to fit on and 1,000 others, both standardized by the former."""
    table = pq.read_table(path)
    columns = [name for name in table.column_names if name not in NOT_FEATURES]
    chosen = np.random.default_rng(0).permutation(len(table))[: rows + 1000]
    X = np.column_stack([table[name].to_numpy()[chosen].astype(np.float32) for name in columns])
    test, train = X[:1000], X[1000:]
    mean, scale = train.mean(axis=0, dtype=float), train.std(axis=0, dtype=float)
    scale[scale == 0] = 1.0
    return ((train - mean) / scale).astype(np.float32), ((test - mean) / scale).astype(np.float32)


def error(K: np.ndarray, Z: np.ndarray) -> float:
    Z = Z.astype(float)
    return float(np.linalg.norm(K - Z @ Z.T) / np.linalg.norm(K))


def compare(train: np.ndarray, test: np.ndarray, D: int, seeds: int) -> dict:
    """Mean errors over seeds, and the seconds of one fit."""
    found = {"RBFSampler": []} | {name: [] for name in OURS}
    seconds = {}
    for seed in range(seeds):
        gamma = None
        for name, parameters in OURS.items():
            step = {"kind": "fourier", "n_components": D, "gamma": gamma or "median", **parameters}
            started = time.perf_counter()
            fm = kafeat.fit({"seed": seed, "steps": [step]}, train)
            seconds[name] = time.perf_counter() - started
            gamma = float(fm.chain.steps[0].state["gamma"])
            K = rbf_kernel(test.astype(float), gamma=gamma)
            found[name].append(error(K, fm.transform(test)))
        theirs = RBFSampler(gamma=gamma, n_components=D, random_state=seed).fit(train).transform(test)
        found["RBFSampler"].append(error(K, theirs))
    return {"error": {name: float(np.mean(values)) for name, values in found.items()}, "seconds": seconds}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("names", nargs="*", default=NAMES)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=40_000)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", default="|".join(OURS), help="ours to run, separated by |")
    options = parser.parse_args()
    for name in set(OURS) - set(options.only.split("|")):
        del OURS[name]
    report = {}
    for D in (256, 1024):
        print(f"\n### D = {D}\n\n| data | RBFSampler | {' | '.join(OURS)} | fit s |")
        print("|---" * (len(OURS) + 3) + "|")
        ratios = {name: [] for name in OURS}
        for name in options.names:
            train, test = load(options.data / f"{name}.parquet", options.rows)
            result = report[f"{name} {D}"] = compare(train, test, D, options.seeds)
            theirs = result["error"]["RBFSampler"]
            cells = []
            for key in OURS:
                ratios[key].append(result["error"][key] / theirs)
                cells.append(f"{result['error'][key]:.4f} ({ratios[key][-1]:.2f})")
            print(
                f"| {name} | {theirs:.4f} | {' | '.join(cells)} | {result['seconds']['default']:.1f} |",
                flush=True,
            )
        means = [f"**{np.exp(np.mean(np.log(values))):.3f}**" for values in ratios.values()]
        worst = [f"{max(values):.2f}" for values in ratios.values()]
        print(f"| geometric mean of the ratios | 1 | {' | '.join(means)} | |")
        print(f"| largest ratio | 1 | {' | '.join(worst)} | |")
    if options.json:
        options.json.write_text(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
