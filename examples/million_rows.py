"""From a CSV of any size to predictions: `million_rows.py FILE.csv PICTURE`

FILE.csv has a column `y`. The script counts seconds, and the most memory that the process ever had.
"""

import resource
import sys
import tempfile
import time

import matplotlib

import kafeat

matplotlib.use("agg")
from matplotlib import pyplot

RECIPE = {
    "steps": [
        {"kind": "standardize"},
        {"kind": "metric"},
        {"kind": "nystroem", "n_components": 256},
        {"kind": "ridge"},
    ]
}

source, picture = sys.argv[1:]
seconds = {}


def took(what: str, since: float) -> float:
    seconds[what] = time.perf_counter() - since
    print(f"{what:32} {seconds[what]:6.1f} s")
    return time.perf_counter()


with tempfile.TemporaryDirectory() as folder:
    now = time.perf_counter()
    model = kafeat.fit(RECIPE, source, label="y")
    now = took("fit map and model on all rows", now)
    written = kafeat.predict(
        source, f"{folder}/predictions.parquet", model=model, keep="y"
    )
    now = took("predict all rows", now)
    features = kafeat.transform(
        source, f"{folder}/features.parquet", model=model, features=True
    )
    took("write 256 features of all rows", now)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (
    2**20 if sys.platform == "linux" else 2**30
)
print(f"{written.rows:,} rows; at most {peak:.1f} GiB of memory")

figure, axes = pyplot.subplots(figsize=(6, 1.9), layout="constrained")
axes.barh([*seconds], [*seconds.values()], color="#0b62a4", height=0.6)
axes.invert_yaxis()
axes.set(xlabel=f"seconds for {written.rows:,} rows, CSV to Parquet")
figure.savefig(picture, dpi=110)
