"""Test errors of the default Nyström map by what is done with small eigenvalues of the landmarks' kernel.

    python benchmarks/rcond.py DATA_FOLDER [--grid 128:5,256:5,512:3,1024:2] [--tables letter,bands] [--out rcond.jsonl]

DATA_FOLDER is that of scores.py; `bands` is a made table of correlated columns. The grid has a number of seeds for each
width. Landmarks, γ (a multiple of the median rule), the penalty and the rows are those of scores.py, at most 6,000 to
train on and 4,000 to test; the same landmarks serve every rule. Each line of --out is one table, dtype, width and seed;
a later run goes on with it. Prints each rule's ratios to the first one: median, geometric mean and worst table.
"""

import argparse
import json
import time
import warnings
from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from scores import LEAST, MULTIPLES, Problem, path_errors, ridge_path

import kafeat
from kafeat.maths.nystroem.projection import trapezoid, whitening
from kafeat.maths.nystroem.transform import gain_of

MOST_TEST_ROWS = 4000


def cut(rcond):
    return lambda values, vectors: whitening(values, vectors, rcond)


def cut_by_eps(values, vectors):
    """Return the rounding of float32 in a sum of m numbers, as rules for a pseudo-inverse have it."""
    return whitening(values, vectors, len(values) * float(np.finfo(np.float32).eps))


def shrunk(share):
    """Add a share of the largest eigenvalue to all."""
    return lambda values, vectors: vectors / np.sqrt(np.maximum(values, 0.0) + share * values[-1])


RULES = {
    "1e-12": cut(1e-12),
    "1e-10": cut(1e-10),
    "1e-8": cut(1e-8),
    "1e-7": cut(1e-7),
    "1e-6": cut(1e-6),
    "1e-5": cut(1e-5),
    "m·eps32": cut_by_eps,
    "λ + 1e-8": shrunk(1e-8),
    "λ + 1e-6": shrunk(1e-6),
}


def made_bands(n=6435, seed=0):
    """Four bands of nine neighbouring pixels, whole numbers from 0 to 255, and the kind of ground of all nine.

    Neighbours mostly have the same numbers in the rows to train on, and less so in those of the test.
    """
    rng = np.random.default_rng(seed)
    grounds, y, test = rng.uniform(60.0, 120.0, (6, 4)), rng.integers(6, size=n), np.arange(n) >= 4435
    middle = grounds[y] + rng.normal(0.0, 6.0, (n, 1)) + rng.normal(0.0, 6.0, (n, 4))
    noise = np.where(test, 2.0, 0.3)[:, None] * rng.normal(size=(n, 36))
    X = np.clip(np.rint(np.tile(middle, 9) + noise), 0, 255)
    columns = {f"x{j:02}": pa.array(column.astype(np.int16)) for j, column in enumerate(X.T)}
    return pa.table({**columns, "label": y, "split": np.where(test, "test", "train")})


class Landmarks:
    """The landmarks of one γ on some training rows, and the eigenvectors of their kernel."""

    def __init__(self, problem, multiple, width, dtype, rows):
        step = {"kind": "nystroem", "gamma": f"{multiple}*median", "n_components": min(width, len(rows))}
        config = {"dtype": dtype, "seed": problem.seed, "fit_rows": "all", "steps": [step]}
        self.X = problem.X.astype(dtype)
        (fitted,) = kafeat.fit(config, self.X[rows], problem.labels[rows]).chain.steps
        self.step, self.state = fitted.step, fitted.state
        kernel = self.step.landmark_kernel(float(self.state["gamma"]))
        self.values, self.vectors = np.linalg.eigh(kernel.matrix(self.state["landmarks"], self.X))

    def features(self, rule):
        """Return the rank by a rule, and a function from rows to features."""
        projection = RULES[rule](self.values, self.vectors)
        m, rank = projection.shape
        padded = np.zeros((m, m))
        padded[:, :rank] = trapezoid(projection)
        state = {
            **self.state,
            "projection": padded,
            "gain": np.array(gain_of(padded)),
            "rank": np.array(rank),
        }
        transform = self.step.bind(state, self.X.shape[1], self.X.dtype)

        def features(rows):
            out = np.empty((len(rows), m), self.X.dtype)
            transform.apply(np.ascontiguousarray(self.X[rows]), out, transform.scratch(len(rows)))
            return out.astype(np.float64)

        return rank, features


def by_rule(problem, landmarks, rows, held):
    """Return {rule: errors on held-out rows}; rules that keep the same directions are measured once."""
    known, found = {}, {}
    for rule in RULES:
        rank, features = landmarks.features(rule)
        key = rank if rule.startswith(("1", "m")) else rule
        if key not in known:
            known[key] = path_errors(problem, features, rows, held)
        found[rule] = known[key]
    return found


def errors(problem, width, dtype):
    """Return {rule: [test error, multiple of γ, penalty's number, rank]}, with γ and penalty by validation."""
    held_out = {}
    for multiple in MULTIPLES:
        folds = []
        for rows, held in problem.folds:
            landmarks = Landmarks(problem, multiple, width, dtype, rows)
            folds.append(by_rule(problem, landmarks, rows, held))
        for rule in RULES:
            held_out[rule, multiple] = np.mean([fold[rule] for fold in folds], axis=0)
    kept, found = {}, {}
    test = problem.test[:MOST_TEST_ROWS]
    for rule in RULES:
        best = min(MULTIPLES, key=lambda multiple: held_out[rule, multiple].min())
        penalty = int(held_out[rule, best].argmin())
        if best not in kept:
            kept[best] = Landmarks(problem, best, width, dtype, problem.train)
        rank, features = kept[best].features(rule)
        w, b = list(ridge_path(features(problem.train), problem.Y[problem.train]))[penalty]
        found[rule] = [problem.error(features(test) @ w + b, test), best, penalty, rank]
    return found


def summary(records):
    """Ratios of mean errors over seeds to those of the first rule: median, geometric mean and worst table."""
    first = next(iter(RULES))
    lines = ["| dtype | D | seeds | " + " | ".join(RULES) + " |", "|" + "---|" * (len(RULES) + 3)]
    for dtype, width in sorted({(r["dtype"], r["width"]) for r in records}):
        own = [r for r in records if (r["dtype"], r["width"]) == (dtype, width)]
        names = sorted({r["table"] for r in own})
        mean = {
            (name, rule): max(LEAST, np.mean([r["errors"][rule][0] for r in own if r["table"] == name]))
            for name, rule in product(names, RULES)
        }
        seeds = len({r["seed"] for r in own})
        cells = []
        for rule in RULES:
            ratios = {name: mean[name, rule] / mean[name, first] for name in names}
            worst = max(ratios, key=ratios.get)
            middle = np.exp(np.mean(np.log(list(ratios.values()))))
            cells.append(f"{np.median(list(ratios.values())):.3f}, {middle:.3f}, {ratios[worst]:.2f} {worst}")
        lines.append(f"| {dtype} | {width} | {seeds} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--grid", default="128:5,256:5,512:3,1024:2")
    parser.add_argument("--tables")
    parser.add_argument("--dtypes", default="float64,float32")
    parser.add_argument("--rows", type=int, default=6000)
    parser.add_argument("--out", type=Path, default=Path("rcond.jsonl"))
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    files = sorted([*args.folder.glob("*.parquet"), *args.folder.glob("tabular/*.parquet")])
    paths = {path.stem: path for path in files}
    names = args.tables.split(",") if args.tables else ["bands", *paths]
    records = [json.loads(line) for line in args.out.read_text().splitlines()] if args.out.exists() else []
    done = {(r["table"], r["dtype"], r["width"], r["seed"]) for r in records}
    grid = [tuple(map(int, part.split(":"))) for part in args.grid.split(",")]
    jobs = [
        (seed, width, name, dtype)
        for width, seeds in grid
        for seed in range(seeds)
        for name in names
        for dtype in args.dtypes.split(",")
    ]
    for seed, width, name, dtype in jobs:
        if (name, dtype, width, seed) in done:
            continue
        started = time.perf_counter()
        table = made_bands() if name == "bands" else pq.read_table(paths[name])
        found = errors(Problem(name, table, seed, args.rows), width, dtype)
        record = {"table": name, "dtype": dtype, "width": width, "seed": seed, "errors": found}
        record["seconds"] = round(time.perf_counter() - started, 1)
        records.append(record)
        with args.out.open("a") as out:
            out.write(json.dumps(record, ensure_ascii=False) + "\n")
        shown = " ".join(f"{rule}: {error[0]:.4f} ({error[3]})" for rule, error in found.items())
        print(f"{name} {dtype} D = {width} seed {seed} ({record['seconds']} s): {shown}", flush=True)
    print(summary(records))


if __name__ == "__main__":
    main()
