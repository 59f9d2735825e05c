"""Measure the time of a command that has next to nothing to do."""

import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import kafeat
from speed.cases import PLAIN
from speed.contest import Contest, Line, Setting, Side
from speed.processes import KAFEAT, process

_IMPORT = "python -c 'import sklearn.kernel_approximation'"


def _prepare(setting: Setting) -> dict[str, Side]:
    X = np.random.default_rng(0).standard_normal((1000, 16))
    table = pa.table({f"x{i}": column for i, column in enumerate(X.T)})
    model, ten, out = (
        str(setting.folder / name) for name in ("ten.joblib", "ten.parquet", "ten-out.parquet")
    )
    kafeat.fit({"steps": [{"kind": "fourier", **PLAIN}]}, table).save(model)
    pq.write_table(table.slice(0, 10), ten)
    return {
        "help": process([KAFEAT, "--help"]),
        "ten rows": process([KAFEAT, "transform", "--model", model, ten, out]),
        "import": process([sys.executable, "-c", "import sklearn.kernel_approximation"]),
    }


_LINES = (
    Line("kafeat --help", _IMPORT, "help", "import", 0.05, share=True),
    Line("transform of 10 rows", _IMPORT, "ten rows", "import", 0.28, share=True),
)
CONTESTS = (Contest("start-up", _LINES, _prepare),)
