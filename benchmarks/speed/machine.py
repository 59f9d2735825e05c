"""On what it was measured."""

import os
import platform
from importlib.metadata import version
from pathlib import Path

import numpy as np
import scipy.linalg  # noqa: F401  # loads its BLAS, so that the list below has it
from threadpoolctl import threadpool_info

LIBRARIES = ("kafeat", "numpy", "scipy", "pyarrow", "scikit-learn", "pandas", "joblib", "threadpoolctl")


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0))


def describe() -> dict[str, object]:
    """Processor, memory, libraries and BLAS."""
    return {
        "processor": _processor(),
        "cores": cores(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
        "system": platform.platform(),
        "python": platform.python_version(),
        "libraries": {name: version(name) for name in LIBRARIES},
        "blas": [
            {name: info.get(name) for name in ("prefix", "version", "architecture", "num_threads")}
            for info in threadpool_info()
            if info["user_api"] == "blas"
        ],
        "simd": [name for name, found in np._core._multiarray_umath.__cpu_features__.items() if found],
        "load": os.getloadavg(),
    }


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()
