"""Divide rows into blocks of limited size, and reject work that needs more memory than is free."""

from __future__ import annotations

import os
import resource
from pathlib import Path

from kafeat.errors import DataError

_CONTROL_GROUPS, _PROCESSES = Path("/sys/fs/cgroup"), Path("/proc")
# Smaller requests, in bytes, are not checked, because free memory is known only roughly.
_LEAST_BYTES = 1 << 27


def blocks(n: int, width: int, most: int = 1 << 20) -> list[slice]:
    """Return slices that divide n rows of `width` numbers into blocks of at most `most` numbers, to save memory."""
    height = max(1, most // max(1, width))
    return [slice(start, min(n, start + height)) for start in range(0, n, height)]


def require_memory(numbers: float, what: str, remedy: str) -> None:
    """Raise an error if the free memory is too small for `numbers` further float64 numbers.

    The message begins with `what`, such as "pca: 9,000 rows of 900 columns", and ends with `remedy`.
    """
    needed = 8.0 * numbers
    if needed < _LEAST_BYTES:
        return
    free = free_bytes()
    if needed > free:
        raise DataError(
            f"{what}: expected {needed / 2**30:,.1f} GiB of free memory, got {free / 2**30:,.1f}: {remedy}"
        )


def free_bytes() -> float:
    """Return the bytes that this process can still get from the system, its container and `ulimit -v`."""
    return max(0.0, min(_of_system(), _of_container(_CONTROL_GROUPS), _of_limit()))


def _of_system() -> float:
    try:
        lines = (_PROCESSES / "meminfo").read_text().splitlines()
        sizes = {
            name: float(rest.split()[0]) * 1024.0 for name, _, rest in (line.partition(":") for line in lines)
        }
        return sizes["MemAvailable"] + sizes.get("SwapFree", 0.0)
    except (OSError, KeyError, ValueError, IndexError):  # not Linux
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))


def _of_container(folder: Path) -> float:
    """Return the free bytes below the limit of the control group (Linux, version 2 or 1). File cache counts as free."""
    for limit, used, cached in (
        ("memory.max", "memory.current", "memory.stat"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "memory/memory.stat"),
    ):
        try:
            most, now = (float((folder / name).read_text().replace("max", "inf")) for name in (limit, used))
            fields = dict(line.split() for line in (folder / cached).read_text().splitlines())
            return most - now + float(fields.get("inactive_file", 0.0))
        except (OSError, ValueError):
            continue
    return float("inf")


def _of_limit() -> float:
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    if soft == resource.RLIM_INFINITY:
        return float("inf")
    try:
        used = int((_PROCESSES / "self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        used = 0
    return float(soft - used)
