"""An extension of Python-Markdown: formulas in TeX become MathML, so that a page fetches nothing to show them.

`pymdownx.arithmatex` marks the text between dollar signs. An option such as `--keep` stays on one line.
"""

from __future__ import annotations

import re
from html import unescape

from latex2mathml.converter import convert
from markdown import Extension, Markdown
from markdown.postprocessors import Postprocessor

MARKED = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', flags=re.S)
CODE = re.compile(r"(?<!</span>)<code>[^<]*</code>")
OPTION = re.compile(r"(?<![\w-])--?[a-z][a-z-]*")


class Formulas(Extension):
    """`makeExtension`, which Markdown looks for by the name of the module."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802 - Markdown's name
        """Run after all others, when the page is whole."""
        md.postprocessors.register(_Formulas(md), "formulas", -1)


makeExtension = Formulas  # noqa: N816 - Markdown's name


class _Formulas(Postprocessor):
    def run(self, text: str) -> str:
        return CODE.sub(_kept_whole, MARKED.sub(_set, text))


def _kept_whole(code: re.Match[str]) -> str:
    return OPTION.sub(lambda option: f'<span style="white-space: nowrap">{option[0]}</span>', code[0])


def _set(marked: re.Match[str]) -> str:
    """Return the MathML of a formula. A block has its own line, and scrolls if it is too wide."""
    tex, block = unescape(marked[2]).strip(), marked[1] == "div"
    made = convert(tex, display="block" if block else "inline")
    if "\\" in made or "&amp;" in made or ">&<" in made:
        raise ValueError(f"expected TeX that latex2mathml knows, got {tex!r}, of which it made {made}")
    return f'<div style="overflow-x: auto">{made}</div>' if block else made
