"""From file to file: 400,000 rows of 54 columns of doubles to 1,024 features."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import kafeat
from speed.cases import PLAIN
from speed.contest import Contest, Line, Setting, Side, require
from speed.processes import KAFEAT, peer, process

D, WIDTH, GROUP = 1024, 54, 65_536
GAMMA = 0.5 / WIDTH
_JOB = "parquet to parquet, 400,000 × 54 → 1,024"
_NPY = "parquet to npy"


def write_input(path: Path, rows: int) -> None:
    """Normal numbers in row groups of 65,536."""
    rng = np.random.default_rng(0)
    schema = pa.schema([(f"x{i}", pa.float64()) for i in range(WIDTH)])
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, rows, GROUP):
            block = rng.standard_normal((WIDTH, min(GROUP, rows - start)))
            writer.write_table(pa.Table.from_arrays([pa.array(column) for column in block], schema=schema))


def fitted(folder: Path, source: Path) -> str:
    """The model file."""
    model = str(folder / "job.joblib")
    step = {"kind": "fourier", "gamma": GAMMA, "n_components": D, **PLAIN}
    kafeat.fit({"fit_rows": 2000, "steps": [step]}, str(source)).save(model)
    return model


def _prepare(setting: Setting) -> dict[str, Side]:
    folder = setting.folder
    rows = 40_000 if setting.quick else 400_000
    source = folder / f"in-{rows}.parquet"
    if not source.exists():
        write_input(source, rows)
    model = fitted(folder, source)
    made = {name: folder / f"{name}.out" for name in ("ours", "theirs", "kept")}
    ours = [KAFEAT, "transform", "--model", model, str(source), str(made["ours"]), "--output-format"]
    _check(process([*ours, "parquet"]), made["ours"], source, rows)
    made["ours"].replace(made["kept"])

    def scrap(name: str) -> None:
        made[name].unlink()

    def script(name: str, *more: object) -> Side:
        return process(peer(name, source, made["theirs"], *more), lambda: scrap("theirs"))

    return {
        "ours": process([*ours, "parquet"], lambda: scrap("ours")),
        "script float32": script("script.py", "float32", GAMMA, D),
        "script float64": script("script.py", "float64", GAMMA, D),
        "careful": script("careful.py", GAMMA, D),
        "read and write": script("read_and_write.py", made["kept"], "parquet"),
        "ours npy": process([*ours, "npy"], lambda: scrap("ours")),
        "read and write npy": script("read_and_write.py", made["kept"], "npy"),
    }


def _check(run: Side, made: Path, source: Path, rows: int) -> None:
    """The features of some rows against the exact kernel: off by 1/√(D/2) at most six times over."""
    run()
    with pq.ParquetFile(made) as file:
        assert file.metadata.num_rows == rows
        Z = next(file.iter_batches(200)).to_pandas().to_numpy()
    with pq.ParquetFile(source) as file:
        X = next(file.iter_batches(200)).to_pandas().to_numpy()
    squared = ((X[:, None] - X[None]) ** 2).sum(axis=-1)
    require(float(np.abs(Z @ Z.T - np.exp(-GAMMA * squared)).max()), 6.0 / np.sqrt(D / 2), "kafeat transform")


_LINES = (
    Line(_JOB, "pandas + scikit-learn, float32", "ours", "script float32", 11),
    Line(_JOB, "pandas + scikit-learn, float64", "ours", "script float64", 14),
    Line(_JOB + ", memory", "pandas + scikit-learn, float32", "ours", "script float32", 0.1, True, "peak_mb"),
    Line(_JOB, "batches, scikit-learn, tuned writer", "ours", "careful", 2.2),
    Line(_JOB, "reading, then writing the same bytes", "ours", "read and write", 0.9, share=True),
    Line(_NPY, "reading, then a plain write", "ours npy", "read and write npy", 1.1, share=True),
)
CONTESTS = (Contest("whole job", _LINES, _prepare),)
