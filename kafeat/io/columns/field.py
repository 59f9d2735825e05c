"""The fields of a table, and the parts of a table that column selection uses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

Kind = Literal["number", "list", "text", "date", "other"]


@dataclass(frozen=True)
class Field:
    """A column of a table. `width` is the length of its lists, or None if that is unknown.

    `spelled` names the type in messages.
    """

    name: str
    kind: Kind
    width: int | None = None
    spelled: str = ""

    @property
    def numeric(self) -> bool:
        """True if the column can be read as features."""
        return self.kind in ("number", "list")

    @property
    def codable(self) -> bool:
        """True if the column can be read as categories."""
        return self.kind in ("number", "text", "date")


class Table(Protocol):
    """The columns of an input. Readers are tables; this package does not import them.

    `location` names the input in messages. `positional` means that columns have no names of their own. `untyped` means
    that the kinds are guessed from the first rows. `rows` is the number of rows if it is known.
    """

    location: str
    fields: tuple[Field, ...]
    positional: bool
    untyped: bool
    rows: int | None

    @property
    def row_names(self) -> frozenset[str]:
        """Names of the columns that name the rows."""

    def settle(self) -> None:
        """Learn the widths that depend on all rows."""
