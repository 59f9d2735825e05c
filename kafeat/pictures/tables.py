"""Tables for terminals, pages and notebooks, each described once by its columns, and their HTML form."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Generic, NamedTuple, TypeVar

T = TypeVar("T")


class Format(NamedTuple):
    """The format of the values of a column, and their unit, which is written after the title."""

    spell: Callable[[Any], str]
    unit: str = ""


def spell_number(value: float, most: int = 1) -> str:
    """Return a number as text with two significant digits, but at most `most` decimals."""
    digits = next((n for n in range(most) if value * 10**n >= 10.0), most)
    return f"{value:,.{digits}f}"


def spell_seconds(seconds: float) -> str:
    """Return seconds as text with two significant digits, or `<0.001` below a millisecond."""
    return "<0.001" if seconds < 0.001 else spell_number(seconds, 3)


TEXT, COUNT = Format(str), Format("{:,.0f}".format)
SECONDS, MEGABYTES = Format(spell_seconds, "s"), Format(lambda size: spell_number(size / 1e6, 2), "MB")


@dataclass(frozen=True)
class Column(Generic[T]):
    """A column of a table: its title, a function from a row to the value to show (or None), and the values' format.

    A terminal that is too narrow drops columns with the largest `idle` first, and never columns with `idle` 0.
    """

    title: str
    figure: Callable[[T], Any]
    format: Format = TEXT
    idle: int = 0


class TableColumn(NamedTuple):
    """A column that is ready to be shown: its head and its formatted cells."""

    head: str
    cells: Sequence[str]
    idle: int = 0


def laid(rows: Sequence[T], columns: Sequence[Column[T]]) -> list[TableColumn]:
    """Return the columns with their cells, except columns in which all rows have None."""
    made = list[TableColumn]()
    for one in columns:
        figures, (spell, unit) = map(one.figure, rows), one.format
        cells = ["" if figure is None else spell(figure) for figure in figures]
        if any(cells):
            made.append(TableColumn(f"{one.title}, {unit}" if unit else one.title, cells, one.idle))
    return made


def text_table(columns: Sequence[TableColumn]) -> str:
    """Return a table as lines of text, with the first column on the left and the others aligned to the right."""
    texts = [[one.head, *one.cells] for one in columns]
    padded = [
        [f"{cell:{'>' if i else '<'}{max(map(len, cells))}}" for cell in cells]
        for i, cells in enumerate(texts)
    ]
    return "\n".join("  ".join(row).rstrip() for row in zip(*padded, strict=True))


LEFT = ' style="text-align:left"'
"""The style of cells in a notebook. Without the style, a notebook aligns cells to the right."""


def html_table(
    columns: Sequence[TableColumn],
    caption: str = "",
    best: int | None = None,
    spell: Callable[[str], str] = escape,
    style: str = "",
) -> str:
    """Return an HTML table with all text escaped. The row `best` is marked, and `style` is that of the cells.

    The first cell of each row is its head.
    """
    named = any(one.head for one in columns)
    heads = "".join(f"<th>{escape(one.head)}</th>" for one in columns) if named else ""
    mark = ' class="best"'
    body = "".join(
        f"<tr{mark if i == best else ''}><th{style}>{spell(first)}</th>"
        + "".join(f"<td{style}>{spell(text)}</td>" for text in others)
        + "</tr>"
        for i, (first, *others) in enumerate(zip(*(one.cells for one in columns), strict=True))
    )
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    return f"<table>{title}{heads and f'<thead><tr>{heads}</tr></thead>'}<tbody>{body}</tbody></table>"
