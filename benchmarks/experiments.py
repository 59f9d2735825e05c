"""Run the experiments of the package, and write their tables into the pages.

    python benchmarks/experiments.py DATA [--out FOLDER] [--only PATTERN] [--tables]

Each is `kafeat evaluate --experiment NAME` on a file of DATA; its results go to FOLDER/NAME.json and its page to
FOLDER/NAME. The table of savings is written into docs/experiments.md, and the others into benchmarks/results, between
their marks. With --tables nothing is run.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kafeat.config.experiment import experiment_names

ROOT = Path(__file__).parents[1]
DIGITS = ROOT / "sample_data/digits.parquet"
# The file of DATA for each experiment; those without one take the digits of sample_data.
FILES = {
    "guide-covtype": "covtype20k.parquet",
    "guide-chi2": "office_caltech_surf.parquet",
    "poster-surf": "office_caltech_surf.parquet",
    "notebook-mnist": "mnist.parquet",
    "notebook-california": "california.parquet",
    "talk-usps": "usps.parquet",
    "talk-letter": "letter.parquet",
    "talk-ijcnn1": "ijcnn1.parquet",
    "carbone-adult": "a9a.parquet",
    "carbone-bank": "tabular/bank.parquet",
    "carbone-covtype": "covtype20k.parquet",
    "predict-a9a": "a9a.parquet",
}
PAGES = (ROOT / "docs/experiments.md", ROOT / "benchmarks/results/experiments.md")
# Experiment, map and columns of each row of the table of savings, with the words for it.
SAVINGS = {
    "bags of words, chi2 with 3 outputs": ("poster-surf", "chi2-3", 2400),
    "MNIST 0 against 1, 2,000 Fourier features": ("notebook-mnist", "narrow", 2000),
    "a9a, 128 Nyström features": ("predict-a9a", "nystroem", 128),
}
MARK = re.compile(r"(<!-- (long|savings): ([\w-]+) -->\n).*?(<!-- end -->)", flags=re.S)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("--out", type=Path, default=Path("experiments-results"))
    parser.add_argument("--only", default="", metavar="PATTERN", help="of NAME")
    parser.add_argument("--tables", action="store_true", help="write the tables of what is in FOLDER")
    asked = parser.parse_args()
    asked.out.mkdir(exist_ok=True)
    for name in experiment_names():
        if not asked.tables and re.search(asked.only, name):
            run(name, asked.data.resolve(), asked.out)
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        page.write_text(MARK.sub(lambda part: filled(part, asked.out), text), encoding="utf-8")


def run(name: str, data: Path, out: Path) -> None:
    """Run one experiment, and write down how long it took and what else the machine did."""
    source = data / FILES[name] if name in FILES else DIGITS
    if name == "notebook-mnist":
        source = two_digits(source, out / "mnist-0-1.parquet")
    started, before = time.perf_counter(), os.getloadavg()[0]
    subprocess.run(
        [
            sys.executable, "-m", "kafeat", "evaluate", "--experiment", name, source,
            "--json", out / f"{name}.json", "--report", out / name,
        ],
        check=True,
    )  # fmt: skip
    (out / f"{name}.txt").write_text(
        f"{(time.perf_counter() - started) / 60:.1f} minutes; load average {before:.1f} before, "
        f"{os.getloadavg()[0]:.1f} after, on {os.cpu_count()} cores."
    )


def two_digits(source: Path, target: Path) -> Path:
    """Write the rows of the digits 0 and 1."""
    table = pq.read_table(source)
    pq.write_table(table.filter(pc.is_in(table["label"], pa.array([0, 1], table["label"].type))), target)
    return target


def filled(part: re.Match[str], out: Path) -> str:
    """The part of a page with its table, if there are results."""
    name, file = part[3], out / f"{part[3]}.json"
    if part[2] == "savings":
        return "\n".join([part[1], *savings(out), "", part[4]])
    if not (file.exists() and file.with_suffix(".txt").exists()):  # not run, or not to its end
        return part[0]
    results = json.loads(file.read_text())
    lines = [*about(results), "", *long(results), "", (out / f"{name}.txt").read_text()]
    return "\n".join([part[1], *lines, "", part[4]])


def savings(out: Path) -> Iterator[str]:
    """Markdown: total seconds on the same rows, and seconds to predict, as medians over the splits."""
    yield "| data and map | rows | total s: map | exact | rows to predict | predict s: map | exact |"
    yield "|---|---|---|---|---|---|---|"
    for words, (name, title, columns) in SAVINGS.items():
        records = [
            one
            for one in json.loads((out / f"{name}.json").read_text())["records"]
            if (one["map"], one["n_components"]) == (title, columns)
        ]
        figures = {
            key: seconds(median(one[key] for one in records))
            for key in (
                "total_seconds_map_exact_rows", "total_seconds_exact", "predict_seconds_map", "predict_seconds_exact",
            )
        }  # fmt: skip
        totals, predicting = list(figures.values())[:2], list(figures.values())[2:]
        yield (
            f"| {words} | {records[0]['rows_exact']:,} | {' | '.join(totals)} | {records[0]['rows_test']:,} | "
            f"{' | '.join(predicting)} |"
        )


def about(results: dict[str, Any]) -> Iterator[str]:
    """Sentences about the rows and the learner."""
    first, entry = results["records"][0], results["summary"][0]
    penalty = {one["penalty_map"] for one in results["records"]}
    chosen = (
        f"penalty {penalty.pop():g}" if first["search_seconds_map"] == 0 else "penalties by 3-fold search"
    )
    yield (
        f"{first['rows_train']:,} rows to train, {first['rows_test']:,} to test, {entry['splits']} split(s), "
        f"{entry['seeds']} seed(s); {first['learner']}, {chosen}. Raw columns: {score(entry, 'raw')} in "
        f"{total(entry, 'raw')} s."
    )


def long(results: dict[str, Any]) -> Iterator[str]:
    """Markdown: the error and all costs of each map."""
    yield (
        "| map | D | score | exact | error | fit s | Z s | learn s | total s | K s | exact learn s | exact total s "
        "| predict s | exact predict s |"
    )
    yield "|---" * 14 + "|"
    for entry in results["summary"]:
        figures = [
            seconds(mean(entry, key))
            for key in (
                "fit_seconds", "transform_seconds_map", "learn_seconds_map", "total_seconds_map",
                "kernel_seconds_exact", "learn_seconds_exact", "total_seconds_exact", "predict_seconds_map",
                "predict_seconds_exact",
            )
        ]  # fmt: skip
        yield (
            f"| {entry['map']} | {entry['n_components']:,} | {score(entry, 'map')} | {score(entry, 'exact')} | "
            f"{mean(entry, 'relative_frobenius'):.4f} | {' | '.join(figures)} |"
        )


def mean(entry: dict[str, Any], key: str) -> float:
    return entry[key]["mean"]


def score(entry: dict[str, Any], side: str) -> str:
    """The score, with its deviation over splits or seeds if there is one."""
    of = entry[f"score_{side}"]
    spread = f" ± {of['deviation']:.3f}" if of["deviation"] else ""
    return f"{of['mean']:.4f}{spread}"


def total(entry: dict[str, Any], side: str) -> str:
    return seconds(mean(entry, f"total_seconds_{side}"))


def seconds(value: float) -> str:
    """Two digits, as times of one run are no more certain."""
    return "<0.01" if value < 0.01 else f"{value:.0f}" if value >= 10 else f"{value:.2g}"


if __name__ == "__main__":
    main()
