"""The page of an evaluation and its pictures, in a folder."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from kafeat.errors import SystemRefusedError, UsageError
from kafeat.evaluation.gallery import Gallery
from kafeat.io.output import write_bytes
from kafeat.io.uri import is_remote

_PICTURES = (".png", ".svg")


@contextmanager
def report_folder(folder: str | None) -> Iterator[None]:
    """Fail before the work and not behind it: matplotlib must be there, and the folder writeable.

    A folder that was made for nothing is removed.
    """
    if folder is None:
        yield
        return
    if is_remote(folder):
        raise UsageError(f"--report: expected a folder on this machine, got {folder}; copy the pages there")
    new = not os.path.isdir(folder)
    _check(folder)
    try:
        yield
    finally:
        if new:
            with suppress(OSError):  # it holds the report
                os.rmdir(folder)


def _check(folder: str) -> None:
    if folder in ("", "-"):
        raise UsageError(f"--report: expected the name of a folder, got {folder!r}")
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


def pages_of(folder: str) -> list[str]:
    """The files of a folder that a report would write, as far as their names are known: the page, and old pictures."""
    with suppress(OSError):
        there = [name for name in os.listdir(folder) if name.endswith(_PICTURES)]
        return [os.path.join(folder, name) for name in ("index.html", *sorted(there))]
    return [os.path.join(folder, "index.html")]


def write_report(folder: str, data: str, report: Mapping[str, Any], gallery: Gallery) -> None:
    """`index.html`, which needs no other file, and each picture as a file of its own (light) beside it."""
    from kafeat.evaluation.page import page
    from kafeat.evaluation.pictures import pictures

    drawn = list(pictures(report["summary"], gallery.exhibits))
    index = os.path.join(folder, "index.html")
    before = _named_by(index)
    for picture in drawn:
        write_bytes(os.path.join(folder, f"{picture.name}.{picture.kind}"), picture.files["light"])
    write_bytes(index, page(report, data, drawn).encode())
    # pictures of the page that was here before would be taken for this one's
    for name in before - {f"{picture.name}.{picture.kind}" for picture in drawn}:
        if not name.endswith(_PICTURES):
            continue
        with suppress(OSError):
            os.unlink(os.path.join(folder, name))


def _named_by(index: str) -> set[str]:
    """The files that a page of ours says are its pictures."""
    try:
        with open(index, encoding="utf-8") as file:
            found = re.search(r'<meta name="kafeat-pictures" content="([\w. -]*)">', file.read(1 << 16))
    except (OSError, ValueError):
        return set()
    return set(found[1].split()) if found else set()
