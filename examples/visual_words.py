"""Bags of visual words: pictures as counts of their words. `visual_words.py TABLE PICTURE`

TABLE has a column for the counts of each word, a `label`, and nothing else but perhaps a `split`.
"""

import sys

import matplotlib
import pyarrow.parquet as pq

import kafeat

matplotlib.use("agg")
from matplotlib import pyplot

source, picture = sys.argv[1:]
rows = pq.read_table(source)
rows = rows.drop_columns(["split"]) if "split" in rows.column_names else rows
SHARES = {
    "kind": "normalize",
    "norm": "l1",
}  # a large picture has more words of every kind
RECIPES = {
    "chi2, additive": [
        SHARES,
        {"kind": "homogeneous", "kernel": "chi2", "order": 1},
    ],
    "chi2, exponentiated": [
        SHARES,
        {"kind": "nystroem", "kernel": "chi2", "n_components": 1024},
    ],
    "rbf": [
        SHARES,
        {"kind": "nystroem", "kernel": "rbf", "n_components": 1024},
    ],
}

names, scores = [], []
for name, steps in RECIPES.items():
    found = kafeat.evaluate(
        data=rows,
        label="label",
        config={"steps": steps},
        splits=3,
        exact_rows=100,
    )
    score = found["summary"][0]["score_map"]
    print(f"{name:20} accuracy {score['mean']:.3f} ± {score['deviation']:.3f}")
    names.append(name)
    scores.append((score["mean"], score["deviation"]))
raw = found["summary"][0]["score_raw"]
print(
    f"{'the raw columns':20} accuracy {raw['mean']:.3f} ± {raw['deviation']:.3f}"
)

figure, axes = pyplot.subplots(figsize=(5, 2.6), layout="constrained")
means, deviations = zip(*scores, (raw["mean"], raw["deviation"]), strict=True)
axes.barh(
    [*names, "raw columns"],
    means,
    xerr=deviations,
    capsize=3,
    color="#0b62a4",
    height=0.6,
)
axes.invert_yaxis()
axes.set(xlabel="accuracy (bars: deviation over 3 splits)")
figure.savefig(picture, dpi=110)
