"""Errors of the kernel on held-out rows: our maps, and scikit-learn's with as many columns, on the same rows.

    python benchmarks/accuracy.py DATA_FOLDER [--only "fourier, rbf"] [--seeds 3] [--train 4000] [--held 1000]

DATA_FOLDER holds NAME.parquet files with a target column (`label` or `medianHouseValue`) and `split`. Prints the
relative errors of ZZᵀ in the Frobenius and the spectral norm as a share of those of scikit-learn, geometric means over
seeds and at the end over tables, and those of the best matrix of this rank ("best"), which knows the held-out rows.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from sklearn.kernel_approximation import AdditiveChi2Sampler, Nystroem, PolynomialCountSketch, RBFSampler

import kafeat

NUMBERS = ("letter", "usps", "ijcnn1", "covtype20k", "california", "mnist")
COUNTS = ("office_caltech_surf", "usps", "mnist")
TARGETS = ("label", "medianHouseValue")


@dataclass(frozen=True)
class Comparison:
    """A peer by its width, seed and γ, our steps by name, and rows: standardized, of unit length, or of sum 1."""

    peer: Callable
    ours: dict[str, dict]
    rows: str = "standardized"
    tables: tuple[str, ...] = NUMBERS
    widths: tuple[int, ...] = (128, 256)
    gamma: str | float = "median"


def _nystroem(kernel: str, **own) -> Comparison:
    peer = {"polynomial": {"degree": 2, "coef0": 1.0} | own}.get(kernel, {})
    ways = {
        "default": {},
        "kmeans": {"landmarks": "kmeans"},
        "rpcholesky": {"landmarks": "rpcholesky"},
        "rpcholesky, fitted": {"landmarks": "rpcholesky", "weights": "fitted"},
    }
    if kernel == "rbf":
        ways["learned, fitted"] = {"landmarks": "learned", "weights": "fitted"}
    return Comparison(
        lambda D, seed, gamma: Nystroem(
            kernel=kernel, n_components=D, random_state=seed, gamma=gamma, **peer
        ),
        {name: {"kind": "nystroem", "kernel": kernel, **own, **way} for name, way in ways.items()},
        *(("shares", COUNTS) if kernel == "chi2" else ()),
    )


def _polynomial(rows: str, tables: tuple[str, ...]) -> Comparison:
    own = {"degree": 3, "coef0": 1.0}
    kinds = ("tensor_srht", "tensor_sketch", "random_maclaurin")
    ours = {kind: {"kind": kind, **own} for kind in kinds}
    ours["nystroem"] = {"kind": "nystroem", "kernel": "polynomial", **own}
    return Comparison(
        lambda D, seed, gamma: PolynomialCountSketch(n_components=D, random_state=seed, gamma=gamma, **own),
        ours, rows, tables, (512,), "auto" if rows == "standardized" else 1.0,
    )  # fmt: skip


COMPARISONS = {
    "fourier, rbf": Comparison(
        lambda D, seed, gamma: RBFSampler(gamma=gamma, n_components=D, random_state=seed),
        {
            "default": {"kind": "fourier"},
            "orthogonal, fitted": {"kind": "fourier", "frequencies": "orthogonal"},
            "orthogonal, uniform": {"kind": "fourier", "frequencies": "orthogonal", "weights": "uniform"},
        },
        widths=(256, 1024),
    ),
    **{f"nystroem, {kernel}": _nystroem(kernel) for kernel in ("rbf", "laplacian", "chi2", "polynomial")},
    "nystroem, polynomial of degree 3": _nystroem("polynomial", degree=3),
    "laplacian: fourier or nystroem": Comparison(
        lambda D, seed, gamma: Nystroem(kernel="laplacian", n_components=D, random_state=seed, gamma=gamma),
        {kind: {"kind": kind, "kernel": "laplacian"} for kind in ("nystroem", "fourier")},
        widths=(128, 512, 1024),
    ),
    "homogeneous, chi2": Comparison(  # here D is the number of outputs per input
        lambda D, _seed, _gamma: AdditiveChi2Sampler(sample_steps=(D + 1) // 2),
        {window: {"kind": "homogeneous", "window": window} for window in ("minimax", "rectangular", "fitted")},
        "shares", COUNTS[:2], (3, 5),
    ),
    "polynomial of degree 3, standardized": _polynomial("standardized", (*NUMBERS, "a9a")),
    "polynomial of degree 3, not negative, unit length": _polynomial("unit", (*COUNTS, "letter")),
}  # fmt: skip


def read(path: Path, rows: str, seed: int, sizes: tuple[int, int]) -> list[np.ndarray]:
    """Rows to fit on and held-out rows."""
    table, rng = pq.read_table(path), np.random.default_rng(seed)
    X = np.column_stack(
        [table[name].to_numpy() for name in table.column_names if name not in (*TARGETS, "split")]
    )
    split = np.array(table["split"].to_pylist())
    chosen = (
        rng.permutation(np.flatnonzero(split == part))[:n]
        for part, n in zip(("train", "test"), sizes, strict=True)
    )
    A, B = (X[part].astype(float) for part in chosen)
    if rows == "standardized":
        scale = A.std(axis=0)
        return [(part - A.mean(axis=0)) / np.where(scale > 0.0, scale, 1.0) for part in (A, B)]
    order = 1 if rows == "shares" else 2
    raised = [part - X.min() for part in (A, B)]
    return [part / np.maximum(np.linalg.norm(part, order, axis=1, keepdims=True), 1e-12) for part in raised]


def errors(K: np.ndarray, Z: np.ndarray) -> np.ndarray:
    E = K - Z.astype(float) @ Z.T.astype(float)
    return np.array([np.linalg.norm(E), np.abs(np.linalg.eigvalsh(E)).max()])


def compare(c: Comparison, A: np.ndarray, B: np.ndarray, D: int, seed: int) -> dict[str, np.ndarray]:
    """Both errors of everything as shares of the peer's, in float64."""
    gamma, K, found = c.gamma, None, {}
    for name, step in c.ours.items():
        homogeneous = step["kind"] == "homogeneous"
        own = {"order": (D - 1) // 2} if homogeneous else {"n_components": D, "gamma": gamma}
        if step["kind"] == "nystroem" and c.gamma == "auto":
            own["gamma"] = gamma if isinstance(gamma, float) else 1.0 / A.shape[1]
        fm = kafeat.fit({"dtype": "float64", "seed": seed, "fit_rows": "all", "steps": [step | own]}, A)
        gamma = gamma if homogeneous else float(fm.chain.steps[0].state["gamma"])
        K = fm.exact_kernel(B) if K is None else K
        found[name] = errors(K, fm.transform(B))
    values = np.linalg.eigvalsh(K)[::-1][D * (A.shape[1] if homogeneous else 1) :]
    found["best"] = np.array([np.linalg.norm(values), max(values, default=0.0)])
    theirs = errors(K, c.peer(D, seed, gamma).fit(A).transform(B))
    return {name: np.maximum(error, 1e-14 * np.linalg.norm(K)) / theirs for name, error in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="*", default=list(COMPARISONS), choices=list(COMPARISONS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--train", type=int, default=4000)
    parser.add_argument("--held", type=int, default=1000)
    given = parser.parse_args()
    for title in given.only:
        c, means = COMPARISONS[title], {}
        names = [*c.ours, "best"]
        print(f"\n## {title}\n\n| table | D | {' | '.join(names)} |\n{'|---' * (2 + len(names))}|")
        for D in c.widths:
            for table in c.tables:
                logs = {name: [] for name in names}
                for seed in range(given.seeds):
                    A, B = read(given.folder / f"{table}.parquet", c.rows, seed, (given.train, given.held))
                    for name, shares in compare(c, A, B, D, seed).items():
                        logs[name].append(np.log(shares))
                mean = {name: np.mean(values, axis=0) for name, values in logs.items()}
                means.setdefault(D, []).append(mean)
                print(f"| {table} | {D} | {' | '.join(_pair(mean[name]) for name in names)} |", flush=True)
            every = {name: np.mean([mean[name] for mean in means[D]], axis=0) for name in names}
            print(
                f"| geometric mean | {D} | {' | '.join(_pair(every[name]) for name in names)} |", flush=True
            )


def _pair(logs: np.ndarray) -> str:
    return ", ".join(f"{share:.3f}" for share in np.exp(logs))


if __name__ == "__main__":
    main()
