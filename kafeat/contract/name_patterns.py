"""Columns requested by name or by shell pattern: `x*`, `pixel_??`, `[!i]*`. An existing name is never a pattern.

A step may have a field of such names, which become positions when it is fitted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import translate
from functools import lru_cache
from typing import Annotated

import numpy as np
from pydantic import Field

from kafeat.contract.describe import Described, near
from kafeat.contract.step import AS_TUPLE, Names
from kafeat.errors import DataError, quoted
from kafeat.types import Array

_ELEMENT = re.compile(r"(.*)\[[0-9]+\]", re.DOTALL)


def is_pattern(name: str) -> bool:
    """Return true if the name has a character that a shell pattern needs."""
    return any(char in name for char in "*?[")


def expand(requested: Iterable[str], names: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield each request with the names that match it, in their order."""
    known = list(dict.fromkeys(names))
    existing = set(known)
    for request in requested:
        if request in existing or not is_pattern(request):
            yield request, [request] if request in existing else []
        else:
            matches = re.compile(translate(request)).match
            yield request, [name for name in known if matches(name)]


def feature_places(requested: Iterable[str], names: Sequence[str | None]) -> Iterator[tuple[str, list[int]]]:
    """Yield each request with the positions of its features. A list column l has the features l[0], l[1], ..."""
    places, lists = _places_by_name(tuple(names))
    for request, found in expand(requested, places):
        if request in lists and request not in places:
            yield request, lists[request]
        else:
            yield request, [places[name] for name in found]


@lru_cache(8)
def _places_by_name(names: tuple[str | None, ...]) -> tuple[dict[str, int], dict[str, list[int]]]:
    """Return the positions of columns and of lists. Maps of a search share them: texts have thousands of names."""
    places = {name: j for j, name in enumerate(names) if name is not None}
    lists: dict[str, list[int]] = {}
    for name, j in places.items():
        element = _ELEMENT.fullmatch(name)
        if element:
            lists.setdefault(element[1], []).append(j)
    return places, lists


_Name = Annotated[str, Field(min_length=1), Described("a name (text, not empty)", "names")]
ColumnNames = Annotated[tuple[_Name, ...], AS_TUPLE]


def places_of(kind: str, columns: Sequence[str], names: Names | None) -> Array:
    """Return the positions of these columns, each once. `kind` names the step in messages."""
    if names is None:
        if columns:
            raise DataError(
                f"{kind}: expected to come first, or after steps that keep the input columns, as it reads them by "
                "name; in a union it comes first beside the rest"
            )
        names = ()
    found: dict[int, None] = {}
    for name, places in feature_places(columns, names):
        if not places:
            meant = near(name, [other for other in names if other is not None])
            hint = "" if meant is None else f" (did you mean {quoted(meant)}?)"
            hint = hint or "; steps before it may have taken the column, and in a union none come before it"
            raise DataError(f"{kind}: columns: expected names of features, got {quoted(name)}{hint}")
        found |= dict.fromkeys(places)
    return np.array(list(found), dtype=np.int64)
