"""Check on test rows the score that `tune` prints, its number of columns and its choice of a map.

    python benchmarks/tuned_choices.py DATA_FOLDER [--tables letter,usps] [--time 60s] [--out choices.json]

DATA_FOLDER holds NAME.parquet and tabular/NAME.parquet, with a target (`label` or `medianHouseValue`) and `split`. The
test rows are scored by a model of each number of columns that was tried, and of each map of the last stage. Prints for
each table the score that is printed and that of the test rows, with standard errors; how much more the recommended
number of columns errs than the best one; and how much more the chosen map errs than the best of the last stage.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

import kafeat
from kafeat.errors import KafeatError
from kafeat.maths.scoring import figure_of
from kafeat.maths.task import task_of
from kafeat.study.tune.input import with_columns

TARGETS = ("label", "medianHouseValue")


def error_of(config, table, target, test):
    """Return the log loss, or 1 − R², of a model of the training rows on the test rows."""
    fm = kafeat.fit(config, table, target, split="split", intervals=False)
    rows, labels = table.filter(test), table[target].to_numpy()
    task = task_of(labels)
    if task.classes is None:
        predicted = fm.predict(rows).astype(float)
        return float(np.mean((predicted - labels[test]) ** 2) / np.var(labels[test]))
    return figure_of("log_loss", task, fm.predict_proba(rows), labels[test])


def checked(name, path, seconds):
    """Return the figures of a table."""
    table = pq.read_table(path)
    target = next(one for one in TARGETS if one in table.column_names)
    test = np.array([value == "test" for value in table["split"].to_pylist()])
    seen, started = [], time.perf_counter()
    tuning = kafeat.tune(
        table,
        target,
        predictor="ridge",
        split="split",
        time=seconds,
        progress=lambda search, trial: seen.append((search, trial)),
    )  # fmt: skip
    took, search = time.perf_counter() - started, seen[0][0]
    plain, last = tuning.config.to_plain(), tuning.config.predictor.recipe()
    size = search.decided
    best = sorted((trial for _, trial in seen if trial.size == size), key=lambda trial: -trial.outcome.score)
    chosen = next(trial.candidate for trial in best if str(trial.candidate) == tuning.table[0]["map"])
    finalists = list(dict.fromkeys([chosen, *(trial.candidate for trial in best)]))[:5]

    def error(candidate, width):
        steps = [*search.space.steps(candidate, width, len(search.space.table.labels)), last]
        return error_of(
            with_columns(kafeat.Config.model_validate(plain), search.space.table.groups, steps),
            table,
            target,
            test,
        )

    widths = {row["columns"]: error(chosen, row["columns"]) for row in tuning.curve} or {0: float("nan")}
    shortlist = {one: error(one, size.width) for one in finalists}
    found = tuning.test_score
    apart = abs(found.value - tuning.score) / np.hypot(found.error, tuning.error)
    return {
        "table": name, "rows": int((~test).sum()), "score": tuning.score_name, "said": tuning.score,
        "test": found.value, "standard_errors_apart": float(apart), "map": tuning.table[0]["map"],
        "columns": tuning.columns,
        "over_best_width": error(chosen, tuning.columns) / min(widths.values()) - 1.0 if tuning.curve else 0.0,
        "over_best_map": shortlist[chosen] / min(shortlist.values()) - 1.0,
        "over_highest_score": shortlist[chosen] / shortlist[best[0].candidate] - 1.0,
        "scored_rows": size.rows, "seconds": took,
        "twice_rows": tuning.twice_rows,
    }  # fmt: skip


def main():
    """Check every table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tables")
    parser.add_argument("--time", default="60s")
    parser.add_argument("--out", type=Path, default=Path("choices.json"))
    asked = parser.parse_args()
    paths = {
        path.stem: path for path in [*asked.folder.glob("*.parquet"), *asked.folder.glob("tabular/*.parquet")]
    }
    rows = json.loads(asked.out.read_text()) if asked.out.exists() else []
    known = {row["table"] for row in rows}
    for name in asked.tables.split(",") if asked.tables else sorted(paths):
        if name in known or not {"split", *TARGETS[:0]} <= set(pq.read_schema(paths[name]).names):
            continue
        try:
            rows.append(checked(name, paths[name], asked.time))
        except KafeatError as error:
            print(f"{name}: {type(error).__name__}: {error}", flush=True)
            continue
        row = rows[-1]
        print(
            f"{name:<20} {row['rows']:>7,} rows  {row['score']:<9} {row['said']:8.4f} test {row['test']:8.4f} "
            f"({row['standard_errors_apart']:.1f} s.e.)  {row['columns']:>5,} columns {row['over_best_width']:+.1%}  "
            f"map {row['over_best_map']:+.1%} (best score {row['over_highest_score']:+.1%})  {row['seconds']:.0f} s  "
            f"{row['map']}",
            flush=True,
        )
        asked.out.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
