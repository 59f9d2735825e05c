"""The page of an evaluation and its pictures, in a folder."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from kafeat.errors import SystemRefusedError, UsageError
from kafeat.evaluation.gallery import Gallery
from kafeat.io.output import write_bytes


def check_report(folder: str) -> None:
    """Fail before the work and not behind it: matplotlib must be there, and the folder writeable."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise UsageError(
            f"--report: expected matplotlib, got: {error}; pip install 'kafeat[evaluate]'"
        ) from error
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise SystemRefusedError(f"{folder}: cannot make the folder: {error.strerror}") from error
    if not os.access(folder, os.W_OK):
        raise SystemRefusedError(f"{folder}: expected a folder to write to, got one that is read-only")


def write_report(folder: str, data: str, report: Mapping[str, Any], gallery: Gallery) -> None:
    """`index.html`, which needs no other file, and each picture as a file of its own (light) beside it."""
    from kafeat.evaluation.page import page
    from kafeat.evaluation.pictures import pictures

    drawn = list(pictures(report["summary"], gallery.exhibits))
    for picture in drawn:
        write_bytes(os.path.join(folder, f"{picture.name}.{picture.kind}"), picture.files["light"])
    write_bytes(os.path.join(folder, "index.html"), page(report, data, drawn).encode())
