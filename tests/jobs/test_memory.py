"""Memory is flat: ten times the rows take no more of it. Measured as the operating system counts it."""

import json
import subprocess
import sys

import numpy as np
import pytest

import kafeat
from tests.zygote import KAFEAT, ROOT

MEASURE = ROOT / "benchmarks" / "measure.py"
D, WIDTH = 256, 16


def peak(*command):
    """Peak resident MiB of the tool, started from a small process: a child's peak begins at its parent's."""
    words = [sys.executable, "-S", "-E", MEASURE, *command]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    report = json.loads(done.stdout)
    assert report["code"] == 0, done.stderr
    return report["peak_mib"]


@pytest.mark.parametrize(("given", "made"), [("npy", "parquet"), ("parquet", "npy"), ("csv", "parquet")])
@pytest.mark.slow
def test_peak_memory_is_flat_when_rows_grow_fivefold(tmp_path, given, made):
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet as pq

    # At 80,000 rows every buffer of the pipeline is in use: chunks of 8,192 rows, and a row group of 64 MiB.
    peaks = []
    for rows in (80_000, 400_000):
        X = np.random.default_rng(0).integers(0, 100, (rows, WIDTH)).astype(np.float32)
        table = pa.table({f"c{i}": X[:, i] for i in range(WIDTH)})
        source = tmp_path / f"in.{given}"
        if given == "npy":
            np.save(source, X)
        elif given == "parquet":
            pq.write_table(table, source, row_group_size=30_000)
        else:
            pyarrow.csv.write_csv(table, source)
        model = tmp_path / "m.joblib"
        kafeat.fit({"steps": [{"kind": "fourier", "n_components": D, "gamma": 1e-4}]}, X[:2000]).save(model)
        out = tmp_path / f"out.{made}"
        peaks.append(peak(KAFEAT, "transform", "--model", str(model), str(source), str(out)))
    # The larger output is 312 MiB above the smaller; memory-mapped pages of it, which the system may drop, do not count
    # as growth beyond a few chunks (8 MiB each) and the allocator's play.
    assert peaks[1] - peaks[0] < 60, peaks
