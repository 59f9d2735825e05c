"""Nothing computed: read the input, then write as many bytes as KEPT has. SOURCE TARGET KEPT parquet|npy

As many bytes, that is, with the same writer and in the same row groups; one block of a constant stands for all of them,
as uncompressed numbers cost the same whatever they are.
"""

import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

source, target, kept, form = sys.argv[1:]
pq.ParquetFile(source).read()
columns = len(pq.ParquetFile(kept).schema_arrow)
rows = pq.ParquetFile(kept).metadata.num_rows
height = 16_384
block = np.full((columns, height), 0.5, dtype=np.float32)
if form == "npy":
    with open(target, "wb") as file:
        flat = block.reshape(-1)
        for start in range(0, rows, height):
            file.write(flat[: min(height, rows - start) * columns].data)
else:
    schema = pq.ParquetFile(kept).schema_arrow
    options = {
        "compression": "none",
        "use_dictionary": False,
        "write_statistics": False,
        "data_page_size": 8 << 20,
    }
    with pq.ParquetWriter(target, schema, **options) as writer:
        for start in range(0, rows, height):
            stop = min(height, rows - start)
            writer.write_table(
                pa.Table.from_arrays([pa.array(column[:stop]) for column in block], schema=schema),
                row_group_size=height,
            )
