"""A week of nights: each adds a file, and one of them is not like the others. `nightly.py FOLDER PICTURE`

Every night `kafeat.transform` makes what is new and keeps the rest. `max_drift` refuses the bad night.
"""

import sys
from pathlib import Path

import matplotlib
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import kafeat

matplotlib.use("agg")
from matplotlib import pyplot

folder, picture = Path(sys.argv[1]), sys.argv[2]
rng = np.random.default_rng(0)
(folder / "incoming").mkdir(parents=True)


def sensors(rows: int, scale: float = 1.0) -> pa.Table:
    heat = scale * rng.normal(20, 5, rows)
    return pa.table(
        {
            "id": np.arange(rows),
            "pressure": rng.normal(1013, 8, rows),
            "heat": heat,
        }
    )


recipe = {
    "columns": {"exclude": ["id"]},
    "steps": [
        {"kind": "standardize"},
        {"kind": "nystroem", "n_components": 64},
    ],
}
known = sensors(5000)
kafeat.fit(recipe, known).save(folder / "map.joblib")
low, high = np.min(known["heat"]), np.max(known["heat"])

shares = {}
for night in ("Mon", "Tue", "Wed", "Thu", "Fri"):
    file = folder / f"incoming/{night}.parquet"
    # on Thursday somebody has changed the unit
    rows = sensors(1000, 1.8 if night == "Thu" else 1.0)
    pq.write_table(rows, file)
    shares[night] = np.mean(
        (rows["heat"].to_numpy() < low) | (rows["heat"].to_numpy() > high)
    )
    try:
        done = kafeat.transform(
            folder / "incoming",
            folder / "features",
            model=folder / "map.joblib",
            keep="id",
            resume=True,
            max_drift=0.05,
        )
        print(
            f"{night}: {done.parts} parts, {done.parts - done.kept} of them new"
        )
    except kafeat.errors.KafeatError as refused:
        reason = str(refused).splitlines()[0].rpartition("/")[2]
        print(f"{night}: exit code {refused.exit_code}: {reason}")
        # to be looked at by a person
        file.rename(folder / f"{night}.refused.parquet")

figure, axes = pyplot.subplots(figsize=(5, 2.4), layout="constrained")
axes.bar([*shares], [*shares.values()], color="#0b62a4", width=0.6)
axes.axhline(0.05, ls="--", color="#c2550a", label="max_drift = 0.05")
axes.set(ylabel="share outside the range")
axes.legend(frameon=False, loc="upper left")
figure.savefig(picture, dpi=110)
