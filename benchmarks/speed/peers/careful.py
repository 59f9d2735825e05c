"""A careful script: batches, float32, a writer without what costs time. SOURCE TARGET GAMMA COMPONENTS"""

import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from sklearn.kernel_approximation import RBFSampler

source, target, gamma, components = sys.argv[1:]
file, sampler = pq.ParquetFile(source), None
schema = pa.schema([pa.field(f"f{i}", pa.float32(), nullable=False) for i in range(int(components))])
with pq.ParquetWriter(
    target, schema, compression="none", use_dictionary=False, write_statistics=False
) as writer:
    for batch in file.iter_batches(16_384):
        X = np.column_stack([column.to_numpy() for column in batch.columns]).astype(np.float32)
        if sampler is None:
            sampler = RBFSampler(gamma=float(gamma), n_components=int(components), random_state=0).fit(X)
        Z = np.asfortranarray(sampler.transform(X))
        writer.write_table(pa.Table.from_arrays([pa.array(column) for column in Z.T], schema=schema))
