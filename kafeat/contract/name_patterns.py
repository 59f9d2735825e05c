"""Match columns requested by name or by shell pattern: `x*`, `pixel_??`, `[!i]*`. An existing name is never a pattern.

Steps such as `one_hot` have a parameter of names and patterns (`ColumnNames`). `fit` turns them into column numbers.
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
    """Yield each requested name or pattern with the existing names that match it, in the order of `names`."""
    known = list(dict.fromkeys(names))
    existing = set(known)
    for request in requested:
        if request in existing or not is_pattern(request):
            yield request, [request] if request in existing else []
        else:
            matches = re.compile(translate(request)).match
            yield request, [name for name in known if matches(name)]


def feature_places(requested: Iterable[str], names: Sequence[str | None]) -> Iterator[tuple[str, list[int]]]:
    """Yield each requested name or pattern with the positions of its features: a list column l has l[0], l[1], ..."""
    places, lists = _places_by_name(tuple(names))
    for request, found in expand(requested, places):
        if request in lists and request not in places:
            yield request, lists[request]
        else:
            yield request, [places[name] for name in found]


@lru_cache(8)
def _places_by_name(names: tuple[str | None, ...]) -> tuple[dict[str, int], dict[str, list[int]]]:
    """Return the position of each name, and the positions of each list column. Cached for thousands of names."""
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
    """Return the position of each of these columns, without duplicates. `kind` names the step in messages."""
    if names is None:
        if columns:
            raise DataError(
                f"{kind}: expected to be the first step, or to follow steps that keep the input columns, because it "
                "reads columns by name; a union can apply it to the input columns next to other maps"
            )
        names = ()
    found: dict[int, None] = {}
    for name, places in feature_places(columns, names):
        if not places:
            meant = near(name, [other for other in names if other is not None])
            hint = "" if meant is None else f" (did you mean {quoted(meant)}?)"
            hint = hint or "; an earlier step may have replaced the column: put this step first, in a union"
            raise DataError(f"{kind}: columns: expected names of features, got {quoted(name)}{hint}")
        found |= dict.fromkeys(places)
    return np.array(list(found), dtype=np.int64)
