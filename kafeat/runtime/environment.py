"""The machine: its cores, and what equal bytes depend on: library versions, and the processor kind of BLAS."""

from __future__ import annotations

import platform
from importlib.metadata import version

import joblib

from kafeat.errors import UsageError

NAMES = ("kafeat", "numpy", "scipy", "pyarrow", "joblib")


def versions() -> dict[str, str]:
    """Of kafeat and of what computes and writes for it."""
    return {name: version(name) for name in NAMES}


def machine() -> dict[str, str]:
    """Processor, Python and BLAS."""
    import numpy as np  # noqa: F401  # its BLAS is what is asked about
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


def count_jobs(jobs: int | None) -> int:
    """The number of threads: as asked, or all the cores that the process may use."""
    if jobs is None:
        return int(joblib.cpu_count())
    if jobs < 1:
        raise UsageError(f"jobs: expected at least 1, got {jobs}")
    return jobs
