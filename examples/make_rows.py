"""Made-up rows of ten numbers and a label that is no linear function of them: `make_rows.py ROWS FILE.csv`"""

import sys

import numpy as np
import pyarrow as pa
from pyarrow import csv

rows, target = int(sys.argv[1]), sys.argv[2]
rng = np.random.default_rng(0)
names = [f"x{i}" for i in range(10)] + ["y"]
schema = pa.schema([(name, pa.float64()) for name in names])
with csv.CSVWriter(target, schema) as writer:
    for start in range(0, rows, 100_000):
        X = rng.normal(size=(min(100_000, rows - start), 10)).round(4)
        y = (
            np.sin(2.0 * X[:, 0]) * X[:, 1]
            + np.abs(X[:, 2])
            + 0.3 * rng.normal(size=len(X))
        )
        writer.write(pa.table([*X.T, y.round(4)], schema=schema))
