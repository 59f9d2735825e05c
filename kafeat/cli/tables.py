"""Tables that fit a terminal: texts fold, less important columns are dropped, and numbers are never cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.box import HEAVY_HEAD, SIMPLE_HEAD
from rich.cells import cell_len
from rich.table import Table

# Columns are dropped before texts fold to less than _ENOUGH; texts never fold to less than _LEAST.
_ENOUGH, _LEAST = 24, 12


@dataclass(frozen=True)
class TableColumn:
    """A head and its cells. Columns with the largest `idle` are dropped first, those with 0 never."""

    head: str
    cells: Sequence[str]
    idle: int = 0

    def width(self, folded: bool = False) -> int:
        """Return the width of the widest cell or head; a folded head breaks between its words."""
        heads = self.head.split() if folded else [self.head]
        return max(map(cell_len, [*heads, *self.cells]))


def fitting(
    texts: TableColumn, figures: Sequence[TableColumn], width: int | None, framed: bool = True
) -> tuple[Table, list[str]]:
    """Return a table at most `width` cells wide (None: any width), and the heads of the dropped columns.

    The table is wider if the columns that are never dropped need it. The terminal then wraps its lines.
    """
    kept, left_out, whole = list(figures), [], texts.width()
    widths = _widths(kept, whole, width, framed)
    while widths[0] < min(whole, _ENOUGH) and any(one.idle for one in kept):
        idlest = max(kept, key=lambda one: one.idle)
        kept.remove(idlest)
        left_out.append(idlest.head)
        widths = _widths(kept, whole, width, framed)
    table = Table(box=HEAVY_HEAD if framed else SIMPLE_HEAD, show_edge=framed, pad_edge=framed)
    for one, cells in zip([texts, *kept], [max(widths[0], _LEAST), *widths[1:]], strict=True):
        table.add_column(one.head, justify="left" if one is texts else "right", width=cells, overflow="fold")
    for row in zip(texts.cells, *(one.cells for one in kept), strict=True):
        table.add_row(*row)
    return table, left_out


def _widths(figures: Sequence[TableColumn], whole: int, width: int | None, framed: bool) -> list[int]:
    """Return the width of the texts, limited by the room, and of the figures, with heads folded if necessary."""
    lines = 3 * len(figures) + (4 if framed else 0)
    if width is None:
        return [whole, *(one.width() for one in figures)]
    for folded in (False, True):
        taken = [one.width(folded) for one in figures]
        room = width - lines - sum(taken)
        if room >= whole:
            break
    return [min(whole, room), *taken]
