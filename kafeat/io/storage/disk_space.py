"""Check the free disk space before an hour of work, not after it."""

from __future__ import annotations

from kafeat.errors import SystemRefusedError
from kafeat.io.storage.base import Location


def require_space(location: Location, n_bytes: int) -> None:
    """Refuse to write a file of `n_bytes` if its disk has less free space."""
    free = location.free_bytes()
    if free is not None and n_bytes > free:
        spool = location.spool
        where = "on its disk" if spool is None else f"in {spool}, where it is written first (TMPDIR)"
        raise SystemRefusedError(
            f"{location}: expected room for {spell_bytes(n_bytes)}, got {spell_bytes(free)} free {where}; "
            "--output-dtype float16 halves the bytes"
        )


def spell_bytes(n: int) -> str:
    """Format a number of bytes with a unit, in powers of 1,024."""
    value, unit = float(n), "B"
    for unit in ("B", "KiB", "MiB", "GiB", "TiB", "PiB"):
        if value < 1024.0 or unit == "PiB":
            break
        value /= 1024.0
    return f"{n} B" if unit == "B" else f"{value:.1f} {unit}"
