"""Measure the loss of maps that learn from data on rows unlike those of the fit, beside scikit-learn on the same rows.

    python benchmarks/accuracy_shifted.py DATA_FOLDER [--sets letter,covtype20k,usps] [--seeds 3]

The fit sample is changed, or the held-out rows are: the kernel is that of the fit (rbf, gamma median of the fit
sample). Prints, for each change, the mean relative Frobenius error over seeds as a share of scikit-learn's, geometric
mean over the sets, and the largest share.
"""

import argparse
from pathlib import Path

import numpy as np
from accuracy_nystroem import error, gram, read
from sklearn.kernel_approximation import Nystroem, RBFSampler

import kafeat

OURS = {
    "fourier, 256": {"kind": "fourier", "n_components": 256},
    "nystroem, 256": {"kind": "nystroem", "n_components": 256},
    "nystroem fitted, 256": {"kind": "nystroem", "n_components": 256, "weights": "fitted"},
    "nystroem learned, 256": {
        "kind": "nystroem",
        "n_components": 256,
        "landmarks": "learned",
        "weights": "fitted",
    },
}


def changed(A, B, rng):
    """Each way to change the rows A to fit on and B to measure on."""
    few = rng.choice(len(A), len(A) // 100, replace=False)
    outliers = A.copy()
    outliers[few] *= 100.0
    shuffled = np.column_stack([rng.permutation(column) for column in B.T])
    return {
        "as they are": (A, B),
        "1 % of the fit rows 100 times as large": (outliers, B),
        "90 % of the fit rows duplicates of 20": (
            np.concatenate([A[: len(A) // 10], A[rng.choice(20, len(A) * 9 // 10)]]),
            B,
        ),
        "new rows 1.5 times as large": (A, B * np.float32(1.5)),
        "new rows with shuffled columns": (A, shuffled),
        "new rows normal": (A, rng.standard_normal(B.shape).astype(np.float32)),
        "new rows, a tenth of them 10 times as large": (
            A,
            np.concatenate([B[: len(B) // 10] * 10, B[len(B) // 10 :]]),
        ),
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sets", default="letter,covtype20k,usps")
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args()
    found = {}
    for name in given.sets.split(","):
        for seed in range(given.seeds):
            rng = np.random.default_rng(seed)
            A, B, _ = read(given.folder, name, rng, 10_000, 500)
            for change, (fit_on, new) in changed(A, B, rng).items():
                gamma = None
                for ours, step in OURS.items():
                    fm = kafeat.fit(
                        {"seed": seed, "steps": [step if gamma is None else {**step, "gamma": gamma}]}, fit_on
                    )
                    if gamma is None:
                        gamma = float(fm.chain.steps[0].state["gamma"])
                        K = gram(new, new, gamma)
                        peers = {
                            "fourier": RBFSampler(gamma=gamma, n_components=256, random_state=seed),
                            "nystroem": Nystroem(gamma=gamma, n_components=256, random_state=seed),
                        }
                        theirs = {
                            kind: error(K, peer.fit(fit_on.astype(float)).transform(new.astype(float)))
                            for kind, peer in peers.items()
                        }
                    pair = (error(K, fm.transform(new)), theirs[step["kind"]])
                    found.setdefault((change, ours), {}).setdefault(name, []).append(pair)
    print("| rows | " + " | ".join(OURS) + " |")
    print("|---" * (1 + len(OURS)) + "|")
    for change in dict.fromkeys(change for change, _ in found):
        cells = []
        for ours in OURS:
            shares = [np.divide(*np.mean(pairs, axis=0)) for pairs in found[change, ours].values()]
            cells.append(f"{np.exp(np.mean(np.log(shares))):.2f} ({max(shares):.2f})")
        print(f"| {change} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
