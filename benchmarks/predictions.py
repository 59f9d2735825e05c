"""Predictions of a file beside the time of their products and cosines alone, on tiles that stay in memory.

    python -m benchmarks.predictions MODEL.joblib DATA.parquet

MODEL is standardize, fourier and a predictor. Both are measured in turns, in seconds and in CPU seconds, and the median
of their ratios is printed: 1 is a prediction for which reading, scaling, softmax and writing cost nothing.
"""

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

import kafeat
from kafeat.chain.blas import one_blas_thread
from kafeat.model.feature_map import FeatureMap

REPEATS = 7


def limit(fm: FeatureMap, rows: int, jobs: int) -> None:
    """Compute angles, cosines and the product with the weights of as many rows, tile by tile."""
    height, dtype = fm.program("predictions").rows, np.dtype(fm.dtype)
    fitted = fm.chain.steps[-1]
    weights = fm.predictor.fitted.state["weights"].astype(dtype)

    def share(_: int) -> None:
        cosines = fitted.bind(dtype)
        scratch = cosines.scratch(height)
        X = np.random.default_rng(0).standard_normal((height, fitted.n_features_in)).astype(dtype)
        Z = np.empty((height, len(weights)), dtype)
        P = np.empty((height, weights.shape[1]), dtype)
        for _ in range(rows // height // jobs):
            cosines.apply(X, Z, scratch)
            np.matmul(Z, weights, out=P)

    with one_blas_thread(), ThreadPoolExecutor(jobs) as pool:
        list(pool.map(share, range(jobs)))


def timed(work: Callable[[], object]) -> np.ndarray:
    """Seconds, and seconds of the processor."""
    start = np.array([time.perf_counter(), time.process_time()])
    work()
    return np.array([time.perf_counter(), time.process_time()]) - start


def main(model: str, data: str) -> None:
    """Print the medians for one and two threads."""
    fm = kafeat.load(model)
    with tempfile.TemporaryDirectory() as folder:
        for jobs in (1, 2):
            show(fm, data, str(Path(folder) / "out.parquet"), jobs)


def show(fm: FeatureMap, data: str, out: str, jobs: int) -> None:
    """Print the medians for some threads."""

    def predict() -> int:
        return kafeat.predict(data, out, model=fm, fsync=False, jobs=jobs).rows

    rows = predict()
    both = [(timed(lambda: limit(fm, rows, jobs)), timed(predict)) for _ in range(REPEATS)]
    for i, unit in enumerate(("seconds", "CPU seconds")):
        alone, whole = (statistics.median(one[k][i] for one in both) for k in (0, 1))
        share = statistics.median(one[0][i] / one[1][i] for one in both)
        print(f"{jobs} threads, {unit}: limit {alone:.2f}, predict {whole:.2f}, ratio {share:.2f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
