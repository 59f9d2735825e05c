"""Each map beside scikit-learn's on 20,000 rows: processor time of one thread, and seconds of two.

    python benchmarks/one_thread.py [--only PATTERN] [--rows 20000] [--rounds 5]

Prints a table. Outputs are fresh on both sides, which take turns, and figures are medians of the rounds. On a machine
that others use, the processor time of one thread says most. `filling` is the first writing of a fresh output by one
thread, which no map can do without.
"""

import argparse
import re
import time
from collections.abc import Callable
from dataclasses import replace

from speed import environment

_FIT_ROWS = 4096


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", metavar="PATTERN")
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    environment.clean()
    # Not before: these load BLAS.
    from speed.cases import CASES

    print(
        "| map | ours, 1 thread | theirs, 1 thread | ratio | ours, 2 | theirs, 2 | ratio | 2 over 1 | filling |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for case in CASES:
        if re.search(asked.only, case.name):
            print(line(replace(case, rows=asked.rows), asked.rounds), flush=True)


def line(case, rounds: int) -> str:
    import numpy as np
    from threadpoolctl import threadpool_limits

    import kafeat

    rng = np.random.default_rng(1)
    X = (rng.random if case.positive else rng.standard_normal)((case.rows, case.d), dtype=case.dtype)
    fm = kafeat.fit({"dtype": case.dtype, "seed": 0, "steps": [dict(case.step)]}, X[:_FIT_ROWS])
    theirs = next(iter(case.peers.values()))(X[:_FIT_ROWS])
    runs = []
    for _ in range(rounds + 1):
        with threadpool_limits(1):
            alone = cost(lambda: theirs.transform(X))
        ours = [*cost(lambda: fm.transform(X, jobs=1)), *cost(lambda: fm.transform(X, jobs=2))]
        fresh = cost(lambda: np.full((case.rows, fm.n_components), 1.0, case.dtype))
        runs.append([*ours, *alone, *cost(lambda: theirs.transform(X)), *fresh])
    cpu1, wall1, _, wall2, their_cpu, _, _, their_wall, filling, _ = np.median(runs[1:], axis=0)
    one = f"{cpu1 * 1e3:.1f} ms | {their_cpu * 1e3:.1f} ms | {their_cpu / cpu1:.1f}"
    two = f"{wall2 * 1e3:.1f} ms | {their_wall * 1e3:.1f} ms | {their_wall / wall2:.1f}"
    return f"| {case.name} | {one} | {two} | {wall1 / wall2:.2f} | {filling * 1e3:.1f} ms |"


def cost(work: Callable[[], object]) -> tuple[float, float]:
    """Processor time and seconds of a call; what it returns is freed afterwards."""
    started, used = time.perf_counter(), time.process_time()
    result = work()
    taken = time.process_time() - used, time.perf_counter() - started
    del result
    return taken


if __name__ == "__main__":
    main()
