"""A hook of MkDocs: formulas in TeX become MathML while the site is built, so that nothing is fetched to show them.

`pymdownx.arithmatex` marks what stands between dollar signs. Lines do not break within an option such as `--keep`.
"""

from __future__ import annotations

import re
from html import unescape

from latex2mathml.converter import convert

MARKED = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', flags=re.S)
CODE = re.compile(r"(?<!</span>)<code>[^<]*</code>")
OPTION = re.compile(r"(?<![\w-])--?[a-z][a-z-]*")


def on_page_content(html: str, **_: object) -> str:
    """Replace every marked formula, and keep options in text on one line."""
    return CODE.sub(_kept_whole, MARKED.sub(_set, html))


def _kept_whole(code: re.Match[str]) -> str:
    return OPTION.sub(lambda option: f'<span style="white-space: nowrap">{option[0]}</span>', code[0])


def _set(marked: re.Match[str]) -> str:
    """Return the MathML of a formula; a block has a line of its own, and scrolls where it is too wide."""
    tex, block = unescape(marked[2]).strip(), marked[1] == "div"
    made = convert(tex, display="block" if block else "inline")
    if "\\" in made or "&amp;" in made or ">&<" in made:
        raise ValueError(f"expected TeX that latex2mathml knows, got {tex!r}, of which it made {made}")
    return f'<div style="overflow-x: auto">{made}</div>' if block else made
