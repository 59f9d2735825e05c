"""The picture of README: test errors over columns, from the records of benchmarks/scores.py.

    python benchmarks/score_picture.py RECORDS.json docs/pictures/scores.svg --tables letter,eeg,covtype20k

The records need the sides RBFSampler, Nystroem, tune and boosting, as benchmarks/results/scores_over_columns.json has.
"""

import argparse
import json
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

SIDES = {
    "RBFSampler": ("scikit-learn's RBFSampler", "#9aa5b1", "o"),
    "Nystroem": ("scikit-learn's Nystroem", "#52606d", "o"),
    "tune": ("kafeat tune", "#d64545", "D"),
}


def mean_errors(records, table, side):
    """Return the mean error over the seeds by the number of columns, which is 0 for boosting."""
    found = {}
    for one in records:
        if (one["table"], one["side"]) == (table, side):
            found.setdefault(one["width"], []).append(one["error"])
    return {width: float(np.mean(errors)) for width, errors in sorted(found.items())}


def draw(records, tables, path):
    mpl.rcParams.update({"svg.hashsalt": "kafeat", "font.size": 9})
    figure = Figure(figsize=(8.4, 2.9), layout="constrained")
    panels = figure.subplots(1, len(tables), squeeze=False)[0]
    for axes, table in zip(panels, tables, strict=True):
        widths = set()
        for side, (name, colour, marker) in SIDES.items():
            errors = mean_errors(records, table, side)
            widths.update(errors)
            axes.plot(errors.keys(), errors.values(), color=colour, marker=marker, markersize=4, label=name)
        boosting = mean_errors(records, table, "boosting")[0]
        axes.axhline(boosting, color="#323f4b", linewidth=1.0, linestyle="--", label="gradient boosting")
        axes.set(title=table, xscale="log", xlabel="columns", xticks=sorted(widths),
                 xticklabels=[str(width) for width in sorted(widths)])  # fmt: skip
        axes.minorticks_off()
        axes.set_ylim(0.0, 1.05 * axes.get_ylim()[1])
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("test error")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
    figure.savefig(path, metadata={"Date": None})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("records", type=Path)
    parser.add_argument("picture", type=Path)
    parser.add_argument("--tables", required=True)
    args = parser.parse_args()
    draw(json.loads(args.records.read_text()), args.tables.split(","), args.picture)


if __name__ == "__main__":
    main()
