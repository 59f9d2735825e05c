"""Peak memory of the whole job does not grow with the rows."""

import shutil

from speed.contest import Contest, Line, Setting, Side
from speed.processes import KAFEAT, process
from speed.whole_job import D, fitted, write_input

_ROWS = (400_000, 4_000_000)


def _prepare(setting: Setting) -> dict[str, Side]:
    free = shutil.disk_usage(setting.folder).free
    if free < 1.2 * _ROWS[1] * (4 * D + 8 * 54):
        print(f"memory: left out, as the disk has {free >> 30} GiB free only")
        return {}
    sides = {}
    for rows in _ROWS:
        source, out = setting.folder / f"in-{rows}.parquet", setting.folder / "memory.parquet"
        if not source.exists():
            write_input(source, rows)
        command = [
            KAFEAT,
            "transform",
            "--model",
            fitted(setting.folder, source),
            str(source),
            str(out),
            "--no-fsync",
        ]
        sides[f"{rows:,} rows"] = process(command, out.unlink)
    return sides


_LINES = (
    Line("4,000,000 rows, memory", "400,000 rows", "4,000,000 rows", "400,000 rows", 1.05, True, "peak_mb"),
    Line("4,000,000 rows, memory", "450 MB", "4,000,000 rows", None, 450, quantity="peak_mb"),
)
CONTESTS = (Contest("memory", _LINES, _prepare, full_only=True),)
