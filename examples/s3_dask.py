"""A folder of an object store on a Dask cluster: `s3_dask.py IN OUT MODEL SCHEDULER PICTURE`

IN and OUT are folders, such as s3://bucket/rows and s3://bucket/features. The workers read and write them.
"""

import json
import sys

import matplotlib
import numpy as np
from pyarrow import fs

import kafeat

matplotlib.use("agg")
from matplotlib import pyplot

source, target, model, scheduler, picture = sys.argv[1:]
done = kafeat.transform(
    source,
    target,
    model=model,
    engine="dask",
    scheduler=scheduler,
    resume=True,
    output_format="parquet",
)
print(
    f"{done.path}: {done.parts} parts, {done.kept} of them kept,",
    f"{done.rows:,} rows x {done.columns} columns",
)

# The manifest has a line for each part.
store, path = (
    fs.FileSystem.from_uri(target)
    if "://" in target
    else (fs.LocalFileSystem(), target)
)
with store.open_input_stream(f"{path}/_kafeat.json") as file:
    parts = json.loads(file.read())["parts"]
seconds = np.array([part["seconds"] for part in parts])
print(
    f"the parts took {seconds.sum():.1f} s together,",
    f"and the run {done.seconds:.1f} s",
)

figure, axes = pyplot.subplots(figsize=(5, 2.4), layout="constrained")
axes.bar(range(len(parts)), seconds, color="#0b62a4")
axes.axhline(
    np.median(seconds),
    ls="--",
    color="#c2550a",
    label=f"median {np.median(seconds):.2f} s",
)
axes.set(xlabel="part", ylabel="seconds of its worker")
axes.legend(frameon=False)
figure.savefig(picture, dpi=110)
