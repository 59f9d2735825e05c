"""Arrays in, arrays out: each map beside scikit-learn's, on 20,000 rows and on many."""

from collections.abc import Callable
from typing import Any

import numpy as np

import kafeat
from speed import references
from speed.cases import CASES, Case
from speed.contest import Contest, Line, Setting, Side, require, timed

_FIT_ROWS = 4096
_FEW = 20_000


def contest(case: Case, rows: int, full_only: bool) -> Contest:
    """The contest of a case; its first peer is the one that the target is about."""
    job = f"{case.name}, {rows:,} rows"
    lines = [
        Line(job, name, "kafeat", name, case.target if i == 0 else None) for i, name in enumerate(case.peers)
    ]
    return Contest(f"memory: {job}", tuple(lines), lambda setting: _prepare(case, rows, setting), full_only)


def _prepare(case: Case, rows: int, setting: Setting) -> dict[str, Side]:
    rng = np.random.default_rng(1)
    X = (rng.random if case.positive else rng.standard_normal)((rows, case.d), dtype=case.dtype)
    fit_on = X[:_FIT_ROWS]
    few = references.rows(case.d, case.positive, case.dtype)

    fm = kafeat.fit({"dtype": case.dtype, "seed": 0, "steps": [dict(case.step)]}, fit_on)
    sides: dict[str, Side] = {}
    makers = {"kafeat": lambda _: fm, **case.peers}
    for name, make in makers.items():
        fitted = make(fit_on)
        error = references.error(fitted.transform(few), case.reference(fitted, few))
        closer = case.closer if name == "kafeat" else None
        require(error, closer or case.tolerance, f"{case.name}: {name}")
        sides[name] = timed(_call(fitted, X, setting.cores))
    return sides


def _call(fitted: Any, X: np.ndarray, cores: int) -> Callable[[], object]:
    if isinstance(fitted, kafeat.FeatureMap):
        return lambda: fitted.transform(X, jobs=cores)
    return lambda: fitted.transform(X)


CONTESTS = tuple(
    contest(case, rows, rows > _FEW) for case in CASES for rows in sorted({min(_FEW, case.rows), case.rows})
)
"""All contests, one after the other."""
