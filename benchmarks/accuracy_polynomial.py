"""Sketches of a polynomial kernel at equal width, on standardized rows of unit length that the fit did not see.

    python benchmarks/accuracy_polynomial.py DATA_FOLDER [JSON]

DATA_FOLDER holds NAME.parquet files with a `split` column. Prints relative Frobenius errors of degree 4, D = 1,024 as
a markdown table: mean ± standard error over seeds, and geometric means of the ratios to scikit-learn's
PolynomialCountSketch. JSON, if given, takes the same numbers.
"""

import json
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from sklearn.kernel_approximation import PolynomialCountSketch

from kafeat.chain.tiles import TileLoop
from kafeat.contract.step import Sample
from kafeat.registry import build_step

NAMES = ("letter", "usps", "ijcnn1", "covtype20k", "california", "mnist")
TARGETS = ("label", "medianHouseValue", "split")
DEGREE, WIDTH, SEEDS, ROWS, GAMMA = 4, 1024, 10, 1000, 1.0
MAPS = {
    "tensor_srht": {"kind": "tensor_srht"},
    "tensor_srht, real": {"kind": "tensor_srht", "complex_to_real": False},
    "tensor_sketch": {"kind": "tensor_sketch"},
    "random_maclaurin": {"kind": "random_maclaurin"},
}


def unit_rows(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Standardized by the training rows, each row then of length 1: rows to fit on, rows to measure on."""
    table = pq.read_table(path)
    X = np.column_stack([table[name].to_numpy() for name in table.column_names if name not in TARGETS])
    train = table["split"].to_numpy() == "train"
    rng = np.random.default_rng(0)
    mean, std = X[train].mean(axis=0, dtype=float), X[train].std(axis=0, dtype=float)
    scaled = [
        (X[np.flatnonzero(part)][rng.permutation(int(part.sum()))[:ROWS]] - mean) / np.where(std > 0, std, 1)
        for part in (train, ~train)
    ]
    fit, held_out = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in scaled)
    return fit, held_out


def peer(coef0: float, seed: int, fit: np.ndarray, X: np.ndarray) -> np.ndarray:
    sketch = PolynomialCountSketch(
        degree=DEGREE, gamma=GAMMA, coef0=coef0, n_components=WIDTH, random_state=seed
    )
    return sketch.fit(fit).transform(X)


def ours(recipe: dict, coef0: float, seed: int, fit: np.ndarray, X: np.ndarray) -> np.ndarray:
    common = {"degree": DEGREE, "gamma": GAMMA, "coef0": coef0, "n_components": WIDTH}
    step = build_step({**recipe, **common})
    state = step.fit(Sample(fit, None, len(fit)), np.random.default_rng(seed))
    Z = np.empty((len(X), WIDTH))
    TileLoop(step.bind(state, X.shape[1], X.dtype), X.dtype)(X, Z)
    return Z


def errors(coef0: float, fit: np.ndarray, X: np.ndarray) -> dict[str, list[float]]:
    exact = (GAMMA * X @ X.T + coef0) ** DEGREE
    found: dict[str, list[float]] = {"PolynomialCountSketch": [], **{name: [] for name in MAPS}}
    for seed in range(SEEDS):
        images = {"PolynomialCountSketch": peer(coef0, seed, fit, X)}
        images.update({name: ours(recipe, coef0, seed, fit, X) for name, recipe in MAPS.items()})
        for name, Z in images.items():
            found[name].append(float(np.linalg.norm(Z @ Z.T - exact) / np.linalg.norm(exact)))
    return found


def main() -> None:
    folder, report = Path(sys.argv[1]), []
    print(f"degree {DEGREE}, D = {WIDTH:,}, gamma {GAMMA:g}, {ROWS:,} held-out rows, {SEEDS} seeds\n")
    heads = ["PolynomialCountSketch", *MAPS]
    print(f"| c₀ | data | {' | '.join(heads)} |\n|{'---|' * (2 + len(heads))}")
    for coef0 in (0.0, 1.0):
        ratios: dict[str, list[float]] = {name: [] for name in heads}
        for name in NAMES:
            found = errors(coef0, *unit_rows(folder / f"{name}.parquet"))
            means = {head: float(np.mean(values)) for head, values in found.items()}
            spread = {head: float(np.std(v, ddof=1) / np.sqrt(SEEDS)) for head, v in found.items()}
            for head in heads:
                ratios[head].append(means[head] / means[heads[0]])
            cells = " | ".join(f"{means[head]:.4f} ± {spread[head]:.4f}" for head in heads)
            print(f"| {coef0:g} | {name} | {cells} |", flush=True)
            report.append({"coef0": coef0, "data": name, "errors": found})
        geometric = {head: float(np.exp(np.mean(np.log(values)))) for head, values in ratios.items()}
        cells = " | ".join(f"{geometric[head]:.3f}" for head in heads)
        print(f"| {coef0:g} | geometric mean of ratios | {cells} |", flush=True)
        report.append({"coef0": coef0, "geometric_mean_ratio": geometric})
    if len(sys.argv) > 2:
        Path(sys.argv[2]).write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
