"""Write the report of an evaluation to a folder."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from kafeat.errors import SystemRefusedError, UsageError
from kafeat.io.storage.atomic import write_bytes
from kafeat.io.storage.local_path import LocalPath
from kafeat.io.storage.location import parse_location
from kafeat.pictures.figure_data import MapFigures
from kafeat.study.records import Report

if TYPE_CHECKING:  # needs matplotlib
    from kafeat.pictures.canvas import Picture

_PICTURES = (".png", ".svg")


@contextmanager
def report_folder(folder: str | None) -> Iterator[None]:
    """Make the folder of a report before the work, and refuse it if it is not writeable or matplotlib is missing.

    A new folder that is still empty at the end is removed.
    """
    if folder is None:
        yield
        return
    if not isinstance(parse_location(folder), LocalPath):
        raise UsageError(f"--report: expected a folder on this machine, got {folder}; copy the pages there")
    new = not os.path.isdir(folder)
    _check_folder(folder)
    try:
        yield
    finally:
        if new:
            with suppress(OSError):  # it holds the report
                os.rmdir(folder)


def _check_folder(folder: str) -> None:
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
    """Return the files that a report would write to a folder, as far as known: the page, and old pictures."""
    with suppress(OSError):
        old = [name for name in os.listdir(folder) if name.endswith(_PICTURES)]
        return [os.path.join(folder, name) for name in ("index.html", *sorted(old))]
    return [os.path.join(folder, "index.html")]


def write_report(folder: str, data: str, report: Report, exhibits: Sequence[MapFigures]) -> None:
    """Write the page of an evaluation, and its pictures."""
    from kafeat.study.report.page import page
    from kafeat.study.report.pictures import pictures

    drawn = list(pictures(report["summary"], exhibits, report["rates"]))
    write_page(folder, page(report, data, drawn), drawn)


def write_page(folder: str, page: str, pictures: Sequence[Picture]) -> None:
    """Write `index.html`, which needs no other file, and each picture as a separate file beside it."""
    index = os.path.join(folder, "index.html")
    before = _pictures_of_page(index)
    for picture in pictures:
        write_bytes(LocalPath(os.path.join(folder, f"{picture.name}.{picture.kind}")), picture.files["light"])
    write_bytes(LocalPath(index), page.encode())
    # Pictures of the previous page would be mistaken for those of this one.
    for name in before - {f"{picture.name}.{picture.kind}" for picture in pictures}:
        if not name.endswith(_PICTURES):
            continue
        with suppress(OSError):
            os.unlink(os.path.join(folder, name))


def _pictures_of_page(index: str) -> set[str]:
    """Return the names of the pictures that an earlier page lists."""
    try:
        with open(index, encoding="utf-8") as file:
            listed = re.search(r'<meta name="kafeat-pictures" content="([\w. -]*)">', file.read(1 << 16))
    except (OSError, ValueError):
        return set()
    return set(listed[1].split()) if listed else set()
