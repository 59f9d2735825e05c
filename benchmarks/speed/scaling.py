"""Two jobs against one, for a map that computes more than it moves."""

import numpy as np

import kafeat
from speed.cases import PLAIN
from speed.contest import Contest, Line, Setting, Side, timed

_STEP = {"kind": "fourier", "gamma": 0.5 / 784, "n_components": 4096, **PLAIN}


def _prepare(setting: Setting) -> dict[str, Side]:
    if setting.cores < 2:
        return {}
    rows = 8_192 if setting.quick else 32_768
    X = np.random.default_rng(1).standard_normal((rows, 784), dtype="float32")
    fm = kafeat.fit({"steps": [_STEP]}, X[:4096])
    if not np.array_equal(fm.transform(X[:3000], jobs=1), fm.transform(X[:3000], jobs=2)):
        raise AssertionError("expected the same bits for one job and for two")
    return {
        "2 jobs": timed(lambda: fm.transform(X, jobs=2)),
        "1 job": timed(lambda: fm.transform(X, jobs=1)),
    }


_LINE = Line("2 jobs, fourier d = 784, D = 4,096, dense", "1 job", "2 jobs", "1 job", 1.85)
CONTESTS = (Contest("scaling", (_LINE,), _prepare),)
