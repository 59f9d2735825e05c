"""Measure the growth of the cost with the rows of a file, and with the inputs d and the outputs D of a row.

    python benchmarks/growth.py [--out FOLDER] [--full] [--only rows|width]

The rows are those of the whole job, Parquet to Parquet, 54 columns of doubles to 1,024 features: 100,000 and
1,000,000, and 10,000,000 with --full, which takes 48 GB of disk. d and D are those of Fourier maps in memory, dense and
structured. Prints tables, and writes what was measured to FOLDER/growth.json.
"""

import argparse
import json
import shutil
import statistics
from pathlib import Path

from speed import environment

ROWS = (100_000, 1_000_000, 10_000_000)
WIDTHS = ((54, 1024), (54, 4096), (54, 16384), (256, 4096), (784, 4096), (2048, 4096), (4096, 4096))
NUMBERS = 100_000_000
"""Inputs or outputs of a run in memory, whichever are more."""


def rows_grow(folder: Path, sizes: tuple[int, ...], rounds: int) -> list[dict[str, float]]:
    """The whole job at several heights; heights take turns."""
    from speed.contest import take_turns
    from speed.processes import KAFEAT, process
    from speed.whole_job import WIDTH, D, fitted, write_input

    sides = {}
    made = folder / "growth.parquet"
    for rows in sizes:
        needed = 1.1 * rows * (4 * D + 8 * WIDTH)
        if shutil.disk_usage(folder).free < needed:
            print(f"{rows:,} rows: left out, as they take {needed / 1e9:.0f} GB of disk")
            continue
        source = folder / f"in-{rows}.parquet"
        if not source.exists():
            write_input(source, rows)
        model = fitted(folder, source)
        sides[rows] = process(
            [KAFEAT, "transform", "--model", model, str(source), str(made), "--no-fsync"], made.unlink
        )
    found = []
    for rows, runs in take_turns(sides, rounds).items():
        seconds = statistics.median(run["seconds"] for run in runs)
        peak = statistics.median(run["peak_mb"] for run in runs)
        found.append({"rows": rows, "seconds": seconds, "µs a row": 1e6 * seconds / rows, "peak MB": peak})
    return found


def widths_grow(rounds: int, cores: int) -> list[dict[str, float]]:
    """Fourier maps in memory, at several d and D."""
    import numpy as np
    from speed.cases import PLAIN
    from speed.contest import take_turns, timed

    import kafeat

    found = []
    for d, D in WIDTHS:
        rows = NUMBERS // max(d, D)
        X = np.random.default_rng(1).standard_normal((rows, d), dtype="float32")
        sides = {}
        for name in ("iid", "structured"):
            step = {"kind": "fourier", "gamma": 0.5 / d, "n_components": D, **PLAIN, "frequencies": name}
            fm = kafeat.fit({"steps": [step]}, X[:2048])
            sides[name] = timed(lambda fm=fm, X=X: fm.transform(X, jobs=cores))
        taken = {
            name: statistics.median(run["seconds"] for run in runs)
            for name, runs in take_turns(sides, rounds).items()
        }
        found.append(
            {
                "d": d,
                "D": D,
                "rows": rows,
                "dense µs a row": 1e6 * taken["iid"] / rows,
                "structured µs a row": 1e6 * taken["structured"] / rows,
                "dense GFLOP/s": d * D * rows / taken["iid"] / 1e9,  # paired: D/2 products of 2d operations
            }
        )
    return found


def show(records: list[dict[str, float]]) -> None:
    """A Markdown table."""
    if not records:
        return
    print(f"\n| {' | '.join(records[0])} |\n{'|---' * len(records[0])}|")
    for record in records:
        cells = [f"{value:,}" if isinstance(value, int) else f"{value:,.2f}" for value in record.values()]
        print(f"| {' | '.join(cells)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("bench-results"))
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--only", choices=["rows", "width"])
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    environment.clean()
    # Not before: this loads BLAS.
    from speed import machine

    asked.out.mkdir(parents=True, exist_ok=True)
    report: dict[str, object] = {"machine": machine.describe(), "rounds": asked.rounds}
    if asked.only != "width":
        sizes = ROWS if asked.full else ROWS[:2]
        report["rows"] = rows_grow(asked.out.resolve(), sizes, asked.rounds)
        show(report["rows"])
    if asked.only != "rows":
        report["width"] = widths_grow(asked.rounds, machine.cores())
        show(report["width"])
    (asked.out / "growth.json").write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
