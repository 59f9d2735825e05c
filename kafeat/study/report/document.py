"""HTML documents that need no other file, in light and dark, with figures."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Sequence
from html import escape

from kafeat.pictures.canvas import Picture

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
th:first-child, td:first-child { text-align: left; white-space: normal; min-width: 9rem; }
tr.best td { background: var(--soft); font-weight: 600; }
.pictures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 30rem), 1fr)); gap: 1.5rem; }
figure { margin: 0; min-width: 0; } figure.broad { grid-column: 1 / -1; }
img { width: 100%; height: auto; display: block; } img.panels { min-width: 36rem; }
figcaption b { display: block; } figcaption { font-size: .9rem; }
pre { background: var(--soft); padding: .75rem 1rem; overflow-x: auto; font-size: .85rem; line-height: 1.4; }
"""


def document(title: str, body: Sequence[str], pictures: Sequence[Picture]) -> str:
    """Return the page; its head lists the names of the pictures."""
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
    """Yield the figures, side by side where there is room."""
    yield '<div class="pictures">'
    yield from map(_figure, pictures)
    yield "</div>"


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], best: int | None = None) -> Iterator[str]:
    """Yield a table of cells of HTML; the row `best` is marked."""
    yield '<div class="wide"><table><thead><tr>'
    yield "".join(f"<th>{head}</th>" for head in heads)
    yield "</tr></thead><tbody>"
    for i, cells in enumerate(rows):
        mark = ' class="best"' if i == best else ""
        yield f"<tr{mark}>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"
    yield "</tbody></table></div>"


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
