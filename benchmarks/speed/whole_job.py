"""From file to file: 400,000 rows of 54 columns of doubles to 1,024 features."""

from collections.abc import Callable
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
    # The scripts that it is compared to leave flushing to the system as well.
    ours = [
        KAFEAT,
        "transform",
        "--model",
        model,
        str(source),
        str(made["ours"]),
        "--no-fsync",
        "--output-format",
    ]
    process([*ours, "parquet"])()
    made["ours"].replace(made["kept"])
    judge = _Judge(source, rows)

    def side(command: list[str], out: str, read: Callable[[Path], np.ndarray] | None) -> Side:
        seen: list[Path] = []

        def after() -> None:
            if not seen:
                judge(made[out], read, command[1])
                seen.append(made[out])
            made[out].unlink()

        return process(command, after)

    def script(
        name: str, *more: object, read: Callable[[Path], np.ndarray] | None = _first_of_parquet
    ) -> Side:
        return side(peer(name, source, made["theirs"], *more), "theirs", read)

    return {
        "ours": side([*ours, "parquet"], "ours", _first_of_parquet),
        "script float32": script("script.py", "float32", GAMMA, D),
        "script float64": script("script.py", "float64", GAMMA, D),
        "careful": script("careful.py", GAMMA, D),
        "read and write": script("read_and_write.py", made["kept"], "parquet", read=None),
        "ours npy": side([*ours, "npy"], "ours", _first_of_npy),
        "read and write npy": script("read_and_write.py", made["kept"], "npy", read=None),
    }


_CHECKED = 200


def _first_of_parquet(path: Path) -> np.ndarray:
    with pq.ParquetFile(path) as file:
        return next(file.iter_batches(_CHECKED)).to_pandas().to_numpy()


def _first_of_npy(path: Path) -> np.ndarray:
    return np.load(path, mmap_mode="r")[:_CHECKED]


class _Judge:
    """Check that an output is complete, and right on its first rows."""

    def __init__(self, source: Path, rows: int) -> None:
        X = _first_of_parquet(source)
        squared = ((X[:, None] - X[None]) ** 2).sum(axis=-1)
        self._exact, self._rows = np.exp(-GAMMA * squared), rows

    def __call__(self, made: Path, read: Callable[[Path], np.ndarray] | None, what: str) -> None:
        size = self._rows * D * 4
        if made.stat().st_size < size:
            raise AssertionError(f"{what}: expected at least {size:,} bytes, got {made.stat().st_size:,}")
        if read is not None:
            Z = np.asarray(read(made), dtype=np.float64)
            # The standard error of every entry is at most √(1.5/D), and that of the root of their mean square too.
            error = np.sqrt(np.mean((Z @ Z.T - self._exact) ** 2))
            require(float(error), 2.0 * np.sqrt(1.5 / D), what)


_LINES = (
    Line(_JOB, "pandas + scikit-learn, float32", "ours", "script float32", 17),
    Line(_JOB, "pandas + scikit-learn, float64", "ours", "script float64"),
    Line(_JOB + ", memory", "pandas + scikit-learn, float32", "ours", "script float32", 0.1, True, "peak_mb"),
    Line(
        _JOB + ", memory", "pandas + scikit-learn, float64", "ours", "script float64", None, True, "peak_mb"
    ),
    Line(_JOB, "batches, scikit-learn, tuned writer", "ours", "careful", 4.3),
    Line(_JOB, "reading, then writing the same bytes", "ours", "read and write", 0.9, share=True),
    Line(_NPY, "reading, then a plain write", "ours npy", "read and write npy", 0.8, share=True),
)
CONTESTS = (Contest("whole job", _LINES, _prepare),)
