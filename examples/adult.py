"""Adult: predict a class from numbers and text. `adult.py TABLE PICTURE`

TABLE has the columns of the Adult table. Its last fifth is not fitted on.
"""

import sys
import tempfile

import matplotlib
import numpy as np
from pyarrow import csv
from pyarrow import parquet as pq

import kafeat

matplotlib.use("agg")
from matplotlib import pyplot

# What `kafeat tune adult.csv adult.yaml --label income --predictor logistic`
# chose, with more columns.
TEXTS = [
    "workclass",
    "education",
    "marital-status",
    "occupation",
    "native-country",
]
RECIPE = {
    "steps": [
        {
            "kind": "one_hot",
            "columns": TEXTS,
            "unknown": "ignore",
            "min_frequency": 0.01,
        },
        {"kind": "quantile"},
        {
            "kind": "nystroem",
            "kernel": "laplacian",
            "gamma": "0.3*median",
            "n_components": 256,
        },
        {"kind": "logistic"},
    ]
}

source, picture = sys.argv[1:]
rows = csv.read_csv(source)
cut = rows.num_rows * 4 // 5
model = kafeat.fit(RECIPE, rows.slice(0, cut), label="income")
with tempfile.TemporaryDirectory() as folder:
    csv.write_csv(rows.slice(cut), f"{folder}/new.csv")
    written = kafeat.predict(
        f"{folder}/new.csv", f"{folder}/new.parquet", model=model, keep="income"
    )
    predicted = pq.read_table(f"{folder}/new.parquet")

truth = np.array(predicted["income"].to_pylist())
right = np.mean(truth == np.array(predicted["prediction"].to_pylist()))
print(f"{written.rows:,} new rows: accuracy {right:.4f}")
always = max(np.mean(truth == name) for name in set(truth))
print(f"always the larger class:  {always:.4f}")

figure, axes = pyplot.subplots(figsize=(5, 3), layout="constrained")
for name in sorted(set(truth)):
    chance = predicted["probability_>50K"].to_numpy()[truth == name]
    axes.hist(chance, bins=20, range=(0, 1), alpha=0.6, label=f"income {name}")
axes.set(
    xlabel="predicted probability of an income above 50K", ylabel="new rows"
)
axes.legend(frameon=False)
figure.savefig(picture, dpi=110)
