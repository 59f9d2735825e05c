"""The script of docs/gallery/s3_dask.md: a folder of a real S3 server, on a real Dask cluster."""

import io
import os
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kafeat
from tests.engines.test_parts_on_dask import Cluster
from tests.zygote import ROOT

for package in ("distributed", "matplotlib"):
    pytest.importorskip(package)


@pytest.mark.slow
@pytest.mark.usefixtures("credentials")
def test_a_folder_of_s3_is_transformed_by_the_workers_of_dask(server, tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    tables = [pa.table({"a": rng.normal(size=300), "b": rng.normal(size=300)}) for _ in range(3)]
    fm = kafeat.fit({"steps": ["minmax"]}, tables[0])
    fm.save(tmp_path / "map.joblib")
    server.clear()
    for i, table in enumerate(tables):
        buffer = io.BytesIO()
        pq.write_table(table, buffer)
        server.put(f"in/{i}.parquet", buffer.getvalue())
    monkeypatch.setattr(
        "tests.engines.test_parts_on_dask.ENVIRONMENT", {**os.environ, "PYTHONPATH": str(ROOT)}
    )
    cluster = Cluster(tmp_path)
    try:
        words = [
            sys.executable, ROOT / "examples/s3_dask.py", server.uri("in"), server.uri("out"),
            tmp_path / "map.joblib", cluster.address, tmp_path / "parts.png",
        ]  # fmt: skip
        outputs = []
        for _ in range(2):
            done = subprocess.run(words, capture_output=True, text=True, timeout=120)
            assert done.returncode == 0, done.stderr
            outputs.append(done.stdout)
    finally:
        cluster.close()
    keys = server.keys()
    made = pq.read_table(io.BytesIO(server.ask("GET", "/out/1.parquet")))
    assert [f"out/{i}.parquet" in keys for i in range(3)] == [True] * 3
    assert "3 parts, 0 of them kept, 900 rows x 2 columns" in outputs[0]
    assert "3 parts, 3 of them kept" in outputs[1]
    np.testing.assert_array_equal(np.column_stack([made["f0"], made["f1"]]), fm.transform(tables[1]))
    assert (tmp_path / "parts.png").read_bytes().startswith(b"\x89PNG")
