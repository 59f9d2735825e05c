"""Nyström on held-out rows: our landmarks against scikit-learn's Nystroem, same rows, same γ, same m.

    python benchmarks/accuracy_nystroem.py DATA_FOLDER [--out FILE] [--seeds 5] [--train 10000] [--held 1000]
        [--sizes 64,256,1024] [--sets letter,usps,...] [--ours kmeans,...]

DATA_FOLDER holds NAME.parquet files with a target column (`label` or `medianHouseValue`) and `split`. Columns are
standardized on the train rows; rbf, gamma median. Writes FILE.json, every figure, and FILE.md: relative Frobenius
errors as a share of Nystroem's, geometric means over the sets of the mean error over the seeds.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from scipy.sparse.linalg import eigsh
from sklearn.kernel_approximation import Nystroem

import kafeat
from kafeat.contract.kernel_inputs import Coordinates
from kafeat.maths.kernel import KernelParameters
from kafeat.maths.kernels.shift_invariant import RbfKernel

TARGETS = ("label", "medianHouseValue")
SETS = "letter,usps,ijcnn1,covtype20k,california,mnist"
OURS = {
    **{
        name: {"landmarks": name}
        for name in (
            "auto",
            "uniform",
            "kmeans",
            "learned",
            "rpcholesky",
            "greedy",
            "leverage",
            "farthest",
            "dual_weighted",
            "dual_kmeans",
        )
    },
    "kmeans, fitted": {"landmarks": "kmeans", "weights": "fitted"},
    "learned, fitted": {"landmarks": "learned", "weights": "fitted"},
    "rpcholesky, fitted": {"landmarks": "rpcholesky", "weights": "fitted"},
    "kmeans, 4m": {"landmarks": "kmeans", "times": 4},
    "kmeans, 4m, fitted": {"landmarks": "kmeans", "times": 4, "weights": "fitted"},
    "rpcholesky, 4m": {"landmarks": "rpcholesky", "times": 4},
}


def read(folder, name, rng, train, held):
    """Standardized train and held-out rows, float32, and the train rows' target."""
    table = pq.read_table(folder / f"{name}.parquet")
    target = next(column for column in TARGETS if column in table.column_names)
    split, y = (table[column].to_numpy() for column in ("split", target))
    X = np.column_stack([column.to_numpy() for column in table.drop_columns([target, "split"]).columns])
    parts = [np.flatnonzero(split == which) for which in ("train", "test")]
    parts = [
        rng.choice(rows, min(n, len(rows)), replace=False)
        for rows, n in zip(parts, (train, held), strict=True)
    ]
    A, B = (X[rows].astype(np.float64) for rows in parts)
    mean, scale = A.mean(axis=0), A.std(axis=0)
    scale[scale == 0.0] = 1.0
    return ((A - mean) / scale).astype(np.float32), ((B - mean) / scale).astype(np.float32), y[parts[0]]


def gram(X, Y, gamma):
    return RbfKernel().gram(Coordinates(X.astype(float), Y.astype(float)), KernelParameters(gamma=gamma)).dots


def error(K, Z):
    Z = Z.astype(np.float64)
    return float(np.linalg.norm(K - Z @ Z.T) / np.linalg.norm(K))


def compare(A, B, y, seed, sizes, ours, limit):
    """Errors and fit seconds of everything, for one set of rows."""
    from sklearn.metrics.pairwise import rbf_kernel

    found = {}
    first = kafeat.fit(
        {"seed": seed, "steps": [{"kind": "nystroem", "n_components": 1, "landmarks": "uniform"}]}, A
    )
    gamma = float(first.chain.steps[0].state["gamma"])
    K = gram(B, B, gamma)
    if limit:
        values, vectors = eigsh(rbf_kernel(A.astype(float), gamma=gamma), k=min(max(sizes), len(A) - 1))
        C = rbf_kernel(B.astype(float), A.astype(float), gamma=gamma) @ (
            vectors[:, ::-1] / np.sqrt(values[::-1])
        )
        found["all rows, top m"] = {m: [error(K, C[:, :m]), 0.0] for m in sizes}
    started = time.perf_counter()
    for m in sizes:
        peer = Nystroem(gamma=gamma, n_components=m, random_state=seed)
        started = time.perf_counter()
        # in float64: in float32, its absolute eigenvalue floor fails on near-duplicates (letter, m = 1,024: error 0.17)
        peer.fit(A.astype(np.float64))
        taken = time.perf_counter() - started
        found.setdefault("scikit-learn", {})[m] = [error(K, peer.transform(B.astype(np.float64))), taken]
        for name in ours:
            step = dict(OURS[name])
            times = step.pop("times", 1)
            if m * times > len(A):
                continue
            step |= {"kind": "nystroem", "gamma": gamma, "n_components": m, "n_landmarks": m * times}
            started = time.perf_counter()
            fm = kafeat.fit({"seed": seed, "steps": [step]}, A, label=y)
            taken = time.perf_counter() - started
            found.setdefault(name, {})[m] = [error(K, fm.transform(B)), taken]
    return found


def table(results, sizes):
    """A row for each way: geometric means over the sets of (mean error over seeds)/(scikit-learn's), and the worst."""
    sets = list(results)
    mean = {
        s: {
            w: {m: np.mean([run[w][m][0] for run in results[s]]) for m in results[s][0][w]}
            for w in results[s][0]
        }
        for s in sets
    }
    lines = ["| landmarks | " + " | ".join(f"m = {m} | worst | seconds" for m in sizes) + " |"]
    lines.append("|---" * (1 + 3 * len(sizes)) + "|")
    for way in results[sets[0]][0]:
        row = []
        for m in sizes:
            here = [s for s in sets if m in mean[s][way]]
            if not here:
                row += ["", "", ""]
                continue
            shares = [mean[s][way][m] / mean[s]["scikit-learn"][m] for s in here]
            mark = "" if len(here) == len(sets) else f" ({len(here)} sets)"
            seconds = np.mean([run[way][m][1] for s in here for run in results[s]])
            row += [f"{np.exp(np.mean(np.log(shares))):.3f}{mark}", f"{max(shares):.2f}", f"{seconds:.1f}"]
        lines.append(f"| {way} | " + " | ".join(row) + " |")
    lines += ["", "Mean relative Frobenius errors:", ""]
    lines.append("| set | m | " + " | ".join(results[sets[0]][0]) + " |")
    lines.append("|---" * (2 + len(results[sets[0]][0])) + "|")
    for s in sets:
        for m in sizes:
            cells = [f"{mean[s][w][m]:.5f}" if m in mean[s][w] else "" for w in results[sets[0]][0]]
            lines.append(f"| {s} | {m} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--train", type=int, default=10_000)
    parser.add_argument("--held", type=int, default=1_000)
    parser.add_argument("--sizes", default="64,256,1024")
    parser.add_argument("--sets", default=SETS)
    parser.add_argument("--ours", default="|".join(OURS), help="separated by |")
    parser.add_argument("--limit", action="store_true", help="also all train rows as landmarks, top m")
    given = parser.parse_args()
    sizes, results = [int(m) for m in given.sizes.split(",")], {}
    for name in given.sets.split(","):
        results[name] = []
        for seed in range(given.seeds):
            A, B, y = read(given.folder, name, np.random.default_rng(seed), given.train, given.held)
            results[name].append(compare(A, B, y, seed, sizes, given.ours.split("|"), given.limit))
        print(f"{name}: {time.process_time():.0f} s", flush=True)
        if given.out:  # after every set: a long run that is stopped has something to show
            run = {
                "train": given.train,
                "held": given.held,
                "seeds": given.seeds,
                "dtype": "float32",
                "kernel": "rbf",
            }
            given.out.with_suffix(".json").write_text(json.dumps({"run": run, "results": results}, indent=1))
            head = f"At most {given.train:,} train rows, {given.held:,} held-out rows, {given.seeds} seeds, "
            head += "float32, rbf, gamma median."
            given.out.with_suffix(".md").write_text(f"{head}\n\n{table(results, sizes)}\n")
    print(table(results, sizes))


if __name__ == "__main__":
    main()
