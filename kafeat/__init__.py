"""Explicit kernel features for tables of numbers.

import kafeat
fm = kafeat.fit({"steps": [{"kind": "standardize"}, {"kind": "fourier"}]}, X)
Z = fm.transform(X)            # Z @ Z.T ≈ fm.exact_kernel(X)
fm.save("map.joblib")
"""

from __future__ import annotations

from kafeat._version import __version__

# Type checkers treat this as True. Importing `typing` takes long, and at this point Ctrl-C would show a traceback.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from kafeat.config import Config
    from kafeat.jobs.dataset.api import predict, transform
    from kafeat.jobs.fit.fit import fit
    from kafeat.model.feature_map import FeatureMap
    from kafeat.model.load import load
    from kafeat.study.evaluate import evaluate
    from kafeat.study.tune.tune import tune

__all__ = ["Config", "FeatureMap", "__version__", "evaluate", "fit", "load", "predict", "transform", "tune"]

_HOMES = {
    "Config": "kafeat.config",
    "FeatureMap": "kafeat.model.feature_map",
    "load": "kafeat.model.load",
    "fit": "kafeat.jobs.fit.fit",
    "evaluate": "kafeat.study.evaluate",
    "tune": "kafeat.study.tune.tune",
    "transform": "kafeat.jobs.dataset.api",
    "predict": "kafeat.jobs.dataset.api",
}


def __getattr__(name: str) -> Any:
    # Imported on first use: `kafeat --help` must not wait for NumPy.
    if name in _HOMES:
        from importlib import import_module

        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'kafeat' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
