"""Columns requested by name or by shell pattern: `x*`, `pixel_??`, `[!i]*`. An existing name is never a pattern."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import translate

_ELEMENT = re.compile(r"(.*)\[[0-9]+\]", re.DOTALL)


def is_pattern(name: str) -> bool:
    """Return true if the name has a character that a shell pattern needs."""
    return any(char in name for char in "*?[")


def expand(requested: Iterable[str], names: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield each request with the names that it stands for, in their order: none if nothing matches."""
    known = list(dict.fromkeys(names))
    existing = set(known)
    for request in requested:
        if request in existing or not is_pattern(request):
            yield request, [request] if request in existing else []
        else:
            matches = re.compile(translate(request)).match
            yield request, [name for name in known if matches(name)]


def feature_places(requested: Iterable[str], names: Sequence[str | None]) -> Iterator[tuple[str, list[int]]]:
    """Yield each request with the positions of its features. The list column l stands for l[0], l[1], ..."""
    places = {name: j for j, name in enumerate(names) if name is not None}
    lists: dict[str, list[int]] = {}
    for name, j in places.items():
        element = _ELEMENT.fullmatch(name)
        if element:
            lists.setdefault(element[1], []).append(j)
    for request, found in expand(requested, places):
        if request in lists and request not in places:
            yield request, lists[request]
        else:
            yield request, [places[name] for name in found]
