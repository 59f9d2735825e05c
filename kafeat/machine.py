"""What equal bytes depend on: library versions, and the processor kind that BLAS runs for."""

from __future__ import annotations

import platform
from importlib.metadata import version

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
