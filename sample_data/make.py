"""Write the sample data in every format from scikit-learn's bundled digits: run once, its outputs are committed."""

from __future__ import annotations

import gzip
import io
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from sklearn.datasets import load_digits

HERE = Path(__file__).parent

digits = load_digits()
pixels = digits.data.astype(np.uint8)
columns = {"label": digits.target.astype(np.int8)}
columns |= {f"p{i:02d}": pixels[:, i] for i in range(pixels.shape[1])}
table = pa.table(columns)

np.save(HERE / "digits.npy", pixels)
pq.write_table(table, HERE / "digits.parquet", compression="zstd")
buffer = io.BytesIO()
pa.csv.write_csv(table, buffer, pa.csv.WriteOptions(quoting_style="needed"))
text = buffer.getvalue().replace(b'"', b"")  # Arrow quotes the header
(HERE / "digits.csv").write_bytes(text)
with open(HERE / "digits.csv.gz", "wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as packed:
    shutil.copyfileobj(io.BytesIO(text), packed)
