"""A column of an input, and what the choice of columns looks at in an input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

Kind = Literal["number", "list", "text", "date", "other"]


@dataclass(frozen=True)
class Field:
    """A column of a source. `width` is the length of a list column, None if its rows do not show it.

    `spelled` names the type in messages.
    """

    name: str
    kind: Kind
    width: int | None = None
    spelled: str = ""

    @property
    def numeric(self) -> bool:
        """Whether the column can be read as features."""
        return self.kind in ("number", "list")

    @property
    def codable(self) -> bool:
        """Whether the column can be read as categories."""
        return self.kind in ("number", "text", "date")


class Table(Protocol):
    """The columns of an input. Readers are such tables, and no column needs to know what a reader is.

    `place` names the input in messages, `positional` says that columns have no names of their own, `untyped` that the
    kinds are guessed from the first rows, and `rows` is the number of rows if it is known.
    """

    place: str
    fields: tuple[Field, ...]
    positional: bool
    untyped: bool
    rows: int | None

    @property
    def row_names(self) -> frozenset[str]:
        """Columns that name the rows."""

    def settle(self) -> None:
        """Learn the widths that only all rows tell."""
