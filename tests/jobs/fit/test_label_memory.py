"""Long labels take the memory of their different texts: two of 200,000 letters, in a file of some kilobytes."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.jobs.test_memory import KAFEAT, peak

ROWS, LETTERS = 3000, 200_000
CONFIG = "columns: {include: [a, b]}\nsteps: [{kind: standardize}, {kind: ridge}]\n"
CODED = "columns: {include: [a, y]}\nsteps: [{kind: one_hot, columns: [y]}]\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("long")
    X = np.random.default_rng(0).normal(size=(ROWS, 2))
    words = pa.array(["a" * LETTERS, "b" * LETTERS])
    y = pa.DictionaryArray.from_arrays(pa.array((X[:, 0] > 0).astype(np.int32)), words).dictionary_decode()
    split = np.resize(["train", "train", "test"], ROWS)
    pq.write_table(pa.table({"a": X[:, 0], "b": X[:, 1], "y": y, "split": split}), folder / "in.parquet")
    (folder / "ridge.yaml").write_text(CONFIG)
    (folder / "coded.yaml").write_text(CODED)
    return folder


@pytest.mark.slow
def test_long_labels_take_little_memory(folder):
    source, model = str(folder / "in.parquet"), str(folder / "m.joblib")
    label, short = ["--label", "y", "--split", "split"], ["--columns", "16", "--trials", "2", "-q"]
    peaks = [
        peak(KAFEAT, "fit", "--config", str(folder / "ridge.yaml"), source, model, *label),
        peak(KAFEAT, "evaluate", "--model", model, source, "--all-rows", "-q"),
        peak(KAFEAT, "fit", "--config", str(folder / "coded.yaml"), source, str(folder / "c.joblib")),
        peak(KAFEAT, "tune", source, str(folder / "best.yaml"), *label, *short),
    ]
    # All rows as plain text are 600 MB, and in an array of fixed width 2.4 GB; the command alone takes some 130.
    assert max(peaks) < 300, peaks
