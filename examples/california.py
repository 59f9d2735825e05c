"""House prices in California: a number from eight columns. `california.py TABLE PICTURE`

TABLE has the columns of the California housing table, with `medianHouseValue` as the label.
"""

import sys

import matplotlib
import numpy as np
import pyarrow.parquet as pq

import kafeat

matplotlib.use("agg")
from matplotlib import pyplot

RECIPE = {
    "columns": {"exclude": ["medianHouseValue", "split"]},
    "steps": [
        {"kind": "quantile"},
        {"kind": "metric"},
        {"kind": "nystroem", "kernel": "laplacian", "n_components": 512},
        {"kind": "ridge"},
    ],
}

source, picture = sys.argv[1:]
rows = pq.read_table(source)
shuffled = rows.take(np.random.default_rng(0).permutation(rows.num_rows))
cut = rows.num_rows * 4 // 5
train, test = shuffled.slice(0, cut), shuffled.slice(cut)
model = kafeat.fit(RECIPE, train, label="medianHouseValue")
predicted, truth = model.predict(test), test["medianHouseValue"].to_numpy()
linear = kafeat.fit(
    RECIPE | {"steps": [{"kind": "standardize"}, {"kind": "ridge"}]},
    train,
    label="medianHouseValue",
)


def r2(guess: np.ndarray) -> float:
    return 1.0 - np.mean((truth - guess) ** 2) / np.var(truth)


print(
    f"R² on {len(truth):,} districts: {r2(predicted):.3f};",
    f"ridge on the columns: {r2(linear.predict(test)):.3f}",
)

figure, axes = pyplot.subplots(
    1, 2, figsize=(8, 3.4), sharex=True, sharey=True, layout="constrained"
)
for one, value, title in (
    (axes[0], truth, "true value"),
    (axes[1], predicted, "prediction"),
):
    dots = one.scatter(
        test["longitude"],
        test["latitude"],
        c=value,
        s=2,
        vmin=truth.min(),
        vmax=truth.max(),
        cmap="viridis",
    )
    one.set(title=title, xlabel="longitude")
axes[0].set_ylabel("latitude")
figure.colorbar(dots, ax=axes, label="median house value")
figure.savefig(picture, dpi=110)
