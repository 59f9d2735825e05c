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
    found = set(known)
    missing = [name for name in dict.fromkeys(wanted) if name not in found]
    if missing:
        listed = ", ".join(_with_hint(name, known) for name in missing[:20])
        more = f" and {len(missing) - 20} more" if len(missing) > 20 else ""
        has = ", ".join(known[:12]) + (", ..." if len(known) > 12 else "")
        raise DataError(f"{source.place}: expected columns {listed}{more}, got {has or 'none'}")


def _with_hint(name: str, known: list[str]) -> str:
    near = get_close_matches(name, known, n=1)
    return f"{name!r} (did you mean {near[0]!r}?)" if near else repr(name)


def indices_of(source: Source, wanted: Iterable[str]) -> list[int]:
    """Where the columns of those names stand; each must be there, and be the only one of its name."""
    names = list(wanted)
    require(source, names)
    counts = Counter(field.name for field in source.fields)
    for name in names:
        if counts[name] != 1:
            raise DataError(
                f"{source.place}: column {name!r}: expected one column of that name, "
                f"got {counts[name]}; rename one"
            )
    places = {field.name: i for i, field in enumerate(source.fields)}
    return [places[name] for name in names]


def fields_of(source: Source, wanted: Iterable[str]) -> list[Field]:
    """The fields of those names, on the same terms."""
    return [source.fields[i] for i in indices_of(source, wanted)]


def unique(names: Iterable[str]) -> bool:
    """Whether no name comes twice."""
    return all(count == 1 for count in Counter(names).values())
