"""What the rule of `--task auto` takes labels for, and how often that is wrong. The table is in results/labels.md.

    python benchmarks/label_kinds.py [FILE.parquet ...]

Forty labels are made, half of them classes; those of the files are in a column `label`, or else in the last one. For a
made label it is known what it means; for one of a file, its type and its page tell, which is judged by eye.
"""

import argparse

import numpy as np
import pyarrow.parquet as pq

from kafeat.jobs.fit.labels import LabelSummary

C, N = "classification", "regression"


def made(rng):
    """Yield 40 names, labels, and what each means."""
    some = rng.integers
    skewed = [0.4, 0.3, 0.15, 0.1, 0.05]
    yield "0 and 1", some(0, 2, 500), C
    yield "0.0 and 1.0", some(0, 2, 500).astype(float), C
    yield "-1 and 1", 2 * some(0, 2, 500) - 1, C
    yield "1 in 200 rows", (np.arange(4_000) % 200 == 0).astype(int), C
    yield "1 and 2, 30 rows", some(1, 3, 30), C
    yield "10 and 20", 10 * some(1, 3, 300), C
    yield "three species, 150 rows", np.arange(150) % 3, C
    yield "three species, 60 rows", np.arange(60) % 3, C
    yield "digits 0-9", some(0, 10, 1_797), C
    yield "cover types 1-7", rng.choice(7, 20_000, p=[0.365, 0.487, 0.062, 0.005, 0.016, 0.03, 0.035]) + 1, C
    yield "stars 1-5", rng.choice(5, 2_000, p=skewed[::-1]) + 1, C
    yield "stars 1-5, 100 rows", np.repeat(np.arange(1, 6), [10, 10, 20, 25, 35]), C
    yield "grades 1-6", rng.choice(6, 800, p=[0.1, 0.25, 0.3, 0.2, 0.1, 0.05]) + 1, C
    yield "clusters 0-19", some(0, 20, 5_000), C
    yield "letters 1-26", some(1, 27, 20_000), C
    yield "codes 3, 7, 9", rng.choice([3, 7, 9], 900), C
    yield "HTTP status 200, 404, 500", rng.choice([200, 404, 500], 900, p=[0.8, 0.15, 0.05]), C
    yield "text of three", rng.choice(["a", "b", "c"], 300).astype(object), C
    yield "true and false", some(0, 2, 300).astype(bool), C
    yield "glass 1-7 without 4", np.repeat([1, 2, 3, 5, 6, 7], [70, 76, 17, 13, 9, 29]), C
    yield "grams in steps of 25", 25.0 * some(120, 170, 600), N
    yield "grams, twelve values", 25.0 * some(140, 152, 600), N
    yield "age 18-90", some(18, 91, 3_000), N
    yield "age 18-90, 50 rows", some(18, 91, 50), N
    yield "rings of abalone", rng.gamma(9.5, 1.05, 4_177).astype(int) + 1, N
    yield "counts of mean 0.5", rng.poisson(0.5, 3_000), N
    yield "counts of mean 3", rng.poisson(3.0, 3_000), N
    yield "counts of mean 3, 200 rows", rng.poisson(3.0, 200), N
    yield "counts of mean 50", rng.poisson(50.0, 3_000), N
    yield "claims of mean 0.1", rng.poisson(0.1, 20_000), N
    yield "bikes an hour", rng.negative_binomial(2, 0.01, 10_000), N
    yield "whole euros", np.round(rng.lognormal(10.0, 0.5, 1_000)), N
    yield "hundreds of euros", 100 * np.round(rng.lognormal(5.0, 0.3, 1_000)), N
    yield "years 1950-2010", some(1950, 2011, 2_000), N
    yield "per cent 0-100", np.round(rng.beta(2.0, 5.0, 2_000) * 100.0), N
    yield "points 0-20", rng.binomial(20, 0.6, 400), N
    yield "minutes in quarters", 15 * some(1, 9, 500), N
    yield "real numbers", rng.normal(size=500), N
    yield "tenths", np.round(rng.normal(size=500), 1), N
    yield "half stars 1.0-5.0", some(2, 11, 1_000) / 2.0, N


def taken(labels):
    """What a label is taken for, and the reason."""
    summary = LabelSummary()
    summary.add(labels)
    return summary.kind, summary.taken_for("auto", "{}").partition("(")[2].rpartition(")")[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*")
    wrong = 0
    print("| label | meant | taken for | |\n|---|---|---|---|")
    for name, labels, meant in made(np.random.default_rng(0)):
        kind, why = taken(labels)
        wrong += kind != meant
        print(f"| {name} | {meant} | {'' if kind == meant else 'WRONG: '}{kind} | {why} |")
    print(f"\n{wrong} of 40 made labels are wrong.\n\n| file | taken for | |\n|---|---|---|")
    for file in parser.parse_args().files:
        names = [name for name in pq.read_schema(file).names if name != "split"]
        column = pq.read_table(file, columns=["label" if "label" in names else names[-1]]).column(0)
        values = column.to_numpy()
        kind, why = taken(values.astype(float) if values.dtype.kind == "f" else values)
        print(f"| {file.rpartition('/')[2]} | {kind} | {why} |")


if __name__ == "__main__":
    main()
