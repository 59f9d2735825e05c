"""Write HTML pages with embedded figures, in light and dark, and check the folders for them."""

from __future__ import annotations

import os
import re
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from html import escape

from kafeat.errors import SystemRefusedError, UsageError
from kafeat.io.storage.base import making
from kafeat.io.storage.location import LocalPath, is_remote, write_bytes
from kafeat.maths import Score
from kafeat.pictures import Picture, TableColumn, html_table
from kafeat.study.importance import SHUFFLES

_STYLE = """
:root { color-scheme: light dark; --ink: #1c1f24; --paper: #fff; --faint: #d8dbe0; --soft: #f3f4f6; --hue: #0b62a4; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e8eb; --paper: #16191d; --faint: #3a4048; --soft: #1f242a; --hue: #6bb8f0; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem; max-width: 80rem; color: var(--ink); background: var(--paper);
  font: 16px/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; line-height: 1.2; } h2 { font-size: 1.15rem; margin-top: 2rem; }
.answer { border-left: 4px solid var(--hue); background: var(--soft); padding: .75rem 1rem; font-size: 1.05rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; overflow-wrap: normal; }
th, td { padding: .35rem .45rem; text-align: right; border-bottom: 1px solid var(--faint); white-space: nowrap; }
th { white-space: normal; vertical-align: bottom; } td { vertical-align: top; } small { display: block; }
th:first-child { text-align: left; min-width: 9rem; } tbody th { font-weight: inherit; vertical-align: top; }
tr.best > * { background: var(--soft); font-weight: 600; }
.pictures { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 30rem), 1fr)); gap: 1.5rem; }
figure { margin: 0; min-width: 0; } figure.broad { grid-column: 1 / -1; }
img { width: 100%; height: auto; display: block; } img.panels { min-width: 36rem; }
figcaption b { display: block; } figcaption { font-size: .9rem; }
summary { cursor: pointer; font-size: 1.15rem; font-weight: 600; margin: 2rem 0 1rem; }
pre { background: var(--soft); padding: .75rem 1rem; overflow-x: auto; font-size: .85rem; line-height: 1.4; }
"""


def document(title: str, body: Sequence[str], pictures: Sequence[Picture]) -> str:
    """Return an HTML page. Its head lists the picture files, so that a later report can remove them."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta name="kafeat-pictures" content="{escape(" ".join(f"{p.name}.{p.kind}" for p in pictures))}">'
        f"<title>{escape(title)}</title>"
        f'<link rel="icon" href="data:,"><style>{_STYLE}</style></head>\n<body>\n'
        + "\n".join(body)
        + "\n</body></html>\n"
    )


def figures(pictures: Sequence[Picture]) -> Iterator[str]:
    """Yield the HTML of figures, which stand next to each other where there is room."""
    if not pictures:
        return
    yield '<div class="pictures">'
    yield from map(_figure, pictures)
    yield "</div>"


def table(columns: Sequence[TableColumn], best: int | None = None) -> Iterator[str]:
    """Yield the HTML of a table with the row `best` marked. To save width, values after ± go on a second line."""
    yield f'<div class="wide">{html_table(columns, best=best, spell=_cell)}</div>'


def _cell(text: str) -> str:
    value, error, spread = escape(text).partition(" ± ")
    return f"{value} <small>± {spread}</small>" if error else value


_MOST_COLUMNS = 15


def importance(
    name: str, losses: Mapping[str, float], errors: Mapping[str, float], score: Score
) -> Iterator[str]:
    """Yield the HTML table of the most important columns, by how much the score falls if a column is shuffled."""
    most = list(losses)[:_MOST_COLUMNS]
    change = f"{'rise' if score.is_error else 'loss'} of {score}"
    yield (
        f"<h2>Columns that weigh most: {escape(name)}</h2><p>How much the score on held-out rows falls when "
        f"a column is shuffled: the mean of {SHUFFLES} shuffles ± its standard error. Columns with the same "
        "information share their importance.</p>"
    )
    cells = [f"{losses[column]:.4f} ± {errors[column]:.1g}" for column in most]
    yield from table([TableColumn("column", most), TableColumn(change, cells)])


def _figure(picture: Picture) -> str:
    mime = {"svg": "image/svg+xml", "png": "image/png"}[picture.kind]
    urls = {name: f"data:{mime};base64,{b64encode(data).decode()}" for name, data in picture.files.items()}
    broad = ' class="broad"' if picture.panels > 2 else ""
    panels = ' class="panels"' if picture.panels > 1 else ""
    return (
        f'<figure{broad}><div class="wide"><picture>'
        f'<source media="(prefers-color-scheme: dark)" srcset="{urls["dark"]}">'
        f'<img{panels} src="{urls["light"]}" alt="{escape(picture.title)}"></picture></div>'
        f"<figcaption><b>{escape(picture.title)}</b>{escape(picture.caption)}</figcaption></figure>"
    )


_PICTURES = (".png", ".svg")


def report_folder(folder: str | None) -> AbstractContextManager[object]:
    """Return a context that makes the folder of a report, and removes it again if it stays empty.

    Before the work begins, refuse a folder that is not writable, and a report without matplotlib.
    """
    if folder is None:
        return nullcontext()
    if is_remote(folder):
        raise UsageError(f"--report: expected a folder on this machine, got {folder}; copy the pages there")
    if folder in ("", "-"):
        raise UsageError(f"--report: expected the name of a folder, got {folder!r}")
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise UsageError(
            f"--report: expected matplotlib, got: {error}; pip install 'kafeat[evaluate]'"
        ) from error
    if os.path.isdir(folder) and not os.access(folder, os.W_OK):
        raise SystemRefusedError(f"{folder}: expected a folder to write to, got one that is read-only")
    return making(LocalPath(folder))


def pages_of(folder: str) -> list[str]:
    """Return the files that a report would write or remove in a folder: the page, and the pictures that are there."""
    with suppress(OSError):
        old = [name for name in os.listdir(folder) if name.endswith(_PICTURES)]
        return [os.path.join(folder, name) for name in ("index.html", *sorted(old))]
    return [os.path.join(folder, "index.html")]


def write_page(folder: str, page: str, pictures: Sequence[Picture]) -> None:
    """Write a page with embedded pictures as `index.html`, and also each picture as a file next to it."""
    index = os.path.join(folder, "index.html")
    before = _pictures_of_page(index)
    for picture in pictures:
        write_bytes(LocalPath(os.path.join(folder, f"{picture.name}.{picture.kind}")), picture.files["light"])
    write_bytes(LocalPath(index), page.encode())
    # Remove pictures of the previous page, which would be mistaken for pictures of this one.
    for name in before - {f"{picture.name}.{picture.kind}" for picture in pictures}:
        if not name.endswith(_PICTURES):
            continue
        with suppress(OSError):
            os.unlink(os.path.join(folder, name))


def _pictures_of_page(index: str) -> set[str]:
    """Return the names of the picture files that the head of an earlier page lists."""
    try:
        with open(index, encoding="utf-8") as file:
            listed = re.search(r'<meta name="kafeat-pictures" content="([\w. -]*)">', file.read(1 << 16))
    except (OSError, ValueError):
        return set()
    return set(listed[1].split()) if listed else set()
