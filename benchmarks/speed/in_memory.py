"""Arrays in, arrays out: each map beside scikit-learn's, and beside what the machine must spend on it."""

from collections.abc import Callable
from typing import Any

import numpy as np

import kafeat
from speed import references
from speed.cases import CASES, Case
from speed.contest import Contest, Line, Setting, Side, require, timed

_FIT_ROWS = 4096
_QUICK = 6
"""By how much a quick run has fewer rows."""


def contest(case: Case) -> Contest:
    """The contest of a case; its first peer is the one that the target is about."""
    lines = []
    for i, name in enumerate(case.peers):
        target, limit = (case.target, "limit") if i == 0 else (None, None)
        lines.append(Line(case.name, name, "kafeat", name, target, limit=limit))
    return Contest(f"memory: {case.name}", tuple(lines), lambda setting: _prepare(case, setting))


def _prepare(case: Case, setting: Setting) -> dict[str, Side]:
    rng = np.random.default_rng(1)
    shape = (max(case.rows // (_QUICK if setting.quick else 1), 2048), case.d)
    X = (rng.random if case.positive else rng.standard_normal)(shape, dtype=case.dtype)
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
    sides["limit"] = lambda: case.limit.seconds(len(X), np.dtype(case.dtype), setting.cores)
    return sides


def _call(fitted: Any, X: np.ndarray, cores: int) -> Callable[[], object]:
    if isinstance(fitted, kafeat.FeatureMap):
        return lambda: fitted.transform(X, jobs=cores)
    return lambda: fitted.transform(X)


CONTESTS = tuple(contest(case) for case in CASES)
