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

# A mixed table: numbers with gaps, text with rare words, times. Made up, with an hour and a weather that matter.
rng = np.random.default_rng(0)
rows = 800
times = np.datetime64("2023-01-01T00:00", "m") + np.sort(rng.integers(0, 2 * 365 * 24 * 60, rows))
hours = times.astype(np.int64) / 60 % 24
year = 2 * np.pi * (times - np.datetime64("2023-01-01", "m")).astype(np.int64) / (365.25 * 24 * 60)
temperature = 10 - 9 * np.cos(year) - 4 * np.cos(2 * np.pi * (hours - 3) / 24) + rng.normal(size=rows) * 3
wind = rng.gamma(2.0, 6.0, rows)
weather = rng.choice(["clear", "cloudy", "rain", "snow", "hail"], rows, p=[0.5, 0.3, 0.17, 0.02, 0.01])
station = rng.choice(["Harbour", "Museum", "Park", "Station"], rows)
commute = np.exp(-(((hours - 8) / 1.5) ** 2)) + np.exp(-(((hours - 17.5) / 2) ** 2))
rate = 4 + 30 * commute + 0.8 * np.maximum(temperature, 0) * (station == "Park") - 0.2 * wind
rate *= np.where(np.isin(weather, ["clear", "cloudy"]), 1.0, 0.4)
with open(HERE / "rentals.csv", "w", encoding="ascii") as file:
    file.write("time,station,weather,temperature,wind_mean,wind_gust,income\n")
    for i, count in enumerate(rng.poisson(np.maximum(rate, 0.5))):
        gap = rng.random(2) < (0.06, 0.1)
        degrees = "" if gap[0] else f"{temperature[i]:.1f}"
        winds = "," if gap[1] else f"{wind[i]:.1f},{wind[i] * rng.uniform(1.2, 2):.1f}"
        file.write(
            f"{times[i]},{station[i]},{weather[i]},{degrees},{winds},{2.5 * count + rng.gamma(2.0):.2f}\n"
        )
