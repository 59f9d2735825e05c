"""Describe the environment of this process: processor cores, library versions, BLAS and compiled functions."""

from __future__ import annotations

import math
import os
import platform
import shlex
import sys
import time
from pathlib import Path
from typing import Any

from kafeat.errors import UsageError, without_secrets

NAMES = ("kafeat", "numpy", "scipy", "pyarrow", "joblib")


_CONTROL_GROUPS = Path("/sys/fs/cgroup")


def versions() -> dict[str, str]:
    """Return the versions of kafeat and of the libraries that it computes and writes with."""
    from importlib.metadata import version  # slow to import

    return {name: version(name) for name in NAMES}


def machine() -> dict[str, str]:
    """Return the processor, the version of Python and the BLAS library."""
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


def process() -> dict[str, Any]:
    """Return the identity of this process: its command line without secrets, host, process number and user."""
    from getpass import getuser
    from socket import gethostname

    try:
        user = getuser()
    except (ImportError, KeyError, OSError):  # a container may run as a user without a name
        user = str(os.getuid())
    own = Path(sys.argv[0])
    command = shlex.join([own.parent.name if own.name == "__main__.py" else own.name, *sys.argv[1:]])
    return {"command_line": without_secrets(command), "host": gethostname(), "pid": os.getpid(), "user": user}


def now() -> str:
    """Return the current time in UTC."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def describe() -> list[str]:
    """Return lines for people about versions, the machine with its BLAS, and whether compiled functions are used."""
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
        return cores()
    if jobs < 1:
        raise UsageError(f"jobs: expected at least 1, got {jobs}")
    return jobs


def cores() -> int:
    """Return the number of cores that the process may use, by its affinity and by the limit of its container.

    joblib's `cpu_count` does the same, but its import takes 50 ms, an eighth of a short command.
    """
    affinity = getattr(os, "sched_getaffinity", None)
    count = len(affinity(0)) if affinity is not None else os.cpu_count() or 1
    quota = _quota(_CONTROL_GROUPS)
    return count if quota is None else max(1, min(count, math.ceil(quota)))


def _quota(folder: Path) -> float | None:
    """Return the number of cores that the control group (Linux, version 2 or 1) may use, or None without a limit."""
    for names in (("cpu.max",), ("cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us")):
        try:
            quota, period = " ".join((folder / name).read_text() for name in names).split()
            return int(quota) / int(period) if quota not in ("max", "-1") else None
        except (OSError, ValueError, ZeroDivisionError):
            continue
    return None
