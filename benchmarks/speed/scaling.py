"""Two jobs against one."""

import numpy as np

import kafeat
from speed.cases import PLAIN
from speed.contest import Contest, Line, Setting, Side, timed

_TARGET = 1.7


def contest(d: int, D: int, rows: int) -> Contest:
    """The contest of Fourier features with fresh outputs."""
    job = f"2 jobs, fourier d = {d}, D = {D:,}, {rows:,} rows"
    line = Line(job, "1 job", "2 jobs", "1 job", _TARGET)
    return Contest(f"scaling: {job}", (line,), lambda setting: _prepare(d, D, rows, setting))


def _prepare(d: int, D: int, rows: int, setting: Setting) -> dict[str, Side]:
    if setting.cores < 2:
        return {}
    step = {"kind": "fourier", "gamma": 0.5 / d, "n_components": D, **PLAIN}
    X = np.random.default_rng(1).standard_normal((rows, d), dtype="float32")
    fm = kafeat.fit({"steps": [step]}, X[:4096])
    if not np.array_equal(fm.transform(X[:3000], jobs=1), fm.transform(X[:3000], jobs=2)):
        raise AssertionError("expected the same bits for one job and for two")
    return {
        "2 jobs": timed(lambda: fm.transform(X, jobs=2)),
        "1 job": timed(lambda: fm.transform(X, jobs=1)),
    }


CONTESTS = (contest(54, 1024, 20_000), contest(54, 1024, 200_000), contest(784, 4096, 32_768))
