"""Finding columns by name, and saying which names are wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from difflib import get_close_matches
from typing import TYPE_CHECKING

from kafeat.errors import DataError

if TYPE_CHECKING:
    from kafeat.io.source import Field, Source


def require(source: Source, wanted: Iterable[str]) -> None:
    """Refuse names that the source lacks, all of them at once, each with the nearest right one."""
    known = [field.name for field in source.fields]
    missing = [name for name in dict.fromkeys(wanted) if name not in set(known)]
    if missing:
        listed = ", ".join(_with_hint(name, known) for name in missing[:20])
        more = f" and {len(missing) - 20} more" if len(missing) > 20 else ""
        has = ", ".join(known[:12]) + (", ..." if len(known) > 12 else "")
        raise DataError(f"{source.place}: expected columns {listed}{more}, got {has or 'none'}")


def _with_hint(name: str, known: list[str]) -> str:
    near = get_close_matches(name, known, n=1)
    return f"{name!r} (did you mean {near[0]!r}?)" if near else repr(name)


def field_of(source: Source, name: str) -> Field:
    """The field of that name, which must be the only one."""
    found = [field for field in source.fields if field.name == name]
    if len(found) != 1:
        raise DataError(
            f"{source.place}: column {name!r}: expected one column of that name, got {len(found)}; rename one"
        )
    return found[0]


def index_of(source: Source, name: str) -> int:
    """Where the only column of that name stands."""
    return source.fields.index(field_of(source, name))


def unique(names: Iterable[str]) -> bool:
    """Whether no name comes twice."""
    return all(count == 1 for count in Counter(names).values())
