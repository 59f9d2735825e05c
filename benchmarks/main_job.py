"""The main job on real files: fit, then transform through CSV, Parquet and NPY, with sizes, times and memory.

    python benchmarks/main_job.py DATA_FOLDER [NAME ...]

DATA_FOLDER holds NAME.parquet files with a `label` column and, if there is one, a `split` column.
"""

import os
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow.csv
import pyarrow.parquet as pq
from measure import measure

CONFIG = """
columns: {exclude: [label, split]}
steps:
  - kind: standardize
  - kind: fourier
    n_components: 1024
"""


def prepare(source: Path, folder: Path) -> dict[str, Path]:
    """The same rows as Parquet, CSV and NPY (features only)."""
    table = pq.read_table(source)
    paths = {suffix: folder / f"{source.stem}.{suffix}" for suffix in ("parquet", "csv", "npy")}
    pq.write_table(table, paths["parquet"])
    pyarrow.csv.write_csv(table, paths["csv"])
    features = table.drop_columns([name for name in ("label", "split") if name in table.column_names])
    np.save(paths["npy"], np.column_stack([column.to_numpy() for column in features.columns]))
    return paths


def report(head: str, given: Path, made: str, command: list[str]) -> None:
    """Run a command and print its row of the table."""
    found = measure(command)
    assert found["code"] == 0, command
    sizes = [os.path.getsize(path) / 1e6 for path in (given, made)]
    figures = f"{sizes[0]:.1f} | {sizes[1]:.1f} | {found['seconds']:.2f} | {found['peak_mib']:.0f}"
    print(f"| {head} | {figures} |", flush=True)


def main() -> None:
    data, names = Path(sys.argv[1]), sys.argv[2:] or ["letter", "mnist", "ijcnn1"]
    kafeat = str(Path(sys.executable).with_name("kafeat"))
    print(
        "| data | rows × features | step | in MB | out MB | seconds | peak MiB |\n|---|---|---|---|---|---|---|"
    )
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work)
        (folder / "c.yaml").write_text(CONFIG)
        for name in names:
            paths = prepare(data / f"{name}.parquet", folder)
            rows, width = np.load(paths["npy"], mmap_mode="r").shape
            model = str(folder / f"{name}.joblib")

            head = f"{name} | {rows:,} × {width}"
            fit = [kafeat, "fit", "--config", str(folder / "c.yaml"), str(paths["parquet"]), model]
            report(f"{head} | fit", paths["parquet"], model, fit)
            for given in ("parquet", "csv", "npy"):
                for made in ("parquet", "npy", "csv"):
                    if made == "csv" and given != "csv":
                        continue
                    target = str(folder / f"out.{made}")
                    run = [kafeat, "transform", "--model", model, str(paths[given]), target, "--no-fsync"]
                    report(f"{head} | {given} to {made}", paths[given], target, run)


if __name__ == "__main__":
    main()
