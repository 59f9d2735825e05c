"""The config that the parameters of an estimator stand for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kafeat.config import Config, load_config
from kafeat.errors import UsageError
from kafeat.sklearn.named_steps import plain, recipes_of

DEFAULT_STEPS = {"kind": "fourier", "n_components": 256}


def config_of(parameters: Mapping[str, Any], defaults: Mapping[str, Any]) -> Config:
    """All of it checked; `ConfigError` lists every mistake. The dtype is float64 where none is asked for."""
    if parameters["config"] is None:
        steps, dtype = parameters["steps"], parameters["dtype"]
        return load_config(
            {
                "seed": plain(parameters["seed"]),
                "dtype": "float64" if dtype is None else plain(dtype),
                "fit_rows": plain(parameters["fit_rows"]),
                "chunk_rows": plain(parameters["chunk_rows"]),
                "steps": recipes_of(DEFAULT_STEPS if steps is None else steps, list(parameters)),
            }
        )
    said = [
        name
        for name in ("steps", "seed", "dtype", "fit_rows", "chunk_rows")
        if parameters[name] is not defaults[name] and parameters[name] != defaults[name]
    ]
    if said:
        raise UsageError(f"config: expected it alone, as it says {', '.join(said)} itself, got both")
    return load_config(parameters["config"])
