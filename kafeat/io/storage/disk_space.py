"""Check the free disk space before an hour of work, not after it."""

from __future__ import annotations

import os
import shutil
import tempfile

from kafeat.errors import SystemRefusedError
from kafeat.io.storage.uri import is_remote, local_path, shown


def require_space(location: str, n_bytes: int) -> None:
    """Refuse to write a file of `n_bytes` if its disk has less free space."""
    free = free_bytes(location)
    if free is not None and n_bytes > free:
        where = (
            f"in {tempfile.gettempdir()}, where it is written first (TMPDIR)"
            if is_remote(location)
            else "on its disk"
        )
        raise SystemRefusedError(
            f"{shown(location)}: expected room for {spell_bytes(n_bytes)}, got {spell_bytes(free)} free {where}; "
            "--output-dtype float16 halves the bytes"
        )


def free_bytes(location: str) -> int | None:
    """Return the free bytes on the disk of a file. Return None for a device, a pipe, or a missing folder.

    A remote location is written to the temporary folder first, so the free bytes there are returned.
    """
    if is_remote(location):
        return shutil.disk_usage(tempfile.gettempdir()).free
    location = local_path(location)
    if location == "-" or (os.path.exists(location) and not os.path.isfile(location)):
        return None
    try:
        return shutil.disk_usage(os.path.dirname(os.path.realpath(location))).free
    except OSError:
        return None


def spell_bytes(n: int) -> str:
    """Format a number of bytes with a unit, in powers of 1,024."""
    value, unit = float(n), "B"
    for unit in ("B", "KiB", "MiB", "GiB", "TiB", "PiB"):
        if value < 1024.0 or unit == "PiB":
            break
        value /= 1024.0
    return f"{n} B" if unit == "B" else f"{value:.1f} {unit}"
