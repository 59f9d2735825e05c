"""The environment of this process: processor cores, library versions, and the processor type that BLAS uses."""

from __future__ import annotations

import platform
from importlib.metadata import version

import joblib

from kafeat.errors import UsageError

NAMES = ("kafeat", "numpy", "scipy", "pyarrow", "joblib")


def versions() -> dict[str, str]:
    """Return the versions of kafeat and of the libraries that compute and write for it."""
    return {name: version(name) for name in NAMES}


def machine() -> dict[str, str]:
    """Return processor, Python and BLAS."""
    import numpy as np  # noqa: F401  # loads its BLAS, which is reported
    from threadpoolctl import threadpool_info

    blas = sorted(
        {f"{pool['internal_api']} {pool['version']} for {pool.get('architecture', '?')}"
         for pool in threadpool_info() if pool["user_api"] == "blas"}
    )  # fmt: skip
    return {
        "processor": platform.machine(),
        "python": platform.python_version(),
        "blas": "; ".join(blas) or "unknown",
    }


def describe() -> list[str]:
    """Return lines about versions, machine, and the core that computes."""
    from kafeat.compiled.library import describe as describe_core

    computer = machine()
    return [
        "versions: " + ", ".join(f"{name} {number}" for name, number in versions().items()),
        f"machine: {computer['processor']}, Python {computer['python']}, BLAS {computer['blas']}",
        f"core: {describe_core()}",
    ]


def count_jobs(jobs: int | None) -> int:
    """Return the number of threads: `jobs`, or all cores that the process may use."""
    if jobs is None:
        return int(joblib.cpu_count())
    if jobs < 1:
        raise UsageError(f"jobs: expected at least 1, got {jobs}")
    return jobs
